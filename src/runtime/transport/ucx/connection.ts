import { lookAtHosts } from '../../bootstrap/liveness.js';
import { packReport, unpackReport, type WaitReport } from '../../device/wait-report.js';
import { describeError, RemoteError, SystemError } from '../../../errors.js';
import { clockMs } from '../../platform/platform.js';
import { Breakage, type WhyGone } from '../../failure/breakage.js';
import { closedHere, closedThere } from '../../failure/reasons.js';
import { packReason, REASON_BYTES, unpackReason } from '../../failure/transfer.js';
import type { AwaitedNews, Connection, FdSources, FifoSize, ReceiveConnection, SendConnection } from '../transport.js';
import type { Tags } from './handshake.js';
import { UCS_IN_PROGRESS, UCS_OK } from './library.js';
import { INBOX_BYTES, type UcxMemory } from './memory.js';
import { NOTE_HEADER_BYTES, noteKinds, noteWords, REPORT_BYTES } from './notes.js';
import type { UcxEndpoint, UcxWorker } from './worker.js';
import { graceMs } from '../../failure/grace.js';
import { defined } from '../../../defined.js';

const HELD_BYTES = 48 * 1024;

/** Parts of a connection. It ends the use of the worker and the endpoint, and frees the memory. */
export interface UcxMeans {
  readonly worker: UcxWorker;
  readonly endpoint: UcxEndpoint;
  readonly memory: UcxMemory;
  readonly tags: Tags;
  readonly whyGone: WhyGone | undefined;
  /** The peer for errors, with its host and address. */
  readonly place: string;
}

/** Common part of both ends: notes, and teardown. */
abstract class UcxConnection implements Connection {
  readonly transport = 'ucx';
  readonly polled = true;
  readonly size: FifoSize;
  /** Error that later calls on this side throw. */
  protected endedHere: Error | undefined;
  /** Error with which the other side ended the connection. */
  protected endedThere: Error | undefined;
  protected readonly worker: UcxWorker;
  protected readonly endpoint: UcxEndpoint;
  protected readonly memory: UcxMemory;
  protected readonly tags: Tags;
  /** True if a receive was begun that may be complete already. */
  protected isFresh = true;
  /** Requests of the slots; 0 where there is none. */
  protected readonly requests: Float64Array;
  /** Messages that the other side has sent in all; undefined while it may send more. */
  protected postedThere: number | undefined;
  readonly #tagOfInbox: bigint;
  readonly #tagOfNotes: bigint;
  readonly #breakage: Breakage;
  readonly #place: string;
  #epoch = -1;
  #inbox = 0;
  #outbox = 0;
  /** Request of the last note. */
  #leaving = 0;
  #saidGoodbye = false;
  #isBroken = false;
  #finishing: Promise<void> | undefined;
  #report: WaitReport | undefined;
  #listener: (() => void) | undefined;

  protected constructor(
    readonly peer: number,
    { worker, endpoint, memory, tags, whyGone, place }: UcxMeans,
    sends: boolean,
  ) {
    this.worker = worker;
    this.endpoint = endpoint;
    this.memory = memory;
    this.tags = tags;
    this.size = memory.size;
    this.requests = new Float64Array(memory.size.steps);
    this.#tagOfInbox = sends ? tags.toSender : tags.toReceiver;
    this.#tagOfNotes = sends ? tags.toReceiver : tags.toSender;
    this.#place = place;
    const explained = (error: Error): void => {
      this.endedThere ??= error;
      this.#listener?.();
    };
    this.#breakage = new Breakage(peer, whyGone, explained, (_, cause) => {
      const why = cause === undefined ? '' : `: ${describeError(cause)}`;
      return new RemoteError('RANK_DIED', `${place} died or cannot be reached${why}`, { rank: peer, cause });
    });
    this.#receiveNote();
  }

  get fd(): number {
    return this.endedHere === undefined && this.endedThere === undefined && !this.#isBroken ? this.worker.fd : -1;
  }

  flush(): boolean {
    if (this.#isSent) return true;
    this.look();
    return this.#isSent;
  }

  wakeOn(sources: FdSources, awaited?: AwaitedNews): void {
    if (this.fd < 0 || (awaited === undefined && this.flush())) return;
    this.worker.arm();
    sources.addFd(this.worker.fd, true, false);
  }

  onNews(listener: (() => void) | undefined): void {
    this.#listener = listener;
  }

  check(): void {
    lookAtHosts();
    if (this.endedHere === undefined) this.look();
    this.endedThere ??= this.#breakage.look();
    if (this.endedHere !== undefined) throw this.endedHere;
    if (this.endedThere !== undefined && !this.hasUnread) throw this.endedThere;
  }

  reportWait(report: readonly number[]): void {
    if (this.endedHere !== undefined || this.endedThere !== undefined) return;
    const bytes = packReport(report, REPORT_BYTES);
    this.sendNote(noteKinds.waits, bytes.length, bytes);
  }

  waitReport(): WaitReport | undefined {
    if (this.endedHere === undefined) this.look();
    return this.#report;
  }

  async close(report: readonly number[] = []): Promise<void> {
    if (this.endedHere === undefined) {
      this.endedHere = closedHere(this.peer);
      this.#leave(noteKinds.goodbye, packReport(report, REPORT_BYTES));
    }
    await (this.#finishing ??= this.#finish(graceMs.deliveryAfterClose));
  }

  abort(reason: Error): void {
    if (this.endedHere !== undefined) return;
    this.endedHere = reason;
    this.#leave(noteKinds.abort, packReason(reason));
    this.#finishing ??= this.#finish(graceMs.deliveryAfterAbort);
  }

  /** True if UCX no longer needs what this side has sent: messages, and notes but the last one. */
  get #isSent(): boolean {
    return this.#outbox === 0 && this.areMessagesSent;
  }

  /** True if UCX no longer needs the messages that this side has sent. */
  protected abstract readonly areMessagesSent: boolean;

  /** True if the caller can still read messages before it gets the error. */
  protected abstract readonly hasUnread: boolean;

  /** Number of sent bytes that the other side may not have read yet. */
  protected abstract readonly unreadBytes: number;

  /** Takes completed requests of slots. */
  protected abstract takeSlots(): void;

  /** The other side has released slots. Returns false if that cannot be. */
  protected abstract takeCredit(slots: number): boolean;

  /** Progresses everything. */
  protected look(): void {
    const { worker } = this;
    worker.progress();
    if (!worker.isClosed && (worker.epoch !== this.#epoch || this.isFresh)) {
      this.#epoch = worker.epoch;
      while (this.#takeAll());
    }
    if (this.endpoint.hasFailed && !this.#isBroken) this.broken(this.endpoint.failure);
  }

  /** Takes arrived data. Returns true if new receives may be complete already. */
  #takeAll(): boolean {
    this.isFresh = false;
    this.takeSlots();
    this.#takeNotes();
    return this.isFresh;
  }

  /** Frees the request and returns true if it is complete. */
  protected isComplete(request: number): boolean {
    const { ucx } = this.worker;
    const status = ucx.statusOf(request);
    if (status === UCS_IN_PROGRESS) return false;
    ucx.free(request);
    if (status !== UCS_OK) this.endpoint.fail(status);
    return true;
  }

  /** Sends a note. Returns false, and sends nothing, while an earlier one is unsent. */
  protected sendNote(kind: number, value: number, payload?: Uint8Array): boolean {
    if (this.#outbox !== 0 || this.#saidGoodbye || this.endpoint.hasFailed) return false;
    this.#outbox = this.#send(this.memory.outbox, kind, value, payload);
    return true;
  }

  /** The connection ended without a goodbye. */
  protected broken(cause: Error | undefined): void {
    this.#isBroken = true;
    if (this.endedThere === undefined && this.endedHere === undefined) this.#breakage.begin(cause);
  }

  /** Number of messages that this side has sent. */
  protected abstract readonly posted: number;

  #send(place: number, kind: number, value: number, payload?: Uint8Array): number {
    const { words, bytes } = this.memory;
    const header = place >>> 2;
    words[header + noteWords.kind] = kind;
    words[header + noteWords.value] = value;
    words[header + noteWords.posted] = this.posted;
    if (payload !== undefined) bytes.set(payload, place + NOTE_HEADER_BYTES);
    return this.endpoint.send(this.memory.to(place), NOTE_HEADER_BYTES + (payload?.length ?? 0), this.#tagOfNotes);
  }

  #receiveNote(): void {
    this.#inbox = this.worker.receive(this.memory.to(this.memory.inbox), INBOX_BYTES, this.#tagOfInbox);
    this.isFresh = true;
  }

  #takeNotes(): void {
    const { ucx } = this.worker;
    if (this.#outbox !== 0 && this.isComplete(this.#outbox)) this.#outbox = 0;
    if (this.#inbox === 0) return;
    const status = ucx.received(this.#inbox);
    if (status === UCS_IN_PROGRESS) return;
    const { receivedBytes } = ucx;
    ucx.free(this.#inbox);
    this.#inbox = 0;
    if (status !== UCS_OK) this.endpoint.fail(status);
    else if (!this.#take(receivedBytes)) this.#invalid();
    else if (this.endedThere === undefined) this.#receiveNote();
  }

  /** Handles the note in the inbox. Returns false if it is none. */
  #take(bytes: number): boolean {
    const { memory } = this;
    const header = memory.inbox >>> 2;
    const value = defined(memory.words[header + noteWords.value]);
    const payload = memory.bytes.subarray(memory.inbox + NOTE_HEADER_BYTES, memory.inbox + Math.max(bytes, NOTE_HEADER_BYTES));
    if (bytes < NOTE_HEADER_BYTES) return false;
    switch (memory.words[header + noteWords.kind]) {
      case noteKinds.credit:
        return this.takeCredit(value);
      case noteKinds.goodbye:
        if (payload.length > 0) this.#report = unpackReport(payload, this.#report);
        this.#endedThere(closedThere(this.peer));
        return true;
      case noteKinds.abort:
        try {
          this.#endedThere(unpackReason(payload, this.peer));
          return true;
        } catch {
          return false;
        }
      case noteKinds.waits:
        this.#report = unpackReport(payload, this.#report);
        return payload.length <= REASON_BYTES;
      default:
        return false;
    }
  }

  /** The other side has ended the connection. The answer confirms that everything has arrived. */
  #endedThere(error: Error): void {
    this.postedThere = defined(this.memory.words[(this.memory.inbox >>> 2) + noteWords.posted]);
    this.endedThere ??= error;
    this.#leave(noteKinds.goodbye);
  }

  #invalid(): void {
    this.endedThere ??= new SystemError(
      'NETWORK',
      `the data from ${this.#place} are not valid: something on the way changed them`,
      { rank: this.peer },
    );
  }

  /** Sends the last note, after all posted messages. */
  #leave(kind: number, payload?: Uint8Array): void {
    if (this.#saidGoodbye) return;
    this.#saidGoodbye = true;
    if (this.endpoint.hasFailed) return;
    const { farewell } = this.memory;
    this.#leaving = this.#send(farewell, kind, payload?.length ?? 0, payload);
  }

  /**
   * Waits until the other side has everything and sends its goodbye, at the latest after `limitMs`. If it computes or is stopped,
   * few bytes count as delivered when UCX has taken them. Notes may be unsent then: other connections to that process may have
   * filled the socket that they share.
   */
  async #finish(limitMs: number): Promise<void> {
    this.#listener = undefined;
    const sinceMs = clockMs();
    const isOver = (): boolean => {
      this.look();
      const waitedMs = clockMs() - sinceMs;
      if (this.endpoint.hasFailed || waitedMs > limitMs) return true;
      if (this.#leaving !== 0 && this.isComplete(this.#leaving)) this.#leaving = 0;
      if (this.endedThere === undefined)
        return waitedMs > graceMs.deliveryOfFew && this.unreadBytes <= HELD_BYTES && this.areMessagesSent;
      return this.#isSent && this.#leaving === 0;
    };
    // A failure of UCX ends the connection, too.
    await this.worker.until(isOver).catch(() => undefined);
    const { worker, memory } = this;
    worker.retire([...this.requests, this.#inbox, this.#outbox, this.#leaving], () => memory.free());
    this.requests.fill(0);
    this.#inbox = this.#outbox = 0;
    worker.release(this.endpoint);
    worker.leave();
  }
}

/** Sends messages from slots. A slot is free again when the receiver has returned its credit and UCX has released it. */
export class UcxSender extends UcxConnection implements SendConnection {
  protected posted = 0;
  #credited = 0;
  /** Number of slots that UCX still sends from. */
  #nSending = 0;
  readonly #lengths: Float64Array;

  constructor(peer: number, means: UcxMeans) {
    super(peer, means, true);
    this.#lengths = new Float64Array(this.size.steps);
  }

  acquire(): number {
    const { memory, requests } = this;
    const { steps } = this.size;
    const slot = this.posted % steps;
    if (
      this.endedHere === undefined &&
      (this.posted - this.#credited === steps || requests[slot] !== 0 || this.endpoint.hasFailed)
    )
      this.look();
    if (this.endedHere !== undefined) throw this.endedHere;
    if (this.endedThere !== undefined) throw this.endedThere;
    return this.posted - this.#credited < steps && requests[slot] === 0 ? memory.at(slot) : -1;
  }

  post(bytes: number): void {
    const { memory } = this;
    const slot = this.posted++ % this.size.steps;
    this.#lengths[slot] = bytes;
    const request = this.endpoint.send(memory.to(memory.at(slot)), bytes, this.tags.data);
    if (request === 0) return;
    this.requests[slot] = request;
    this.#nSending++;
  }

  protected override get areMessagesSent(): boolean {
    return this.#nSending === 0;
  }

  protected override get hasUnread(): boolean {
    return false;
  }

  protected override get unreadBytes(): number {
    let bytes = 0;
    for (let message = this.#credited; message < this.posted; message++)
      bytes += defined(this.#lengths[message % this.size.steps]);
    return bytes;
  }

  protected override takeSlots(): void {
    for (let slot = 0; this.#nSending > 0 && slot < this.requests.length; slot++) {
      const request = defined(this.requests[slot]);
      if (request === 0 || !this.isComplete(request)) continue;
      this.requests[slot] = 0;
      this.#nSending--;
    }
  }

  protected override takeCredit(slots: number): boolean {
    this.#credited += slots;
    return this.#credited <= this.posted;
  }
}

/** Receives messages into slots, each of which has a receive as long as it is free. */
export class UcxReceiver extends UcxConnection implements ReceiveConnection {
  messageBytes = 0;
  protected readonly posted = 0;
  /** Number of messages received and released for which credits have been returned. */
  #came = 0;
  #released = 0;
  #credited = 0;
  /** Length of the messages that were released since the last credit. */
  #owedBytes = 0;
  #isSettling = false;
  readonly #lengths: Float64Array;

  constructor(peer: number, means: UcxMeans) {
    super(peer, means, false);
    this.#lengths = new Float64Array(this.size.steps);
    for (let slot = 0; slot < this.size.steps; slot++) this.#receive(slot);
  }

  peek(): number {
    if (this.endedHere !== undefined) throw this.endedHere;
    if (this.#came === this.#released) {
      this.look();
      if (this.#came === this.#released) {
        if (this.endedThere !== undefined && !this.#isComing) throw this.endedThere;
        return -1;
      }
    }
    const slot = this.#released % this.size.steps;
    this.messageBytes = defined(this.#lengths[slot]);
    return this.memory.at(slot);
  }

  release(): void {
    if (this.endedHere !== undefined) return;
    const slot = this.#released++ % this.size.steps;
    this.#owedBytes += defined(this.#lengths[slot]);
    if (this.postedThere === undefined) this.#receive(slot);
    this.#giveCredits();
  }

  settle(): void {
    if (this.#owedBytes <= HELD_BYTES || this.endedHere !== undefined) return;
    this.#isSettling = true;
    this.#giveCredits();
  }

  override flush(): boolean {
    if (!super.flush()) return false;
    this.#giveCredits();
    return super.flush();
  }

  protected override get hasUnread(): boolean {
    return this.#came !== this.#released || this.#isComing;
  }

  /** Credits are few bytes: nothing to wait for. */
  protected override get unreadBytes(): number {
    return 0;
  }

  protected override get areMessagesSent(): boolean {
    return true;
  }

  protected override takeSlots(): void {
    const { ucx } = this.worker;
    while (true) {
      const slot = this.#came % this.size.steps;
      const request = defined(this.requests[slot]);
      const status = request === 0 ? UCS_IN_PROGRESS : ucx.received(request);
      if (status === UCS_IN_PROGRESS) return;
      this.#lengths[slot] = ucx.receivedBytes;
      ucx.free(request);
      this.requests[slot] = 0;
      if (status !== UCS_OK) {
        this.endpoint.fail(status);
        return;
      }
      this.#came++;
    }
  }

  protected override takeCredit(): boolean {
    return false;
  }

  /** True if messages that were posted before the goodbye have yet to arrive. */
  get #isComing(): boolean {
    return this.postedThere !== undefined && this.#came % 2 ** 32 !== this.postedThere && !this.endpoint.hasFailed;
  }

  #receive(slot: number): void {
    const { memory, worker, tags } = this;
    this.requests[slot] = worker.receive(memory.to(memory.at(slot)), this.size.slotBytes, tags.data);
    this.isFresh = true;
  }

  /** Returns several credits in one note, but immediately when the sender has none left. */
  #giveCredits(): void {
    const credits = this.#released - this.#credited;
    const outstanding = this.#came - this.#credited;
    const { steps } = this.size;
    if (credits === 0 || (credits < steps / 2 && outstanding < steps && !this.#isSettling)) return;
    if (!this.sendNote(noteKinds.credit, credits)) return;
    this.#credited = this.#released;
    this.#owedBytes = 0;
    this.#isSettling = false;
  }
}
