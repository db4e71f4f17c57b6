import type { PointToPoint } from './p2p.js';
import { describeLate } from '../algorithms/deed.js';
import { CIRCLE, transferTimeout, type LongWait, type TransferOwner } from './p2p-transfer.js';
import type { Libc } from '../device/libc.js';
import type { DataType, NumericArray } from '../device/types.js';
import { InvalidUsageError } from '../../errors.js';
import { leadToCaller, settlerOf } from '../caller-stack.js';
import { Backoff } from '../progress/backoff.js';
import { longWait, shorterLimit, type WaitLimits } from '../progress/wait-limits.js';
import { WatchClock } from '../progress/watch-clock.js';

/** How often ranks that are told of news look after the others' health and the deadline. */
const HEALTH_EVERY_MS = 50;

const finished = Promise.resolve();

/** Those of this thread that have messages of the promise form under way. Whoever waits in place goes on with all of them. */
const underWay = new Set<Messenger>();

/** Something that another rank brings about without a transfer of this one: signals of windows. */
export interface Condition {
  /** Looks once. True when it has come about, and what it took is taken. */
  readonly isMet: () => boolean;
  /** The ranks that can bring it about, for errors. */
  readonly awaited: () => readonly number[];
  /** Whether `isMet` has to be asked again and again; else news wake this rank. */
  readonly polled: boolean;
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
  readonly libc: Libc | undefined;
  /** How many looks in vain before the core is given away. */
  readonly spins: number;
  readonly limits: WaitLimits;
  /** Told once of each message and signal that is waited for for long. */
  readonly warn: (text: string) => void;
  /** The communicator's other operations, which go on while a blocking call waits. */
  readonly collectives: {
    readonly isPending: () => boolean;
    /** Goes on with them. True if they got further. */
    readonly step: () => boolean;
    /** Throws when the communicator cannot go on. */
    readonly check: () => void;
    /** The error for waiting too long for them. */
    readonly timeOut: () => never;
    /** Says once that they have waited for long. */
    readonly warn: () => void;
    /** Tells the other ranks that they get no further here. */
    readonly sayWaits: () => void;
    /** What is known of another rank. */
    readonly doing: (rank: number) => string | undefined;
  };
  /** Where a thread has the rank's sockets: blocks until it has news, of calls too, at most for so long. */
  readonly rest: ((ms: number) => void) | undefined;
  /** Ends the communicator; returns the error. */
  readonly fail: (error: unknown) => unknown;
}

/**
 * Waiting for sends, receives and signals: blocking calls give the core away, promise calls return to the event loop.
 * All that is under way progresses whoever waits.
 */
export class Messenger {
  /** What else is connected with other ranks, and ends with the communicator. */
  readonly guests = new Set<{ abort(reason: Error): void; leave(): Promise<void> }>();
  readonly #parts: MessengerParts;
  readonly #pointToPoint: PointToPoint;
  /** See shorterLimit(). */
  readonly #shorterMs: number;
  readonly #clock: WatchClock;
  readonly #backoff: Backoff;
  readonly #conditions = new Set<Condition>();
  /** When collectives last got further in this wait, as far as was looked; 0: not looked since they did. */
  #collectivesMovedMs = 0;
  /** How the next pump is to come: `later` after a sleep, `news` when a socket has some. */
  #scheduled: 'no' | 'soon' | 'later' | 'news' = 'no';
  #timer: NodeJS.Timeout | undefined;
  /** Called when nothing is under way, for close(). */
  #idle: (() => void) | undefined;

  constructor(parts: MessengerParts) {
    this.#parts = parts;
    this.#pointToPoint = parts.pointToPoint;
    this.#shorterMs = shorterLimit(parts.limits);
    this.#clock = new WatchClock(this.#shorterMs);
    this.#backoff = new Backoff(parts.libc, this.#clock);
  }

  get busy(): boolean {
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
      this.#schedule(true);
    });
  }

  /** A send or receive in the blocking form. */
  run(sends: boolean, peer: number, array: NumericArray, type: DataType): void {
    const p2p = this.#pointToPoint;
    this.#checkBlockingCall(sends, peer);
    const transfer = p2p.add(sends, peer, array, type, undefined);
    this.#try();
    if (!transfer.done) {
      const isDone = (): boolean => transfer.done;
      this.turn(isDone, false);
      this.waitUntil(isDone);
    }
    p2p.recycle(transfer);
  }

  /** Queues transfers without a look at them; `owner` hears of each. `kick` or `waitUntil` starts them. */
  add(sends: boolean, peer: number, array: NumericArray, type: DataType, owner: TransferOwner): void {
    this.#pointToPoint.add(sends, peer, array, type, owner);
  }

  /** Goes on with what was added, from now on by itself. */
  kick(): void {
    this.#try();
    if (this.busy) this.#schedule(true);
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
    this.#schedule(true);
  }

  /** Ends a wait for a condition that nothing brings about any more, if it has not come about. */
  endWait(condition: Condition, inVain: () => Error): void {
    if (!this.#conditions.has(condition)) return;
    const isMet = condition.isMet();
    this.#conditions.delete(condition);
    condition.settled(isMet ? undefined : inVain());
  }

  /**
   * Blocks until `isDone`. Whatever is under way goes on meanwhile.
   * @param turnOthers goes on with what else `isDone` is about
   */
  waitUntil(isDone: () => boolean, turnOthers?: (looksAfterHealth: boolean) => void): void {
    this.#collectivesMovedMs = 0;
    this.#backoff.restart();
    while (!isDone()) {
      const looksAfterHealth = this.#backoff.turn(
        true,
        turnOthers !== undefined || this.#isPolled || this.wantsLooks ? undefined : this.#parts.rest,
      );
      this.turn(isDone, looksAfterHealth);
      if (this.#goOnElsewhere()) this.#backoff.stir();
      turnOthers?.(looksAfterHealth);
    }
  }

  /** Goes on for as long as a rank spins. */
  turn(isDone: () => boolean, looksAfterHealth: boolean): void {
    const { collectives, fail } = this.#parts;
    try {
      if (collectives.isPending()) {
        if (collectives.step()) {
          this.#collectivesMovedMs = 0;
          this.#backoff.restart();
        } else if (looksAfterHealth) this.#checkCollectivesDeadline();
      }
      this.#advance(isDone);
      // What came from a rank before it went counts, however late this one looks.
      if (looksAfterHealth && !isDone()) this.#checkHealth();
    } catch (error) {
      throw leadToCaller(fail(error));
    }
  }

  /**
   * Goes on once, with messages of other communicators, too, for whoever waits in place for something else. True if any
   * got further.
   */
  step(): boolean {
    const moved = this.#progress();
    return this.#goOnElsewhere() || moved;
  }

  /** Whether a rank that waits in place has to look again and again for {@link step}. */
  get wantsLooks(): boolean {
    return this.#pointToPoint.polled || underWay.size > (underWay.has(this) ? 1 : 0);
  }

  /** Throws what another rank of this host ended the communicator with. */
  throwLastWords(): void {
    this.#pointToPoint.throwLastWords();
  }

  /** News from ranks that share no memory with this one. */
  readonly onNews = (): void => {
    if (this.#scheduled !== 'news') return;
    clearTimeout(this.#timer);
    this.#pump();
  };

  /** Whoever waits gets `error`. */
  abort(error: Error): void {
    clearTimeout(this.#timer);
    underWay.delete(this);
    this.#pointToPoint.abort(error);
    for (const guest of this.guests) guest.abort(error);
    for (const condition of this.#conditions) condition.settled(error);
    this.#conditions.clear();
    this.#idle?.();
  }

  /** Finishes what was started, then says goodbye. */
  async close(): Promise<void> {
    if (this.busy) await new Promise<void>((resolve) => (this.#idle = resolve));
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

  /** True if a transfer got further. */
  #progress(): boolean {
    const p2p = this.#pointToPoint;
    if (p2p.pending === 0) return false;
    const { steps } = p2p;
    p2p.progress();
    return p2p.steps !== steps;
  }

  #goOnElsewhere(): boolean {
    let moved = false;
    for (const other of underWay) if (other !== this && other.#goOnQuietly()) moved = true;
    return moved;
  }

  /** Who waits for this communicator's messages hears what became of them. */
  #goOnQuietly(): boolean {
    try {
      return this.#progress();
    } catch (error) {
      this.#parts.fail(error);
      return true;
    }
  }

  #try(): void {
    try {
      this.#pointToPoint.progress();
    } catch (error) {
      throw leadToCaller(this.#parts.fail(error));
    }
  }

  /** Goes on until nothing has moved for so many looks, where looking tells. */
  #advance(isDone: () => boolean): void {
    const p2p = this.#pointToPoint;
    const spins = this.#isPolled ? this.#parts.spins : 0;
    for (let looks = 0; looks <= spins && !isDone(); looks++) {
      // Where this rank sleeps between looks, one is enough.
      if (looks > 0 && this.#backoff.sleepMs > 0) return;
      const { steps } = p2p;
      if (p2p.pending > 0) p2p.progress();
      this.#lookAtConditions();
      if (p2p.steps === steps) continue;
      looks = 0;
      this.#backoff.restart();
    }
  }

  #lookAtConditions(): void {
    for (const condition of this.#conditions) {
      if (!condition.isMet()) continue;
      this.#conditions.delete(condition);
      this.#backoff.restart();
      condition.settled();
    }
  }

  // ── from the event loop ───────────────────────────────────────────────────────────────────────────────────────────

  /** @param first whether nothing was looked at yet: then all that the caller starts together is, before it is waited for */
  #schedule(first = false): void {
    if (this.#scheduled === 'soon') return;
    underWay.add(this);
    const polled = this.#isPolled;
    if (this.#scheduled !== 'no') {
      if (!first && !(polled && this.#scheduled === 'news')) return;
      clearTimeout(this.#timer);
    }
    this.#scheduled = 'soon';
    if (first) {
      this.#backoff.restart();
      queueMicrotask(this.#pump);
    } else if (!polled) {
      this.#scheduled = 'news';
      this.#pointToPoint.listen(true);
      this.#timer = setTimeout(this.#pump, HEALTH_EVERY_MS);
    } else if (this.#backoff.sleepMs > 0) {
      this.#scheduled = 'later';
      this.#timer = setTimeout(this.#pump, this.#backoff.sleepMs);
    } else setImmediate(this.#pump);
  }

  /** Whether only looking again tells all that is new. */
  get #isPolled(): boolean {
    if (this.#pointToPoint.polled) return true;
    for (const condition of this.#conditions) if (condition.polled) return true;
    return false;
  }

  readonly #isIdle = (): boolean => !this.busy;

  readonly #pump = (): void => {
    const timed = this.#scheduled === 'news';
    this.#scheduled = 'no';
    try {
      if (this.#isPolled) this.#advance(this.#isIdle);
      else {
        this.#progress();
        this.#lookAtConditions();
      }
      if (this.busy) {
        if (timed || this.#backoff.turn(false)) this.#checkHealth();
        this.#schedule();
        return;
      }
      underWay.delete(this);
      this.#pointToPoint.listen(false);
      this.#idle?.();
    } catch (error) {
      this.#parts.fail(error);
    }
  };

  // ── failure ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #checkHealth(): void {
    this.#pointToPoint.check();
    this.#parts.collectives.check();
    if (this.#shorterMs === 0) return;
    const {
      rank,
      limits: { timeoutMs, warnAfterMs },
      warn,
    } = this.#parts;
    const now = this.#clock.look();
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

  #ranksBehind({ ranks }: LongWait): number[] {
    return this.#pointToPoint.holdUps(ranks, this.#shorterMs);
  }

  #whom(wait: LongWait): string {
    const p2p = this.#pointToPoint;
    const behind = this.#ranksBehind(wait);
    const doing = (rank: number): string | undefined => p2p.doing(rank) ?? this.#parts.collectives.doing(rank);
    return p2p.isCircle ? describeLate(wait.ranks, doing) + CIRCLE : describeLate(behind, doing);
  }

  /** In a blocking wait, for what else it is about. */
  #checkCollectivesDeadline(): void {
    const {
      limits: { timeoutMs, warnAfterMs },
      collectives,
    } = this.#parts;
    const now = this.#clock.look();
    if (this.#collectivesMovedMs === 0) this.#collectivesMovedMs = now;
    const stillMs = now - this.#collectivesMovedMs;
    if (timeoutMs > 0 && stillMs > timeoutMs) collectives.timeOut();
    if (this.#shorterMs > 0 && stillMs > this.#clock.gapMs) collectives.sayWaits();
    if (warnAfterMs > 0 && stillMs > warnAfterMs) collectives.warn();
  }
}
