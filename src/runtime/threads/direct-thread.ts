// The thread that carries out calls for a rank in shared memory: see direct-threads.ts, which starts it.
import { parentPort, workerData } from 'node:worker_threads';
import { DONE, PENDING } from '../device/kernels/kernels.js';
import { loadLibc } from '../device/libc.js';
import { Segment, type SegmentInThread } from '../device/segment.js';
import { Team } from '../device/team.js';
import { packReason } from '../transport/ending.js';
import { Backoff } from '../progress/backoff.js';
import { DirectEngine } from '../algorithms/direct-engine.js';
import { callAt, EngineThreadMemory, EXIT, type PlacedCall } from './engine-thread-memory.js';
import { WatchClock } from '../progress/watch-clock.js';

/** What a rank gives its engine thread. */
export interface DirectThreadData {
  readonly segment: SegmentInThread;
  /** The team that this thread works in for the rank. */
  readonly team: { readonly address: number; readonly members: readonly number[]; readonly stageBytes: number };
  readonly localRanks: readonly number[];
  readonly smallBytes: number;
  /** How often to look before the core is given away. */
  readonly spins: number;
  readonly limitMs: number;
  readonly buffer: SharedArrayBuffer;
}

const {
  segment: place,
  team: { address, members, stageBytes },
  localRanks,
  smallBytes,
  spins,
  limitMs,
  buffer,
} = workerData as DirectThreadData;
const loaded = loadLibc();
const libc = 'libc' in loaded ? loaded.libc : undefined;
const segment = Segment.inThread(place, libc);
const engine = new DirectEngine(new Team(segment, address, members, false, stageBytes), localRanks, libc, smallBytes, stageBytes);
// Who waits too long is found by the rank's thread.
const backoff = new Backoff(libc, new WatchClock(limitMs));
const memory = new EngineThreadMemory(buffer);
/** The number of the call under way. */
let number = -1;

parentPort?.postMessage('ready');
try {
  for (let call = memory.take(spins); call.code !== EXIT; call = memory.take(spins)) {
    carryOut(call);
    memory.completed();
  }
  memory.completed();
} catch (error) {
  memory.gaveUp(packReason(error as Error));
}

function carryOut(placed: PlacedCall): void {
  number++;
  const { code, type, root, send, recv, count, details } = callAt(segment.buffer, placed);
  let status = engine.begin(code, type, root, send, recv, count, spins, details);
  backoff.restart();
  while (status !== DONE) {
    if (status === PENDING && backoff.turn()) {
      engine.check();
      if (limitMs > 0) tellOfWait();
    }
    const { steps } = engine;
    status = engine.progress(spins);
    if (engine.steps === steps) continue;
    backoff.restart();
    memory.setSteps(engine.steps);
  }
}

/** Tells the rank for whom this thread waits, and the others that it does. */
function tellOfWait(): void {
  if (backoff.waitedMs <= backoff.clock.gapMs) return;
  const call = engine.underWay();
  if (call !== undefined) engine.sayWaits(limitMs, { kind: 'collective', number, call });
  memory.setLate(engine.late(limitMs));
}
