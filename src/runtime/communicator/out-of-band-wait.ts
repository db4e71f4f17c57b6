import type { WaitQueries } from '../bootstrap/wait-queries.js';
import { describeLate, isOfRest, type OutOfBandCall } from '../algorithms/activity.js';
import { WaitChains, type Awaited } from '../algorithms/wait-chains.js';
import { clearInterval, clockMs, setImmediate, setInterval, setTimeout, type Timer } from '../platform/platform.js';
import { afterWatching, WatchClock } from '../progress/watch-clock.js';
import { graceMs } from '../failure/grace.js';
import { onAbort } from '../abort-signals.js';
import { defined } from '../../defined.js';

interface OutOfBandWaitParts {
  readonly call: OutOfBandCall;
  readonly rank: number;
  readonly nRanks: number;
  /** Line to the ranks in the same call; closed with the wait. */
  readonly queries: WaitQueries;
  /** The communicator's own wait reports, if there is one yet. */
  readonly elsewhere?: Elsewhere;
}

/** Reports between this rank and ranks that are in other calls of the communicator. */
export interface Elsewhere {
  /** Reports this rank's wait as long as `holds` returns true. */
  readonly report: (words: readonly number[], holds: () => boolean) => void;
  /** Shows the ranks that hold the call up to other processes. */
  readonly show: (late: readonly number[]) => void;
  /** Asks ranks for their reports. */
  readonly ask: (ranks: readonly number[]) => void;
  /** Their reports, by rank. */
  readonly reports: readonly Awaited[];
}

/**
 * Finds the ranks that hold up a call of all ranks over the bootstrap network: at the ends of the wait chains, ranks that are in
 * no such call, or do not answer.
 */
export class OutOfBandWait {
  readonly #parts: OutOfBandWaitParts;
  readonly #timeoutMs: number;
  readonly #limitMs: number;
  readonly #waitChains: WaitChains;
  /** For reports of ranks that are elsewhere. */
  readonly #others: WaitChains;
  readonly #peers: readonly Awaited[];
  readonly #clock: WatchClock;
  readonly #looks: Timer;
  #isOver = false;
  /** Reports this rank's wait to ranks that are no longer in the call. */
  #report: ((words: readonly number[]) => void) | undefined;

  constructor(parts: OutOfBandWaitParts, timeoutMs: number) {
    const { rank, nRanks, queries } = parts;
    this.#parts = parts;
    this.#timeoutMs = timeoutMs;
    this.#limitMs = Math.min(timeoutMs, graceMs.waitReports);
    this.#waitChains = new WaitChains(rank);
    this.#others = new WaitChains(rank);
    this.#peers = Array.from({ length: nRanks }, (_, peer) => ({ peer, waitReport: () => queries.answer(peer) }));
    queries.setDefaultAnswer(() => this.#words());
    const clock = (this.#clock = new WatchClock(this.#limitMs));
    const begunMs = clock.look();
    this.#looks = clock.every(() => {
      if (clock.look() - begunMs > clock.gapMs) this.#look();
    });
  }

  /** Reports this wait to ranks that have left the call, too. */
  reportsBy(report: (words: readonly number[]) => void): void {
    this.#report = report;
  }

  /**
   * The ranks that hold the call up, as far as known. Ranks that still wait in the barrier with which the call begins have opened
   * no queries for it, so they seem silent: those that they wait for, by their reports elsewhere, take their place.
   */
  late(): number[] {
    const late = this.#waitChains.find(this.#awaited(), this.#limitMs);
    const { elsewhere, call } = this.#parts;
    // Ranks that wait in a collective have not called it.
    if (elsewhere === undefined || isOfRest(call)) return late;
    const meeting = late.filter((rank) => this.#others.isInCallOfAll(rank));
    if (meeting.length === 0) return late;
    const behind = this.#others.find(reportsOf(elsewhere, meeting), this.#timeoutMs);
    return [...new Set([...late.filter((rank) => !meeting.includes(rank)), ...behind])].sort((a, b) => a - b);
  }

  /** Text of these ranks, with the calls of those that wait elsewhere. */
  describe(late: readonly number[]): string {
    return describeLate(late, (rank) => this.#others.doing(rank));
  }

  /** Calls `found` with these ranks once they are known, or after some time with those that this rank waits for itself. */
  findLate(found: (late: readonly number[]) => void): void {
    const endMs = clockMs() + 3 * this.#waitChains.validityMs(this.#limitMs);
    const look = (): void => {
      if (this.#isOver) return;
      this.#look();
      if (this.#waitChains.isSure || clockMs() >= endMs) found(this.late());
      else setTimeout(look, this.#clock.lookEveryMs / 2);
    };
    look();
  }

  close(): void {
    this.#isOver = true;
    clearInterval(this.#looks);
    this.#parts.queries.close();
  }

  #look(): void {
    const { queries, elsewhere } = this.#parts;
    queries.ask(queries.awaited());
    this.#report?.(this.#words());
    if (elsewhere === undefined) return;
    elsewhere.report(this.#words(), () => !this.#isOver);
    const late = this.#waitChains.find(this.#awaited(), this.#limitMs);
    elsewhere.ask(late);
    elsewhere.show(late);
    this.#others.find(reportsOf(elsewhere, late), this.#timeoutMs);
  }

  #words(): readonly number[] {
    return this.#waitChains.look(this.#awaited(), this.#limitMs, { kind: 'outOfBand', call: this.#parts.call });
  }

  #awaited(): Awaited[] {
    return this.#parts.queries.awaited().map((peer) => defined(this.#peers[peer]));
  }
}

function reportsOf({ reports }: Elsewhere, ranks: readonly number[]): Awaited[] {
  return ranks.flatMap((rank) => reports[rank] ?? []);
}

/**
 * Returns the result of `work`, or rejects with the signal's reason, unless `work` rejects in the same turn of the event loop: it
 * may name the awaited ranks more precisely.
 */
export function cutOff<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const stopped = new Promise<never>((_, reject) => {
    onAbort(signal, () => setImmediate(() => reject(signal.reason as Error)));
  });
  return Promise.race([work, stopped]);
}

/** The time limit of a call, from its construction on. Its parts, one after the other, set what happens at its end. */
export class TimeLimit {
  readonly #stop: () => void;
  #isOver = false;
  #end: (() => void) | undefined;

  constructor(readonly ms: number) {
    this.#stop = afterWatching(ms, () => {
      this.#isOver = true;
      this.#end?.();
    });
  }

  /** Calls `end` when the time is over, which may be now. */
  whenOver(end: (() => void) | undefined): void {
    this.#end = end;
    if (this.#isOver) end?.();
  }

  lift(): void {
    this.#end = undefined;
    this.#stop();
  }
}

/** Ends of a call over the bootstrap network. */
interface Ends {
  readonly limit: TimeLimit;
  /** Makes the error for the end of the time, given the ranks that hold the call up. */
  readonly tooLate: (late: readonly number[]) => Error;
  readonly signal: AbortSignal | undefined;
  /** Throws if a rank that is needed is gone. */
  readonly check?: (() => void) | undefined;
}

/**
 * Returns the result of `work`, which ends soon after its signal: aborted when the time is over and the ranks that hold the call
 * up are known, when `signal` is, or when `check` throws.
 *
 * @param work also gets a signal that is aborted as soon as the time is over
 */
export async function whileOthersCan<T>(
  wait: OutOfBandWait,
  { limit, tooLate, signal, check }: Ends,
  work: (signal: AbortSignal, over: AbortSignal) => Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  const over = new AbortController();
  const end = (reason: unknown): void => {
    over.abort(reason);
    stop.abort(reason);
  };
  const stopListening = onAbort(signal, () => end(signal?.reason));
  limit.whenOver(() => {
    over.abort(tooLate(wait.late()));
    wait.findLate((late) => stop.abort(tooLate(late)));
  });
  const look =
    check &&
    setInterval(() => {
      try {
        check();
      } catch (error) {
        end(error);
      }
    }, graceMs.presence);
  try {
    return await work(stop.signal, over.signal);
  } finally {
    clearInterval(look);
    stopListening();
    limit.lift();
    wait.close();
  }
}
