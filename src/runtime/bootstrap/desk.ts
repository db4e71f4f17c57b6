import type { TcclError } from '../../errors.js';
import { clearTimeout, hostname, randomBytes, setTimeout, sleep, type Timer } from '../platform/platform.js';
import { afterWatching, WatchClock } from '../progress/watch-clock.js';
import { inZone, parseAddress } from './address.js';
import type { BootstrapConnection } from './connection.js';
import { dial } from './dial.js';
import { packError } from '../failure/transfer.js';
import { purposes, ROOT_RANK } from './handshake.js';
import { identify } from './identity.js';
import { encodeJson } from './json.js';
import type { Refusal } from './listener.js';
import { otherSource, untilWhen, type Notices } from './notices.js';
import { RollCall, type Arrival } from './roll-call.js';
import { setUpHeader } from './set-up-message.js';
import type { Answer, Confirmation } from './set-up-message.js';
import { graceMs } from '../failure/grace.js';

interface DeskOptions {
  readonly secret: Uint8Array;
  /** Zone of link-local addresses. */
  readonly zone: string | undefined;
  /** After a conflict between ranks, time to wait for one more rank before the ranks get the error. */
  readonly settleMs: number;
  readonly notices: Notices | undefined;
  readonly stopListening: () => void;
  /** The address that ranks look for. */
  readonly addressOf: () => string;
}

/** Part of a rank's remaining time before whose end the root gives up. */
const VERDICT_PART = 1 / 5;

/** Number of ranks that the root answers at the same time. */
const ANSWERS_AT_ONCE = 256;
/**
 * Most ranks whose connections stay open until their answer, so that each side notices the end of the other's process
 * immediately.
 */
const MOST_KEPT = 512;
/** Most addresses of refused connectors that are remembered. */
const MOST_REFUSED = 8;

/** The part of the root where ranks check in and get their answers. */
export class Desk {
  readonly done: Promise<void>;
  readonly #options: DeskOptions;
  readonly #rollCall = new RollCall();
  readonly #processHash = identify().processHash;
  /** Answers being sent on connections of their own. */
  readonly #answering = new Set<AbortController>();
  /** Open connections of check-ins, by instance. */
  readonly #kept = new Map<string, BootstrapConnection>();
  /** Refused connectors, by address. */
  readonly #refused = new Map<string, Refusal>();
  #resolveDone: () => void = () => undefined;
  #isComplete = false;
  #verdict: TcclError | undefined;
  #settled: Timer | undefined;
  /** Ranks that were stopped together with this process are not late. */
  readonly #clock = new WatchClock(Infinity);
  #liftDeadline: () => void = () => undefined;
  #stopNotice: (() => void) | undefined;
  /** Times at which the ranks' time limits end, by instance. */
  readonly #patience = new Map<string, number>();
  #latest = 0;

  constructor(options: DeskOptions) {
    this.#options = options;
    this.done = new Promise((resolve) => (this.#resolveDone = resolve));
  }

  close(): void {
    this.#liftDeadline();
    this.#stopNotice?.();
    clearTimeout(this.#settled);
    this.#options.stopListening();
    for (const giveUp of this.#answering) giveUp.abort();
    for (const connection of this.#kept.values()) void connection.leave();
    this.#resolveDone();
  }

  /** Takes a rank's check-in, and keeps its connection open unless there are too many. */
  checkIn(checkIn: Arrival, connection: BootstrapConnection): void {
    const { instance, remainingMs } = checkIn;
    if (this.#kept.size < MOST_KEPT) this.#kept.set(instance, connection);
    const confirmation: Confirmation = { stays: this.#kept.get(instance) === connection };
    connection.send(setUpHeader, encodeJson(confirmation)).catch(() => undefined); // a lost rank will be missing
    if (!this.#rollCall.add(checkIn)) return;
    const now = this.#clock.look();
    this.#patience.set(instance, now + remainingMs);
    this.#latest = Math.max(this.#latest, now + remainingMs);
    if (this.#verdict !== undefined) {
      void this.#answer(checkIn, failure(this.#verdict));
      this.#closeAt(this.#latest);
      return;
    }
    this.#stopNotice ??= this.#noticeLater(remainingMs);
    this.#consider();
  }

  /** A connection has ended. If its rank was waiting, its process has ended, and another one may take its place. */
  forget(connection: BootstrapConnection): void {
    for (const [instance, kept] of this.#kept) {
      if (kept !== connection) continue;
      this.#kept.delete(instance);
      if (this.#isComplete || this.#verdict !== undefined) return;
      this.#rollCall.remove(instance);
      this.#patience.delete(instance);
      this.#consider();
    }
  }

  /** Remembers a connector that was refused, to name it where ranks are missing. */
  refused(from: string, why: Refusal): void {
    if (this.#refused.size < MOST_REFUSED) this.#refused.set(from, why);
  }

  /** Accepts or refuses the ranks that have arrived, or waits for more. */
  #consider(): void {
    clearTimeout(this.#settled);
    if (this.#rollCall.hasConflict) {
      if (this.#rollCall.isFull) this.#refuse();
      else this.#settled = setTimeout(() => this.#refuse(), this.#options.settleMs).unref();
    } else if (this.#rollCall.isFull) {
      void this.#accept();
    } else if (this.#patience.size > 0) {
      const leftMs = this.#earliestMs - this.#clock.look();
      this.#wait(this.#earliestMs - Math.min(graceMs.rootVerdictAhead, leftMs * VERDICT_PART), () => this.#refuse());
    } else {
      this.#liftDeadline();
    }
  }

  /** Time at which the first limit of a rank ends. */
  get #earliestMs(): number {
    return Math.min(...this.#patience.values());
  }

  /** All ranks have arrived and match: each gets the address of its successor in the ring. */
  async #accept(): Promise<void> {
    this.#isComplete = true;
    this.#liftDeadline();
    const leftMs = this.#earliestMs - this.#clock.look();
    this.#stopNotice?.();
    // Close first, so that the next communicator of these ranks can use the same port.
    this.#options.stopListening();
    const byRank = this.#rollCall.checkIns.sort((a, b) => a.rank - b.rank);
    const sessionNonce = randomBytes(16).toString('hex');
    await this.#answerAll(byRank, ({ rank }) => {
      const { peerAddress = '', source = '' } = byRank[(rank + 1) % byRank.length] ?? {};
      const hint = otherSource(peerAddress, source);
      return { next: peerAddress, sessionNonce, leftMs, ...(hint === undefined ? {} : { hint }) };
    });
    this.close();
  }

  /** All ranks that have arrived, and all that still arrive, get the same error. */
  #refuse(): void {
    this.#liftDeadline();
    this.#stopNotice?.();
    clearTimeout(this.#settled);
    this.#verdict = this.#rollCall.conflict() ?? this.#rollCall.missing(this.#place, this.#refusals);
    const answer = failure(this.#verdict);
    // The others first, because this process may end with the error of its own rank.
    const isOwn = ({ processHash }: Arrival) => processHash === this.#processHash;
    const checkIns = this.#rollCall.checkIns;
    const othersTold = this.#answerAll(
      checkIns.filter((checkIn) => !isOwn(checkIn)),
      () => answer,
    );
    void Promise.race([othersTold, sleep(graceMs.newsOfOthersFirst, { ref: false })]).then(() =>
      this.#answerAll(checkIns.filter(isOwn), () => answer),
    );
    this.#closeAt(this.#latest);
  }

  /** The meeting point in words. */
  get #place(): string {
    return `${this.#options.addressOf()} on ${hostname()}`;
  }

  /** Refused connectors in words; empty if there are none. */
  get #refusals(): string {
    const reasons = { 'other job': 'of another job', 'other secret': 'with another TCCL_COMM_SECRET' };
    const list = [...this.#refused].map(([from, why]) => `a rank ${reasons[why]} from ${from}`);
    return list.length === 0 ? '' : `; it refused ${list.join(', ')}`;
  }

  /** Reports what is waited for, if not all ranks have arrived by then. Returns a function that cancels this. */
  #noticeLater(timeoutMs: number): () => void {
    const { notices } = this.#options;
    if (notices === undefined || notices.afterMs === 0 || notices.afterMs >= timeoutMs) return () => undefined;
    const notice = (): void => {
      if (this.#rollCall.isFull || this.#patience.size === 0) return;
      notices.report(
        `init has waited ${notices.afterMs / 1000} s at the root, ${this.#place}, for ${this.#rollCall.describe()}${untilWhen(timeoutMs)}${this.#refusals}`,
      );
    };
    return afterWatching(notices.afterMs, notice, { ref: false });
  }

  #closeAt(time: number): void {
    this.#wait(Math.max(time, this.#clock.look()) + graceMs.rootStays, () => this.close());
  }

  /** Sets the next action, at a time of the clock. */
  #wait(time: number, action: () => void): void {
    this.#liftDeadline();
    this.#liftDeadline = afterWatching(Math.max(0, time - this.#clock.look()), action, { clock: this.#clock, ref: false });
  }

  /** Resolves when all have their answer or cannot be reached. */
  async #answerAll(checkIns: readonly Arrival[], answer: (checkIn: Arrival) => Answer): Promise<void> {
    const waiting = checkIns.values();
    const worker = async () => {
      for (const checkIn of waiting) await this.#answer(checkIn, answer(checkIn));
    };
    await Promise.all(Array.from({ length: ANSWERS_AT_ONCE }, worker));
  }

  /** Answers on the connection of the check-in, or on one of its own where that is not open. */
  async #answer({ rank, instance, answerAddress, remainingMs }: Arrival, answer: Answer): Promise<void> {
    const kept = this.#kept.get(instance);
    if (kept !== undefined) {
      await kept.send(setUpHeader, encodeJson(answer)).catch(() => undefined); // the rank has ended
      return;
    }
    const giveUp = new AbortController();
    this.#answering.add(giveUp);
    const stopWaiting = afterWatching(remainingMs + graceMs.rootStays, () => giveUp.abort(), { ref: false });
    try {
      const connection = await dial({
        address: inZone(parseAddress(answerAddress), this.#options.zone),
        secret: this.#options.secret,
        greeting: { purpose: purposes.answer, from: ROOT_RANK, to: rank },
        events: { end: () => undefined },
        signal: giveUp.signal,
      });
      await connection.send(setUpHeader, encodeJson(answer));
      await connection.leave();
    } catch {
      // A rank that cannot be reached runs into its own timeout, whose error mentions the missing answer.
    } finally {
      stopWaiting();
      this.#answering.delete(giveUp);
    }
  }
}

function failure(error: TcclError): Answer {
  return { error: packError(error) };
}
