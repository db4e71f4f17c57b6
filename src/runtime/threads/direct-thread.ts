// Thread that carries out calls for a rank in shared memory; started by direct-threads.ts.
import { parentPort, workerData } from 'node:worker_threads';
import { DONE } from '../device/kernels/kernels.js';
import { loadLibc } from '../device/libc.js';
import { Segment, type SegmentInThread } from '../device/segment.js';
import { Team } from '../device/team.js';
import { packReason } from '../transport/ending.js';
import { PARK_AFTER_MS } from '../progress/backoff.js';
import { progressHere, type Waitable } from '../progress/progress.js';
import type { WakeSources } from '../progress/parking.js';
import { DirectEngine } from '../algorithms/direct-engine.js';
import { callAt, EngineThreadMemory, EXIT, type PlacedCall } from './engine-thread-memory.js';
import { WatchClock } from '../progress/watch-clock.js';

/** Data that a rank passes to its engine thread. */
export interface DirectThreadData {
  readonly segment: SegmentInThread;
  /** The team in which this thread works for the rank. */
  readonly team: { readonly address: number; readonly members: readonly number[]; readonly stageBytes: number };
  readonly localRanks: readonly number[];
  readonly smallBytes: number;
  /** Number of polls before the core is given away. */
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
const memory = new EngineThreadMemory(buffer);
/** Number of the running call. */
let number = -1;

/** The running call. */
class Call implements Waitable {
  readonly polled = true;
  readonly spins = spins;
  readonly parkAfterMs = PARK_AFTER_MS;
  readonly checkEveryMs = limitMs > 0 ? clock.lookEveryMs : Infinity;
  isPending = false;
  failure: Error | undefined;
  #stillSinceMs: number | undefined;

  begin(status: number): void {
    this.isPending = status !== DONE;
    this.#stillSinceMs = undefined;
  }

  poll(looks: number): boolean {
    // The poll before a sleep may have finished it, and a finished operation has no progress to ask for.
    if (!this.isPending) return false;
    const { steps } = engine;
    this.isPending = engine.progress(looks) !== DONE;
    if (this.isPending && engine.steps === steps) return false;
    this.#stillSinceMs = undefined;
    memory.setSteps(engine.steps);
    segment.parkedRanks.wake();
    return true;
  }

  /** Reports the awaited ranks to the rank's thread, which checks time limits, and the wait to the other ranks. */
  check(): void {
    engine.check();
    if (limitMs === 0) return;
    const now = clock.look();
    this.#stillSinceMs ??= now;
    if (now - this.#stillSinceMs <= clock.gapMs) return;
    const call = engine.underWay();
    if (call !== undefined) engine.reportWait(limitMs, { kind: 'collective', number, call });
    memory.setLate(engine.late(limitMs));
  }

  fail(error: unknown): void {
    this.failure = error as Error;
    this.isPending = false;
  }

  wakeOn(sources: WakeSources): void {
    engine.wakeOn(sources);
  }
}

const clock = new WatchClock(limitMs);
const wait = new Call();

parentPort?.postMessage('ready');
try {
  for (let call = memory.take(spins); call.code !== EXIT; call = memory.take(spins)) {
    carryOut(call);
    memory.completed(engine.steps);
  }
  memory.completed(engine.steps);
} catch (error) {
  memory.gaveUp(packReason(error as Error));
}

function carryOut(placed: PlacedCall): void {
  number++;
  const { code, type, root, send, recv, count, details } = callAt(segment.buffer, placed);
  wait.begin(engine.begin(code, type, root, send, recv, count, spins, details));
  segment.parkedRanks.wake();
  if (wait.isPending) progressHere().runUntil(wait, () => !wait.isPending);
  if (wait.failure !== undefined) throw wait.failure;
}
