import type { PointToPoint } from './p2p.js';
import { describeLate } from '../algorithms/deed.js';
import { CIRCLE, transferTimeout, type LongWait, type TransferOwner } from './p2p-transfer.js';
import type { Sleepers } from '../device/sleepers.js';
import type { DataType, NumericArray } from '../device/types.js';
import { InvalidUsageError } from '../../errors.js';
import { leadToCaller, settlerOf } from '../caller-stack.js';
import { sleepAfterMs, spinsAt } from '../progress/backoff.js';
import type { Progress, Waitable } from '../progress/progress.js';
import type { Bed } from '../progress/sleeper.js';
import { longWait, shorterLimit, timeToLimit, type WaitLimits } from '../progress/wait-limits.js';
import { WatchClock } from '../progress/watch-clock.js';

const finished = Promise.resolve();

/** Something that another rank brings about without a transfer of this one: signals of windows. */
export interface Condition {
  /** Looks once. True when it has come about, and what it took is taken. */
  readonly isMet: () => boolean;
  /** The ranks that can bring it about, for errors. */
  readonly awaited: () => readonly number[];
  /** Whether `isMet` has to be asked again and again; else news wake this rank. */
  readonly polled: boolean;
  /** Names what wakes this thread for it. */
  readonly sleepOn: (bed: Bed) => void;
  /** What waits, as a person reads it. */
  readonly text: string;
  /** Ends the wait. With an error when the communicator failed. */
  readonly settled: (error?: Error) => void;
  /** For the deadline. */
  sinceMs?: number;
  /** Whether a warning was about it. */
  warned?: boolean;
}

export interface MessengerParts {
  readonly rank: number;
  readonly pointToPoint: PointToPoint;
  /** How many looks in vain before the core is given away. */
  readonly spins: number;
  readonly limits: WaitLimits;
  /** Told once of each message and signal that is waited for for long. */
  readonly warn: (text: string) => void;
  /** The communicator's collectives. */
  readonly collectives: {
    /** Throws when the communicator cannot go on. */
    readonly check: () => void;
    /** What is known of another rank. */
    readonly doing: (rank: number) => string | undefined;
  };
  /** Of this thread. */
  readonly progress: Progress;
  /** Those of this host that share memory with this rank, and may sleep. */
  readonly sleepers: Sleepers;
  /** Where a thread has the rank's sockets: blocks until it has news, of calls too, at most for so long. */
  readonly rest: ((ms: number) => void) | undefined;
  /** Ends the communicator; returns the error. */
  readonly fail: (error: unknown) => unknown;
}

/** Sends, receives and waits for signals that are under way. All of them go on whoever waits. */
export class Messenger implements Waitable {
  /** What else is connected with other ranks, and ends with the communicator. */
  readonly guests = new Set<{ abort(reason: Error): void; leave(): Promise<void> }>();
  readonly #parts: MessengerParts;
  readonly #pointToPoint: PointToPoint;
  readonly #sleepers: Sleepers;
  /** See shorterLimit(). */
  readonly #shorterMs: number;
  readonly #clock: WatchClock;
  readonly #conditions = new Set<Condition>();
  /** How long the oldest of the waits had taken at the last look. */
  #longestMs = 0;
  /** Whether a look is to come at the end of this turn of the event loop, at all that the program started in it. */
  #isStarting = false;
  /** What all that was under way failed with. */
  #failure: Error | undefined;
  /** Called when nothing is under way, for close(). */
  #idle: (() => void) | undefined;

  constructor(parts: MessengerParts) {
    this.#parts = parts;
    this.#pointToPoint = parts.pointToPoint;
    this.#sleepers = parts.sleepers;
    this.#shorterMs = shorterLimit(parts.limits);
    this.#clock = new WatchClock(this.#shorterMs);
  }

  get isPending(): boolean {
    return this.#pointToPoint.pending > 0 || this.#conditions.size > 0;
  }

  /** A send or receive of all of `array` in the promise form. */
  start(sends: boolean, peer: number, array: NumericArray, type: DataType): Promise<void> {
    const p2p = this.#pointToPoint;
    const transfer = p2p.add(sends, peer, array, type, undefined);
    this.#try();
    if (transfer.done) {
      p2p.recycle(transfer);
      return finished;
    }
    return new Promise<void>((resolve) => {
      transfer.owner = { settled: settlerOf(resolve) };
      this.#startLater();
    });
  }

  /** A send or receive in the blocking form. */
  run(sends: boolean, peer: number, array: NumericArray, type: DataType): void {
    const p2p = this.#pointToPoint;
    this.#checkBlockingCall(sends, peer);
    const transfer = p2p.add(sends, peer, array, type, undefined);
    this.#try();
    if (!transfer.done) this.waitUntil(() => transfer.done);
    p2p.recycle(transfer);
  }

  /** Queues transfers without a look at them; `owner` hears of each. `kick` or `waitUntil` starts them. */
  add(sends: boolean, peer: number, array: NumericArray, type: DataType, owner: TransferOwner): void {
    this.#pointToPoint.add(sends, peer, array, type, owner);
  }

  /** Goes on with what was added, from now on by itself. */
  kick(): void {
    this.#try();
    if (this.isPending) this.#startLater();
  }

  /** Waits for a condition in the promise form. */
  waitFor(condition: Condition): void {
    let isMet: boolean;
    try {
      isMet = condition.isMet();
    } catch (error) {
      throw this.#parts.fail(error);
    }
    if (isMet) {
      condition.settled();
      return;
    }
    this.#conditions.add(condition);
    this.#startLater();
  }

  /** Ends a wait for a condition that nothing brings about any more, if it has not come about. */
  endWait(condition: Condition, inVain: () => Error): void {
    if (!this.#conditions.has(condition)) return;
    const isMet = condition.isMet();
    this.#conditions.delete(condition);
    condition.settled(isMet ? undefined : inVain());
  }

  /** Blocks until `isDone`, or all here fails, which it throws. */
  waitUntil(isDone: () => boolean): void {
    try {
      this.poll(this.spins);
    } catch (error) {
      throw leadToCaller(this.#parts.fail(error));
    }
    this.#parts.progress.runUntil(this, () => isDone() || this.#failure !== undefined);
    if (this.#failure !== undefined && !isDone()) throw leadToCaller(this.#failure);
  }

  /** Throws what another rank of this host ended the communicator with. */
  throwLastWords(): void {
    this.#pointToPoint.throwLastWords();
  }

  /** Whoever waits gets `error`. */
  abort(error: Error): void {
    this.#failure = error;
    this.#pointToPoint.abort(error);
    for (const guest of this.guests) guest.abort(error);
    for (const condition of this.#conditions) condition.settled(error);
    this.#conditions.clear();
    this.#parts.progress.remove(this);
    this.#idle?.();
  }

  /** Finishes what was started, then says goodbye. */
  async close(): Promise<void> {
    if (this.isPending) await new Promise<void>((resolve) => (this.#idle = resolve));
    await this.leave();
  }

  /** Says goodbye, whatever is under way. It is said at once; resolves when it has gone. */
  async leave(): Promise<void> {
    await Promise.all([this.#pointToPoint.close(), ...[...this.guests].map((guest) => guest.leave())]);
  }

  /** Throws `UNSUPPORTED` where this rank cannot wait for `peer` without its event loop. */
  checkBlocking(peer: number): void {
    if (!this.#pointToPoint.isBlocking(peer)) {
      throw leadToCaller(
        new InvalidUsageError(
          'UNSUPPORTED',
          `a blocking call needs memory shared with rank ${peer}, but this rank talks with it over sockets: pass blocking: true to init() on all ranks, which gives those to a thread of their own, or use the promise form`,
          { rank: this.#parts.rank },
        ),
      );
    }
  }

  #checkBlockingCall(sends: boolean, peer: number): void {
    this.checkBlocking(peer);
    if (peer === this.#parts.rank && !this.#pointToPoint.expectsOwn(sends)) {
      throw leadToCaller(
        new InvalidUsageError(
          'UNSUPPORTED',
          `rank ${peer} would wait for itself for ever: ${sends ? 'sendSync' : 'recvSync'} to itself needs a ${sends ? 'recv' : 'send'} that was started before, or a group`,
          { rank: peer },
        ),
      );
    }
  }

  #try(): void {
    try {
      this.#pointToPoint.progress();
      this.#sleepers.ring();
    } catch (error) {
      throw leadToCaller(this.#parts.fail(error));
    }
  }

  // ── going on ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Looks at all that the program starts together before it is waited for. */
  #startLater(): void {
    // Again, too: a blocking call that came between may have ended all that was under way before.
    this.#parts.progress.enlist(this);
    if (this.#isStarting) return;
    this.#isStarting = true;
    queueMicrotask(() => {
      this.#isStarting = false;
      try {
        this.poll(this.polled ? this.spins : 0);
      } catch (error) {
        this.fail(error);
      }
      if (this.isPending) this.#parts.progress.add(this);
    });
  }

  get spins(): number {
    return spinsAt(this.#pointToPoint.hasSockets, this.#parts.spins);
  }

  get sleepAfterMs(): number {
    return sleepAfterMs(this.#pointToPoint.hasSockets);
  }

  /** Whether only looking again tells all that is new. */
  get polled(): boolean {
    if (this.#pointToPoint.polled) return true;
    for (const condition of this.#conditions) if (condition.polled) return true;
    return false;
  }

  get rest(): ((ms: number) => void) | undefined {
    return this.#parts.rest;
  }

  get checkEveryMs(): number {
    if (this.#shorterMs === 0) return Infinity;
    return Math.min(this.#clock.lookEveryMs, timeToLimit(this.#parts.limits, this.#longestMs));
  }

  sleepOn(bed: Bed): void {
    this.#pointToPoint.sleepOn(bed);
    for (const condition of this.#conditions) condition.sleepOn(bed);
  }

  /** Goes on until nothing has moved for so many looks. */
  poll(spins: number): boolean {
    const p2p = this.#pointToPoint;
    let moved = false;
    for (let looks = 0; looks <= spins && this.isPending; looks++) {
      const { steps } = p2p;
      if (p2p.pending > 0) p2p.progress();
      const isMet = this.#lookAtConditions();
      if (p2p.steps === steps && !isMet) continue;
      moved = true;
      looks = 0;
      this.#sleepers.ring();
    }
    if (!this.isPending) {
      p2p.listen(false);
      this.#idle?.();
    }
    return moved;
  }

  fail(error: unknown): void {
    this.#parts.fail(error);
  }

  #lookAtConditions(): boolean {
    let isMet = false;
    for (const condition of this.#conditions) {
      if (!condition.isMet()) continue;
      this.#conditions.delete(condition);
      isMet = true;
      condition.settled();
    }
    return isMet;
  }

  // ── failure ───────────────────────────────────────────────────────────────────────────────────────────────────────

  check(): void {
    this.#pointToPoint.check();
    try {
      this.#parts.collectives.check();
    } catch (error) {
      // As CallQueue.check().
      this.#pointToPoint.throwLastWords();
      throw error;
    }
    if (this.#shorterMs === 0) return;
    const {
      rank,
      limits: { timeoutMs, warnAfterMs },
      warn,
    } = this.#parts;
    const now = this.#clock.look();
    this.#longestMs = now - this.#oldestMs(now);
    const late = timeoutMs === 0 ? undefined : this.#longWait(timeoutMs, now);
    if (late !== undefined) throw transferTimeout(rank, timeoutMs, late.text, this.#ranksBehind(late), this.#whom(late));
    const awaited = this.#longWait(this.#clock.gapMs, now);
    if (awaited !== undefined) this.#pointToPoint.sayWaits(awaited, this.#shorterMs);
    const warned = warnAfterMs === 0 ? undefined : this.#longWait(warnAfterMs, now, true);
    if (warned !== undefined) warn(longWait(rank, warnAfterMs, warned.text, this.#whom(warned)));
  }

  /**
   * What this rank has waited for longer than that: messages before signals.
   * @param unwarned only what no warning was about yet, which is then remembered
   */
  #longWait(ms: number, now: number, unwarned = false): LongWait | undefined {
    const wait = this.#pointToPoint.longWait(now, ms, unwarned);
    const ranks = new Set(wait?.ranks);
    let first: Condition | undefined;
    for (const condition of this.#conditions) {
      condition.sinceMs ??= now;
      if (now - condition.sinceMs <= ms || (unwarned && condition.warned === true)) continue;
      if (unwarned) condition.warned = true;
      first ??= condition;
      for (const rank of condition.awaited()) ranks.add(rank);
    }
    if (wait !== undefined) return { ...wait, ranks: [...ranks] };
    if (first === undefined) return undefined;
    const condition = first;
    return {
      text: condition.text,
      ranks: [...ranks],
      deed: { kind: 'window', peer: [...ranks][0] ?? this.#parts.rank },
      holds: () => this.#conditions.has(condition),
    };
  }

  #oldestMs(now: number): number {
    let oldest = this.#pointToPoint.oldestMs(now);
    for (const { sinceMs } of this.#conditions) oldest = Math.min(oldest, sinceMs ?? now);
    return oldest;
  }

  #ranksBehind({ ranks }: LongWait): number[] {
    return this.#pointToPoint.holdUps(ranks, this.#shorterMs);
  }

  #whom(wait: LongWait): string {
    const p2p = this.#pointToPoint;
    const behind = this.#ranksBehind(wait);
    const doing = (rank: number): string | undefined => p2p.doing(rank) ?? this.#parts.collectives.doing(rank);
    return p2p.isCircle ? describeLate(wait.ranks, doing) + CIRCLE : describeLate(behind, doing);
  }
}
