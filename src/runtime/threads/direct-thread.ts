// Thread that carries out calls for a rank in shared memory; started by direct-threads.ts.
import { parentPort, workerData } from '#platform/threads';
import { DONE } from '../device/kernels/kernels.js';
import { loadLibc } from '../device/libc.js';
import { Segment } from '../device/segment.js';
import { Team } from '../device/team.js';
import type { EngineThreadData } from './start-thread.js';
import { onExit } from '../exit.js';
import { packReason } from '../failure/transfer.js';
import { PARK_AFTER_MS } from '../progress/backoff.js';
import { progressHere, type Waitable } from '../progress/progress.js';
import type { WakeSources } from '../progress/parking.js';
import { DirectEngine } from '../algorithms/memory/direct-engine.js';
import { callAt, DIE, EngineThreadMemory, EXIT, type PlacedCall } from './engine-thread-memory.js';
import { shorterOf } from '../progress/wait-limits.js';
import { WatchClock } from '../progress/watch-clock.js';

/** Data that a rank passes to its engine thread. */
export interface DirectThreadData extends EngineThreadData {
  /** The team in which this thread works for the rank. */
  readonly team: { readonly address: number; readonly members: readonly number[]; readonly stageBytes: number };
  readonly localRanks: readonly number[];
  readonly smallBytes: number;
  /** Number of polls before the core is given away. */
  readonly spins: number;
  /** Time limit of calls without one of their own. */
  readonly limitMs: number;
}

const {
  segment: place,
  team: { address, members, stageBytes },
  localRanks,
  smallBytes,
  spins,
  limitMs: usualMs,
  buffer,
} = workerData as DirectThreadData;
const { libc } = loadLibc();
const segment = Segment.inThread(place, libc);
const engine = new DirectEngine(new Team(segment, address, members, false, stageBytes), localRanks, libc, smallBytes, stageBytes);
const memory = new EngineThreadMemory(buffer);
// The newest listener runs first, so everything else is closed by then.
onExit(() => memory.ended());
/** Number of the running call. */
let number = -1;

/** The running call. */
class Call implements Waitable {
  readonly polled = true;
  readonly spins = spins;
  readonly parkAfterMs = PARK_AFTER_MS;
  isPending = false;
  failure: Error | undefined;
  /** Time limit of the running call, and a clock for it. */
  #limitMs = usualMs;
  #clock = new WatchClock(usualMs);
  #stillSinceMs: number | undefined;

  /** @param ownMs limit of this call alone, if it has one */
  begin(status: number, ownMs = 0): void {
    this.isPending = status !== DONE;
    this.#stillSinceMs = undefined;
    const limitMs = shorterOf(ownMs, usualMs);
    if (limitMs === this.#limitMs) return;
    this.#limitMs = limitMs;
    this.#clock = new WatchClock(limitMs);
  }

  get checkEveryMs(): number {
    return this.#limitMs > 0 ? this.#clock.lookEveryMs : Infinity;
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
    if (memory.isDying) process.exit();
    engine.check();
    const limitMs = this.#limitMs;
    if (limitMs === 0) return;
    const now = this.#clock.look();
    this.#stillSinceMs ??= now;
    if (now - this.#stillSinceMs <= this.#clock.gapMs) return;
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

const wait = new Call();

parentPort?.postMessage('ready');
try {
  let call = memory.take(spins);
  for (; call.code !== EXIT && call.code !== DIE; call = memory.take(spins)) {
    carryOut(call);
    memory.completed(engine.steps);
  }
  if (call.code === EXIT) memory.completed(engine.steps);
} catch (error) {
  memory.gaveUp(packReason(error as Error));
}

function carryOut(placed: PlacedCall): void {
  number++;
  const call = callAt(segment.buffer, placed);
  wait.begin(engine.begin(call, spins), call.details?.limitMs);
  segment.parkedRanks.wake();
  if (wait.isPending) progressHere().runUntil(wait, () => !wait.isPending);
  if (wait.failure !== undefined) throw wait.failure;
}
