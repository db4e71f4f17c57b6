// The thread that carries out calls for a rank in shared memory: see direct-threads.ts, which starts it.
import { parentPort, workerData } from 'node:worker_threads';
import { DONE, PENDING } from '../device/kernels/kernels.js';
import { loadLibc } from '../device/libc.js';
import { Segment, type SegmentInThread } from '../device/segment.js';
import { Team } from '../device/team.js';
import { packReason } from '../transport/ending.js';
import { Backoff } from './backoff.js';
import { DirectEngine } from './direct-engine.js';
import { callAt, EngineThreadMemory, EXIT, type PlacedCall } from './engine-thread-memory.js';
import { WatchClock } from '../watch-clock.js';

/** What a rank gives its engine thread. */
export interface DirectThreadData {
  readonly segment: SegmentInThread;
  /** The team that this thread works in for the rank. */
  readonly team: { readonly address: number; readonly members: readonly number[]; readonly stageBytes: number };
  readonly localRanks: readonly number[];
  readonly smallBytes: number;
  /** How often to look before the core is given away. */
  readonly spins: number;
  readonly timeoutMs: number;
  readonly buffer: SharedArrayBuffer;
}

const { segment: place, team: { address, members, stageBytes }, localRanks, smallBytes, spins, timeoutMs, buffer } = workerData as DirectThreadData;
const loaded = loadLibc();
const libc = 'libc' in loaded ? loaded.libc : undefined;
const segment = Segment.inThread(place, libc);
const engine = new DirectEngine(new Team(segment, address, members, false, stageBytes), localRanks, libc, smallBytes, stageBytes);
// Who waits too long is found by the rank's thread.
const backoff = new Backoff(libc, new WatchClock(timeoutMs));
const memory = new EngineThreadMemory(buffer);

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
  const { code, type, root, send, recv, count, details } = callAt(segment.buffer, placed);
  let status = engine.begin(code, type, root, send, recv, count, spins, details);
  backoff.restart();
  while (status !== DONE) {
    if (status === PENDING && backoff.turn()) {
      engine.check();
      if (timeoutMs > 0) tellOfWait();
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
  engine.sayWaits(timeoutMs);
  memory.setLate(engine.late(timeoutMs));
}
