import type { PointToPoint } from './p2p.js';
import type { Found } from './p2p-matching.js';
import { ANY_SOURCE, describeActivity, describeLate, encodeActivity, type Activity } from '../algorithms/activity.js';
import { DEADLOCK, transferTimeout, type AnyReceive, type LongWait, type Transfer, type TransferOwner } from './p2p-transfer.js';
import type { CallRecorder } from '../device/board.js';
import type { ParkedRanks } from '../device/parked-ranks.js';
import type { DataType, NumericArray } from '../device/types.js';
import { InternalError, InvalidUsageError, namingCall, TcclError } from '../../errors.js';
import { addCallerFrames, settlerOf } from '../caller-stack.js';
import type { End } from '../failure/ending.js';
import { parkAfterMs, spinsAt } from '../progress/backoff.js';
import { isTurnDue, nextTurn } from '../progress/event-loop-turns.js';
import type { Progress, Waitable } from '../progress/progress.js';
import type { WakeSources } from '../progress/parking.js';
import { longWait, shorterLimit, timeToLimit, untilWarning, type WaitLimits } from '../progress/wait-limits.js';
import { clockMs } from '../platform/platform.js';
import { WatchClock } from '../progress/watch-clock.js';

const finished = Promise.resolve();

/** A condition that another rank fulfils without a transfer of this rank: signals of windows. */
export interface Condition {
  /** Checks once. If the condition is met, consumes it and returns true. */
  readonly isMet: () => boolean;
  /** The ranks that can fulfil it, for errors. */
  readonly awaited: () => readonly number[];
  /** True if `isMet` has to be polled; otherwise news wakes this rank. */
  readonly polled: boolean;
  /** True if `isMet` makes system calls. */
  readonly overSockets: boolean;
  /** Adds its wake sources. */
  readonly wakeOn: (sources: WakeSources) => void;
  /** Description for errors and warnings. */
  readonly text: string;
  /** The program's call, if errors name it. */
  readonly call?: string;
  /** The same for other ranks; by default an operation of a window. */
  readonly activity?: Activity;
  /** Number of completed steps of a wait with several. */
  readonly steps?: number;
  /** Called when the wait has ended; with an error when the communicator failed. */
  readonly settled: (error?: Error) => void;
  /** Start of the wait, for its deadline. */
  sinceMs?: number;
  /** True after a warning about it. */
  warned?: boolean;
}

interface MessengerParts {
  readonly rank: number;
  readonly pointToPoint: PointToPoint;
  /** Number of polls without progress before the core is given away. */
  readonly spins: number;
  readonly limits: WaitLimits;
  /** Called once for each message or signal that takes long. */
  readonly warn: (text: string) => void;
  /** The communicator's collectives. */
  readonly collectives: {
    /** Throws if the communicator has failed. */
    readonly check: () => void;
    /** Text of another rank's activity, if known. */
    readonly doing: (rank: number) => string | undefined;
  };
  /** Progress of this thread. */
  readonly progress: Progress;
  /** The ranks of this host that share memory with this rank and may be parked. */
  readonly parkedRanks: ParkedRanks;
  readonly recorder: CallRecorder;
  /** Ends the communicator for an error, of a call if one is given; returns the error. */
  readonly fail: (error: unknown, call?: string) => unknown;
  /** The end of the communicator. */
  readonly ending: End;
}

/** Sends, receives and waits for signals in flight. A wait for any of them progresses all. */
export class Messenger implements Waitable {
  /** Other users of connections between two ranks, such as windows; they end with the communicator. */
  readonly dependents = new Set<{ abort(reason: Error): void; leave(): Promise<void> }>();
  readonly #parts: MessengerParts;
  /** Transfers; those queued there wait for {@link kick} or {@link waitUntil}. */
  readonly pointToPoint: PointToPoint;
  readonly #parkedRanks: ParkedRanks;
  /** See shorterLimit(). */
  readonly #shorterMs: number;
  readonly #clock: WatchClock;
  readonly #conditions = new Set<Condition>();
  /** Age of the oldest wait at the last poll. */
  #longestMs = 0;
  /** True if a poll is scheduled at the end of this turn of the event loop. */
  #isStarting = false;
  /** Limit of the time of the blocking call that runs, if it has one. */
  #limit: { readonly clock: WatchClock; readonly look: () => void } | undefined;
  /** Called when nothing is in flight, for close(). */
  #idle: (() => void) | undefined;
  /** True while a blocking call waits. */
  #blocks = false;

  constructor(parts: MessengerParts) {
    this.#parts = parts;
    this.pointToPoint = parts.pointToPoint;
    this.#parkedRanks = parts.parkedRanks;
    this.#shorterMs = shorterLimit(parts.limits);
    this.#clock = new WatchClock(this.#shorterMs);
  }

  get isPending(): boolean {
    return this.pointToPoint.inFlight.pending > 0 || this.#conditions.size > 0 || this.#limit !== undefined;
  }

  /** Name of a call that waits here, in its blocking form where it blocks; undefined if none does. */
  get waiting(): string | undefined {
    return this.#callOf(undefined);
  }

  /** Name of the call that an error ends: a message with one of the error's ranks, if there is one. */
  #callOf(error: unknown): string | undefined {
    const { rank, ranks = [rank ?? -1] } = error instanceof TcclError ? error : ({} as Partial<TcclError>);
    // The rank of a mismatch is the sender.
    const [condition] = this.#conditions;
    const name = this.pointToPoint.inFlight.nameInFlight(ranks, rank === this.#parts.rank) ?? condition?.call;
    return this.#blocks && name?.endsWith('Sync') === false ? `${name}Sync` : name;
  }

  /** Sends or receives all of `array` in the promise form. */
  start(sends: boolean, peer: number, array: NumericArray, type: DataType, tag?: number): Promise<void> {
    const p2p = this.pointToPoint;
    if (sends ? p2p.sendNow(peer, array, type, tag) : p2p.recvNow(peer, array, type, tag, 0)) {
      this.#parkedRanks.wake();
      return isTurnDue() ? nextTurn() : finished;
    }
    const transfer = p2p.add(sends, peer, array, type, undefined, tag);
    this.#try();
    if (transfer.done) {
      p2p.recycle(transfer);
      return isTurnDue() ? nextTurn() : finished;
    }
    return new Promise<void>((resolve) => {
      transfer.owner = { settled: settlerOf(resolve) };
      this.#startLater();
    });
  }

  /** Waits for a message with this tag that the next receive from `peer`, which may be ANY_SOURCE, would take. */
  probe(peer: number, tag: number, settle: (found: Found | Error) => void): Condition {
    const p2p = this.pointToPoint;
    const isAny = peer === ANY_SOURCE;
    const sources = isAny ? p2p.otherRanks : [peer];
    const activity = { kind: 'probe', peer } as const;
    const text = describeActivity(activity);
    let found: Found | undefined;
    const condition: Condition = {
      isMet: () => (found = isAny ? p2p.matching.peekAny(tag) : p2p.matching.peek(peer, tag)) !== undefined,
      awaited: () => sources,
      polled: true,
      overSockets: sources.some((rank) => rank !== this.#parts.rank && p2p.links.localOf(rank) < 0),
      wakeOn: (wake) => {
        for (const rank of sources) p2p.links.wakeOnMessage(rank, wake);
      },
      text,
      call: 'probe',
      activity,
      settled: (error) => settle(error ?? found ?? new InternalError('INTERNAL', `${text} found none`)),
    };
    this.waitFor(condition);
    return condition;
  }

  /** Sends a short message at once; false, without any effect, if it has to wait. */
  sendNow(peer: number, array: NumericArray, type: DataType): boolean {
    if (!this.pointToPoint.sendNow(peer, array, type, undefined)) return false;
    this.#parkedRanks.wake();
    return true;
  }

  /** Sends or receives in the blocking form. */
  run(sends: boolean, peer: number, array: NumericArray, type: DataType, tag?: number): void {
    const p2p = this.pointToPoint;
    if (sends ? p2p.sendNow(peer, array, type, tag) : p2p.recvNow(peer, array, type, tag, this.#polls)) {
      this.#parkedRanks.wake();
      return;
    }
    this.checkBlockingCall(sends ? 'sendSync' : 'recvSync', sends, peer);
    const transfer = p2p.add(sends, peer, array, type, undefined, tag);
    this.#tryInPlace();
    if (!transfer.done) this.waitUntil(() => transfer.done);
    p2p.recycle(transfer);
  }

  /** Withdraws a receive from any rank; see PointToPoint. */
  withdrawAny(any: AnyReceive, error: Error): boolean {
    const isWithdrawn = this.pointToPoint.withdrawAny(any, error);
    if (isWithdrawn) this.#restIfIdle();
    return isWithdrawn;
  }

  /** Withdraws a receive whose message has not begun to arrive; see PointToPoint. */
  withdraw(peer: number, owner: TransferOwner, error: Error): boolean {
    const isWithdrawn = this.pointToPoint.withdraw(peer, owner, error);
    if (isWithdrawn) this.#restIfIdle();
    return isWithdrawn;
  }

  /** Starts queued transfers, which then progress in the background. @param added prepared ones among them */
  kick(added: readonly Transfer[] = []): void {
    this.#try();
    for (const transfer of added) this.pointToPoint.recordWait(transfer);
    if (this.isPending) this.#startLater();
  }

  /** Waits for a condition in the promise form. */
  waitFor(condition: Condition): void {
    let isMet: boolean;
    try {
      isMet = condition.isMet();
    } catch (error) {
      throw this.#failed(error);
    }
    if (isMet) {
      condition.settled();
      return;
    }
    // The failure was reported before: nothing would end this wait.
    this.#throwIfEnded();
    this.#conditions.add(condition);
    this.#startLater();
  }

  /** Ends a wait for a condition that can no longer be met, unless it has been met. */
  endWait(condition: Condition, inVain: () => Error): void {
    if (!this.#conditions.has(condition)) return;
    let isMet = false;
    try {
      isMet = condition.isMet();
    } catch {
      // A rank that has left since cannot fulfil it, either.
    }
    this.#conditions.delete(condition);
    condition.settled(isMet ? undefined : inVain());
  }

  /** Withdraws a wait; false if its condition is met, or can no longer be, which then ends it. */
  withdrawWait(condition: Condition): boolean {
    if (!this.#conditions.has(condition)) return false;
    try {
      if (!condition.isMet()) {
        this.#conditions.delete(condition);
        this.#restIfIdle();
        return true;
      }
    } catch (error) {
      this.fail(error);
      return false;
    }
    this.#conditions.delete(condition);
    condition.settled();
    this.#restIfIdle();
    return false;
  }

  #restIfIdle(): void {
    if (this.isPending) return;
    this.pointToPoint.links.listen(false);
    this.#parts.progress.remove(this);
    this.#idle?.();
  }

  /** Starts a blocking call, whose errors have the name of the blocking form. */
  #tryInPlace(): void {
    this.#blocks = true;
    try {
      this.#try();
    } finally {
      this.#blocks = false;
    }
  }

  /** Blocks until `isDone`. Throws if everything here fails. */
  waitUntil(isDone: () => boolean): void {
    this.#blocks = true;
    try {
      this.#waitUntil(isDone);
    } finally {
      this.#blocks = false;
    }
  }

  #waitUntil(isDone: () => boolean): void {
    try {
      this.poll(this.spins);
    } catch (error) {
      throw this.#failed(error);
    }
    if (isDone()) return;
    this.#parts.progress.runUntil(this, () => isDone() || this.#parts.ending.reason !== undefined);
    if (!isDone()) this.#throwIfEnded();
  }

  #throwIfEnded(): void {
    const { reason } = this.#parts.ending;
    if (reason !== undefined) throw addCallerFrames(reason);
  }

  /** Blocks until `isDone`, for a limited time. False if time was over before. Throws if everything here fails. */
  waitWithin(isDone: () => boolean, timeoutMs: number): boolean {
    const clock = new WatchClock(timeoutMs);
    const endMs = clock.look() + timeoutMs;
    let isOver = false;
    this.#limit = { clock, look: () => (isOver ||= clock.look() >= endMs) };
    this.#parts.progress.checkWithin(timeoutMs);
    try {
      this.waitUntil(() => isDone() || isOver);
    } finally {
      this.#limit = undefined;
    }
    return isDone();
  }

  /** Fails everything in flight with `error`. */
  abort(error: Error): void {
    this.pointToPoint.abort(error);
    for (const dependent of this.dependents) dependent.abort(error);
    for (const condition of this.#conditions) condition.settled(error);
    this.#conditions.clear();
    this.#parts.progress.remove(this);
    this.#idle?.();
  }

  /** Finishes everything that was started, then sends a goodbye. */
  async close(): Promise<void> {
    if (this.isPending) await new Promise<void>((resolve) => (this.#idle = resolve));
    await this.leave();
  }

  /** Sends a goodbye without waiting for transfers in flight. Sends it immediately; resolves when it has been sent. */
  async leave(): Promise<void> {
    await Promise.all([this.pointToPoint.links.close(), ...[...this.dependents].map((dependent) => dependent.leave())]);
  }

  /** Throws `UNSUPPORTED` if this rank needs its event loop to wait for `peer` in a call. */
  checkBlocking(call: string, peer: number): void {
    if (!this.pointToPoint.links.isBlocking(peer)) {
      throw addCallerFrames(
        new InvalidUsageError(
          'UNSUPPORTED',
          this.pointToPoint.links.connectsAll
            ? `${call}: a blocking call cannot wait for rank ${peer}: system calls cannot reach the sockets of this process, since koffi cannot be loaded or this Node.js hides their descriptors; use the promise form`
            : `${call}: a blocking call needs memory shared with rank ${peer}, or a connection that is there before: pass blocking: true to init() on all ranks, or use the promise form`,
          { rank: this.#parts.rank },
        ),
      );
    }
  }

  /** Throws `UNSUPPORTED` if a blocking call would wait for a message that cannot arrive. @param peer rank or ANY_SOURCE */
  checkBlockingCall(call: string, sends: boolean, peer: number): void {
    if (peer === ANY_SOURCE && this.pointToPoint.otherRanks.length > 0) {
      for (const rank of this.pointToPoint.otherRanks) this.checkBlocking(call, rank);
      return;
    }
    if (peer !== ANY_SOURCE) this.checkBlocking(call, peer);
    if ((peer === this.#parts.rank || peer === ANY_SOURCE) && !this.pointToPoint.expectsOwn(sends)) {
      throw addCallerFrames(
        namingCall(
          new InvalidUsageError(
            'UNSUPPORTED',
            `${call}: rank ${this.#parts.rank} would deadlock with itself; start a ${sends ? 'recv' : 'send'} before, or use a group`,
            { rank: this.#parts.rank },
          ),
        ),
      );
    }
  }

  #try(): void {
    try {
      this.pointToPoint.progress();
      this.#parkedRanks.wake();
    } catch (error) {
      throw this.#failed(error);
    }
  }

  // ── going on ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Polls everything that the program starts in this turn together, before the first wait. */
  #startLater(): void {
    // Enlist again: a blocking call may have finished everything meanwhile.
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
    return spinsAt(this.#hasSockets, this.#parts.spins);
  }

  get parkAfterMs(): number {
    return parkAfterMs(this.#hasSockets);
  }

  /** Number of polls of one message alone. */
  get #polls(): number {
    return this.#conditions.size > 0 ? 0 : this.#parts.spins;
  }

  get #hasSockets(): boolean {
    for (const condition of this.#conditions) if (condition.overSockets) return true;
    return this.pointToPoint.inFlight.hasSockets;
  }

  /** True if news is found only by polling. */
  get polled(): boolean {
    if (this.pointToPoint.inFlight.polled) return true;
    for (const condition of this.#conditions) if (condition.polled) return true;
    return false;
  }

  get checkEveryMs(): number {
    const limitMs = this.#limit?.clock.lookEveryMs ?? Infinity;
    if (this.#shorterMs === 0) return limitMs;
    return Math.min(limitMs, this.#clock.lookEveryMs, timeToLimit(this.#parts.limits, this.#longestMs));
  }

  wakeOn(sources: WakeSources): void {
    this.pointToPoint.wakeOn(sources);
    for (const condition of this.#conditions) condition.wakeOn(sources);
  }

  /** Polls until nothing has moved for `spins` polls. */
  poll(spins: number): boolean {
    const p2p = this.pointToPoint;
    let hasMoved = false;
    for (let looks = 0; looks <= spins && this.isPending; looks++) {
      const { steps } = p2p.inFlight;
      if (p2p.inFlight.pending > 0) p2p.progress();
      const moved = this.#conditions.size > 0 && this.#lookAtConditions();
      if (p2p.inFlight.steps === steps && !moved) continue;
      hasMoved = true;
      looks = 0;
      this.#parkedRanks.wake();
    }
    if (!this.isPending) {
      this.#parts.recorder.resolve('message');
      p2p.links.listen(false);
      this.#idle?.();
    }
    return hasMoved;
  }

  fail(error: unknown): void {
    this.#parts.fail(error, this.#callOf(error));
  }

  /** Ends the communicator for an error of a call; returns the error to throw. */
  #failed(error: unknown): unknown {
    return addCallerFrames(this.#parts.fail(error, this.#callOf(error)));
  }

  #lookAtConditions(): boolean {
    let moved = false;
    for (const condition of this.#conditions) {
      const { steps } = condition;
      if (!condition.isMet()) {
        if (condition.steps === steps) continue;
        delete condition.sinceMs;
        moved = true;
        continue;
      }
      this.#conditions.delete(condition);
      moved = true;
      condition.settled();
    }
    return moved;
  }

  // ── failure ───────────────────────────────────────────────────────────────────────────────────────────────────────

  check(): void {
    this.pointToPoint.check();
    this.#parts.collectives.check();
    this.#limit?.look();
    const now = this.#clock.look();
    this.#showWait(now);
    if (this.#shorterMs === 0) return;
    const {
      rank,
      limits,
      limits: { timeoutMs },
      warn,
    } = this.#parts;
    this.#longestMs = now - this.#oldestMs(now);
    const late = timeoutMs === 0 ? undefined : this.#longWait(timeoutMs, now);
    if (late !== undefined) {
      const { ranks, text } = this.#heldUpBy(late);
      throw transferTimeout(rank, limits, late.text, ranks, text);
    }
    const awaited = this.#longWait(this.#clock.gapMs, now);
    if (awaited !== undefined) this.pointToPoint.waits.reportWait(awaited, this.#shorterMs);
    const warnAfterMs = untilWarning(limits, this.#longestMs);
    const warned = warnAfterMs === 0 ? undefined : this.#longWait(warnAfterMs, now, true);
    if (warned !== undefined) warn(longWait(rank, warnAfterMs, warned.text, this.#heldUpBy(warned).text));
  }

  /** Shows the longest wait to other processes. */
  #showWait(now: number): void {
    const { recorder } = this.#parts;
    const wait = this.#longWait(0, now);
    if (wait === undefined) {
      recorder.resolve('message');
      return;
    }
    const stillMs = now - this.#oldestMs(now);
    recorder.report('message', clockMs() - stillMs, stillMs, encodeActivity(wait.activity), wait.ranks);
  }

  /**
   * The wait that is older than `ms`: messages before signals.
   * @param unwarned only waits without a warning so far; they are then marked as warned
   */
  #longWait(ms: number, now: number, unwarned = false): LongWait | undefined {
    const wait = this.pointToPoint.inFlight.longWait(now, ms, unwarned);
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
      activity: condition.activity ?? {
        kind: 'window',
        peer: [...ranks][0] ?? this.#parts.rank,
        isSignal: condition.call === 'waitSignal',
      },
      holds: () => this.#conditions.has(condition),
    };
  }

  #oldestMs(now: number): number {
    let oldest = this.pointToPoint.inFlight.oldestMs(now);
    for (const { sinceMs } of this.#conditions) oldest = Math.min(oldest, sinceMs ?? now);
    return oldest;
  }

  /**
   * The ranks that a wait is for in the end, with what is known of them. In a circle the text has those that it is for directly,
   * and the error names one that waits for a message: it is this rank if those wait in a call that all ranks make.
   */
  #heldUpBy(wait: LongWait): { readonly ranks: readonly number[]; readonly text: string } {
    const p2p = this.pointToPoint.waits;
    const behind = p2p.stragglers(wait.ranks, this.#shorterMs);
    const doing = (rank: number): string | undefined => p2p.doing(rank) ?? this.#parts.collectives.doing(rank);
    if (!p2p.isDeadlock) return { ranks: behind, text: describeLate(behind, doing) };
    const inMessages = wait.ranks.filter((rank) => !p2p.isInCallOfAll(rank));
    const ranks = inMessages.length > 0 ? inMessages : [this.#parts.rank];
    return { ranks, text: describeLate(wait.ranks, doing) + DEADLOCK };
  }
}
