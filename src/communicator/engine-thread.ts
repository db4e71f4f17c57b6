// The thread that carries out calls for a rank: see thread-engine.ts, which starts it.
import { parentPort, workerData } from 'node:worker_threads';
import { DONE, PENDING } from '../device/kernels/kernels.js';
import { loadLibc } from '../device/libc.js';
import { Segment, type SegmentInThread } from '../device/segment.js';
import { Team } from '../device/team.js';
import { dataTypes, int32, type DataType, type NumericArray } from '../device/types.js';
import { packReason } from '../transport/ending.js';
import { Backoff } from './backoff.js';
import { DirectEngine } from './direct-engine.js';
import { EngineThreadMemory, EXIT, type PlacedCall } from './engine-thread-memory.js';

/** What a rank gives its engine thread. */
export interface EngineThreadData {
  readonly segment: SegmentInThread;
  /** The team that this thread works in for the rank. */
  readonly team: { readonly address: number; readonly members: readonly number[]; readonly stageBytes: number };
  readonly localRanks: readonly number[];
  readonly smallBytes: number;
  /** How often to look before the core is given away. */
  readonly spins: number;
  readonly buffer: SharedArrayBuffer;
}

const { segment: place, team: { address, members, stageBytes }, localRanks, smallBytes, spins, buffer } = workerData as EngineThreadData;
const loaded = loadLibc();
const libc = 'libc' in loaded ? loaded.libc : undefined;
const segment = Segment.inThread(place, libc);
const engine = new DirectEngine(new Team(segment, address, members, undefined, stageBytes), localRanks, libc, smallBytes);
const backoff = new Backoff(libc);
const memory = new EngineThreadMemory(buffer);
const none = new Int32Array(0);

parentPort?.postMessage('ready');
try {
  for (let call = memory.take(spins); call.code !== EXIT; call = memory.take(spins)) {
    carryOut(call);
    memory.completed();
  }
} catch (error) {
  memory.gaveUp(packReason(error as Error));
}

function carryOut({ code, root, send, sendLength, recv, recvLength, count, details }: PlacedCall): void {
  const type = dataTypes.find((candidate) => candidate.code === ((code >> 4) & 15)) ?? int32;
  const input = view(type, send, sendLength);
  const output = recv === send && recvLength === sendLength ? input : view(type, recv, recvLength);
  let status = engine.begin(code, type, root, input, output, count, spins, details);
  backoff.restart();
  while (status !== DONE) {
    if (status === PENDING && backoff.turn()) engine.check();
    const { steps } = engine;
    status = engine.progress(spins);
    if (engine.steps === steps) continue;
    backoff.restart();
    memory.setSteps(engine.steps);
  }
}

function view(type: DataType, offset: number, length: number): NumericArray {
  return length === 0 ? none : new type.array(segment.buffer, offset, length);
}
