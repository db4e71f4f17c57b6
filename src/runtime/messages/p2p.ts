import type { WaitQueries } from '../bootstrap/wait-queries.js';
import type { CallRecorder } from '../device/board.js';
import type { Libc } from '../device/libc.js';
import type { DataType, NumericArray } from '../device/types.js';
import { TcclError } from '../../errors.js';
import { closedThere } from '../failure/reasons.js';
import { defined } from '../../defined.js';
import { packReason } from '../failure/transfer.js';
import type { Observe } from '../algorithms/operation.js';
import { ANY_SOURCE } from '../algorithms/activity.js';
import type { WakeSources } from '../progress/parking.js';
import { InFlight, operationOf } from './p2p-in-flight.js';
import { Links, type LinksParts, type Peer } from './p2p-links.js';
import { EAGER_BYTES, PACKED_BYTES, type Inbox } from './p2p-mailbox.js';
import { Passage } from './passage.js';
import type { SocketInlet } from './p2p-socket.js';
import { addNextPart, Matching, unlink } from './p2p-matching.js';
import { ANY_TAG, AnyReceive, Transfer, transferMismatch, type TransferOwner } from './p2p-transfer.js';
import { WaitReports } from './p2p-wait-reports.js';

interface PointToPointOptions extends LinksParts {
  readonly libc: Libc | undefined;
  /** Queries to ranks that share no memory about their waits; without it they report on their connections only. */
  readonly waitQueries?: WaitQueries | undefined;
  /** Reports this rank's wait to ranks that may wait for it in a collective. */
  readonly forwardInCalls: (report: readonly number[]) => void;
  /** Observer of transfers, if the communicator is observed. */
  readonly observe?: Observe | undefined;
}

/**
 * Send and receive. All transfers in flight progress at the same time; those from one rank to another are matched in order.
 * Nothing here waits; the link to another rank is made at first use: a mailbox in shared memory (p2p-mailbox.ts), or sockets
 * (p2p-socket.ts).
 */
export class PointToPoint {
  readonly inFlight: InFlight;
  readonly links: Links;
  readonly matching: Matching;
  /** Records the transfers of a communicator. */
  recorder: CallRecorder | undefined;
  readonly #options: PointToPointOptions;
  readonly #spare: Transfer[] = [];
  /** Short arrays outside the segment on their way out and in. */
  readonly #out: Passage;
  readonly #in: Passage;
  readonly otherRanks: readonly number[];
  /** Reports of waits, this rank's and those of others. */
  readonly waits: WaitReports;

  constructor(options: PointToPointOptions) {
    this.#options = options;
    this.links = new Links(options);
    this.inFlight = new InFlight(options.bootstrap.rank);
    const { rank: own, nRanks } = options.bootstrap;
    this.otherRanks = Array.from({ length: nRanks }, (_, rank) => rank).filter((rank) => rank !== own);
    const { team, shared, waitQueries, forwardInCalls } = options;
    this.#out = new Passage(team, EAGER_BYTES);
    this.#in = new Passage(team, EAGER_BYTES);
    this.waits = new WaitReports({
      rank: own,
      team,
      shared,
      waitQueries,
      forwardInCalls,
      localOf: (rank) => this.links.localOf(rank),
      isPending: () => this.inFlight.pending > 0,
      peers: this.links.peers,
    });
    this.matching = new Matching({
      ownRank: own,
      nRanks,
      links: this.links,
      inFlight: this.inFlight,
      spare: () => this.#spareTransfer(),
      recycle: (transfer) => this.recycle(transfer),
      finish: (transfer) => this.#finish(transfer),
      mismatch: (...message) => this.#mismatch(...message),
    });
  }

  /** True if a transfer from this rank to itself waits for its counterpart of this direction. */
  expectsOwn(sends: boolean): boolean {
    const own = this.links.peers[this.#options.bootstrap.rank];
    return (sends ? own?.receives : own?.sends) !== undefined;
  }

  /**
   * Queues a transfer of all of `array`. `progress` carries it out.
   * @param tag by default 0 for a send, any for a receive
   * @throws SystemError `OUT_OF_MEMORY`; then nothing is queued
   */
  add(
    sends: boolean,
    rank: number,
    array: NumericArray,
    type: DataType,
    owner: TransferOwner | undefined,
    tag?: number,
  ): Transfer {
    const transfer = this.prepare(sends, rank, array, type, owner, tag);
    this.addPrepared(transfer);
    this.recordWait(transfer);
    return transfer;
  }

  /** A transfer of all of `array` that is not queued yet. */
  prepare(
    sends: boolean,
    rank: number,
    array: NumericArray,
    type: DataType,
    owner: TransferOwner | undefined,
    tag: number | undefined,
  ): Transfer {
    const transfer = this.#spareTransfer();
    transfer.set(sends, rank, array, type, owner, tag);
    return transfer;
  }

  /** Queues a transfer like {@link add}. If it is not done after progress(), it takes recordWait(). */
  addPrepared(transfer: Transfer): void {
    this.#queue(transfer);
    this.#begun(transfer);
  }

  /** Shows in the ring of calls that a transfer waits. */
  recordWait(transfer: Transfer): void {
    const { sends, peer, type, count, entry, done } = transfer;
    if (done || entry >= 0 || this.recorder === undefined) return;
    transfer.entry = this.recorder.beginMessage(sends, peer, type.code, count);
  }

  /** Sends a short message in shared memory, unless another one or an observer waits. False, without any effect, otherwise. */
  sendNow(rank: number, array: NumericArray, type: DataType, tag = 0): boolean {
    const bytes = array.length * type.bytes;
    const peer = this.links.peers[rank];
    if (bytes > EAGER_BYTES || peer === undefined || peer.posting !== undefined) return false;
    const { outlet } = peer;
    if (outlet?.shared !== true || this.#options.observe !== undefined) return false;
    const source = this.#out.enter(array, type);
    if (source === 0 || !outlet.postNow(type.code | (tag << 8), array.length, source, bytes)) return false;
    this.inFlight.steps++;
    this.recorder?.addMessage(true, rank, type.code, array.length);
    return true;
  }

  /** Receives like {@link sendNow} a message that arrives within so many polls. */
  recvNow(rank: number, array: NumericArray, type: DataType, tag = ANY_TAG, spins = 0): boolean {
    const bytes = array.length * type.bytes;
    const peer = this.links.peers[rank];
    if (bytes > EAGER_BYTES || peer === undefined || peer.receives !== undefined || peer.sorts) return false;
    const { inlet } = peer;
    if (inlet?.shared !== true || this.#options.observe !== undefined) return false;
    const address = this.#in.addressFor(array, type);
    if (address === 0) return false;
    const isAny = tag === ANY_TAG;
    const word = isAny ? type.code : type.code | (tag << 8);
    const polls = this.inFlight.pending > 0 ? 0 : spins;
    if (!inlet.pullNow(isAny ? 255 : -1, word, array.length, address, bytes, polls)) return false;
    this.#in.leave(address, array);
    this.inFlight.steps++;
    this.recorder?.addMessage(false, rank, type.code, array.length);
    return true;
  }

  #queue(transfer: Transfer): void {
    const peer = this.links.of(transfer.peer);
    if (transfer.sends) this.links.outletOf(peer);
    else this.links.inletOf(peer);
    this.inFlight.add(peer);
    if (transfer.sends) {
      if (peer.lastSend !== undefined) peer.lastSend.next = transfer;
      peer.lastSend = transfer;
      peer.sends ??= transfer;
      peer.posting ??= transfer;
    } else {
      if (peer.lastReceive !== undefined) peer.lastReceive.next = transfer;
      peer.lastReceive = transfer;
      peer.receives ??= transfer;
      if (transfer.tag !== ANY_TAG) peer.sorts = true;
    }
  }

  /** Queues a receive of all of `array` from any rank, also from this one. Its owner is called once. */
  addAny(array: NumericArray, type: DataType, owner: TransferOwner, tag: number, atMost: boolean): AnyReceive {
    const any = new AnyReceive(owner);
    const { nRanks } = this.#options.bootstrap;
    // The last peer in the list of busy ones is polled first: the one after the last source.
    for (let i = 0; i < nRanks; i++) {
      const place = this.prepare(false, (this.matching.lastSource + nRanks - i) % nRanks, array, type, owner, tag);
      this.#queue(place);
      place.any = any;
      place.atMost = atMost;
      any.places.set(place.peer, place);
      const peer = this.links.peers[place.peer];
      if (peer !== undefined) peer.sorts = true;
      this.inFlight.pending++;
      if (i === 0) any.ended = this.#options.observe?.(operationOf(place));
    }
    if (this.recorder !== undefined) any.entry = this.recorder.beginMessage(false, ANY_SOURCE, type.code, array.length);
    return any;
  }

  /** Withdraws a receive from any rank. Returns false if its message has begun to arrive, or it has ended. */
  withdrawAny(any: AnyReceive, error: Error): boolean {
    if (any.places.size === 0) return false;
    this.matching.removePlaces(any);
    any.ended?.(error);
    this.recorder?.endApart(any.entry);
    return true;
  }

  /** Queues the receive of the next part of what another receive began, before all others from a rank; see TransferOwner. */
  addNext(rank: number, array: NumericArray, type: DataType, owner: TransferOwner, tag: number): void {
    const peer = this.links.of(rank);
    const transfer = this.prepare(false, rank, array, type, owner, tag);
    this.inFlight.add(peer);
    addNextPart(peer, transfer);
    this.#begun(transfer);
    this.recordWait(transfer);
  }

  #begun(transfer: Transfer): void {
    this.inFlight.pending++;
    const { observe } = this.#options;
    if (observe !== undefined) transfer.ended = observe(operationOf(transfer));
    if (transfer.bytes > EAGER_BYTES) this.recordWait(transfer);
  }

  /**
   * Withdraws a receive. Returns false if its message has begun to arrive, or it has ended.
   * @param owner of the receive
   */
  withdraw(rank: number, owner: TransferOwner, error: Error): boolean {
    const peer = this.links.peers[rank];
    let transfer = peer?.receives;
    while (transfer !== undefined && transfer.owner !== owner) transfer = transfer.next;
    if (peer === undefined || transfer === undefined || transfer.met || transfer.moved > 0) return false;
    unlink(peer, 'receives', transfer);
    this.inFlight.pending--;
    transfer.ended?.(error);
    this.recorder?.endApart(transfer.entry);
    this.recycle(transfer);
    return true;
  }

  #spareTransfer(): Transfer {
    return this.#spare.pop() ?? new Transfer(this.#options.team.segment, this.#options.libc);
  }

  /** Returns the object of a finished transfer for reuse. */
  recycle(transfer: Transfer): void {
    transfer.clear();
    this.#spare.push(transfer);
  }

  /**
   * Progresses without waiting, and calls the owners of finished transfers.
   * @throws InvalidUsageError `CALL_MISMATCH`, RemoteError `RANK_DIED`, `CLOSED`, and other errors that end a connection
   */
  progress(): void {
    try {
      this.#progressAll();
    } catch (error) {
      // One connection may only know that its rank gave up, and another one the reason.
      this.checkSockets();
      throw error;
    }
  }

  #progressAll(): void {
    const busy = this.inFlight.peers;
    // From the end, because peers leave the list meanwhile.
    for (let i = busy.length - 1; i >= 0; i--) {
      const peer = busy[i];
      if (peer === undefined) continue;
      if (peer.rank === this.#options.bootstrap.rank) this.#exchangeWithSelf(peer);
      else {
        if (peer.sends !== undefined) this.#send(peer);
        if (peer.receives !== undefined) this.#receive(peer);
      }
      if (peer.sends === undefined && peer.receives === undefined && busy[i] === peer) {
        peer.isBusy = false;
        const last = busy.pop();
        if (last !== undefined && last !== peer) busy[i] = last;
      }
    }
  }

  /** Adds the wake sources of the transfers in flight. */
  wakeOn(sources: WakeSources): void {
    this.inFlight.wakeOn(sources, this.#options.team);
    this.links.listen(true);
  }

  /**
   * Checks whether the awaited ranks can still send or receive.
   * @throws RemoteError `RANK_DIED`, `CLOSED`, or the error with which another rank ended the communicator
   */
  check(): void {
    const { team, bootstrap } = this.#options;
    this.throwRecordedFailure();
    const abort = team.abort();
    if (abort?.reason === 'closed') throw closedThere(defined(bootstrap.localRanks[abort.localRank]));
    team.checkMembers(bootstrap.localRanks);
    this.checkSockets();
    for (const peer of [...this.inFlight.peers]) {
      const link = peer.inlet ?? peer.outlet;
      if (link?.shared !== true || !link.hasLeft()) continue;
      // First, because posts from before the peer left are valid.
      this.progress();
      if (peer.receives === undefined && peer.sends === undefined) continue;
      // Again, because the peer may have ended the communicator since the first check.
      this.throwRecordedFailure();
      if (!this.matching.spare(peer)) throw closedThere(peer.rank);
    }
  }

  /**
   * Throws the error that ended a connection; of several, the one that explains most. A closed rank matters only to those
   * that wait for it.
   */
  checkSockets(): void {
    let found: Error | undefined;
    for (const peer of this.links.peers) {
      for (const link of [peer?.outlet, peer?.inlet]) {
        if (link === undefined || link.shared) continue;
        const error = link.failure();
        const isAwaited = (link === peer?.outlet ? peer.sends : peer?.receives) !== undefined;
        const code = error instanceof TcclError ? error.code : undefined;
        if (error === undefined) continue;
        if (code === 'CLOSED' && (!isAwaited || this.matching.spare(peer as Peer))) continue;
        if (found === undefined || !(code === 'CLOSED' || code === 'ABORTED' || code === 'RANK_DIED')) found = error;
      }
    }
    if (found !== undefined) throw found;
  }

  /** Throws the error with which another rank of this host ended the communicator, if there is one. */
  throwRecordedFailure(): void {
    const failure = this.#options.team.recordedFailure();
    if (failure !== undefined) throw failure;
  }

  /** Ends immediately: reports the reason to connected ranks and to the owners of transfers in flight. */
  abort(reason: Error): void {
    if (!this.links.abort(reason)) return;
    for (const peer of this.links.peers) {
      if (peer === undefined) continue;
      for (const list of [peer.sends, peer.receives]) {
        for (let transfer = list; transfer !== undefined; transfer = transfer.next) {
          const { any } = transfer;
          if (any === undefined || any.claimed !== undefined) {
            transfer.ended?.(reason);
            transfer.owner?.settled(reason);
          } else if (any.places.size > 0) {
            // It has a place at each peer.
            any.places.clear();
            any.ended?.(reason);
            any.owner.settled(reason);
          }
        }
      }
      peer.isBusy = false;
      peer.sends = peer.posting = peer.receives = peer.lastSend = peer.lastReceive = undefined;
    }
    this.inFlight.peers.length = 0;
    this.inFlight.pending = 0;
  }

  // ── progress ──────────────────────────────────────────────────────────────────────────────────────────────────────

  #send(peer: Peer): void {
    const { outlet } = peer;
    if (outlet === undefined) return;
    while (peer.posting !== undefined) {
      const { posting } = peer;
      const { moved, next } = posting;
      if (outlet.shared && moved === 0 && posting.bytes <= PACKED_BYTES && next !== undefined && next.bytes <= PACKED_BYTES) {
        peer.posting = outlet.postTogether(posting);
        if (peer.posting !== posting) {
          this.inFlight.steps++;
          continue;
        }
      }
      const all = outlet.post(posting);
      if (posting.moved !== moved || all) this.inFlight.steps++;
      if (!all) break;
      peer.posting = next;
    }
    while (peer.sends !== undefined && peer.sends !== peer.posting && outlet.isTaken(peer.sends)) {
      const { sends } = peer;
      peer.sends = sends.next;
      if (peer.sends === undefined) peer.lastSend = undefined;
      this.#finish(sends);
    }
  }

  #receive(peer: Peer): void {
    const { inlet } = peer;
    if (inlet === undefined) return;
    while (peer.receives !== undefined) {
      if (peer.sorts && !this.#sort(peer, inlet)) return;
      const { receives } = peer;
      const { moved } = receives;
      const all = inlet.pull(receives, this.#mismatch);
      if (receives.moved !== moved) this.inFlight.steps++;
      if (!all) return;
      peer.receives = receives.next;
      if (receives.isKept) peer.kept.push(receives);
      if (peer.receives === undefined) {
        peer.lastReceive = undefined;
        peer.sorts = peer.kept.length > 0;
      }
      this.#finish(receives);
    }
  }

  /** Puts first the receive of the next message. A peer that has closed is no source of receives from any rank. */
  #sort(peer: Peer, inlet: Inbox | SocketInlet): boolean {
    try {
      return this.matching.next(peer, inlet);
    } catch (error) {
      const isClosed = error instanceof TcclError && error.code === 'CLOSED';
      if (isClosed && this.matching.spare(peer)) return false;
      throw error;
    }
  }

  #exchangeWithSelf(own: Peer): void {
    while (own.sends !== undefined && own.receives !== undefined) {
      if (own.sorts && !this.matching.pairOwn(own)) return;
      const { sends, receives } = own;
      if (!receives.meets(sends.type.code, sends.count)) throw this.#mismatch(receives, sends.type.code, sends.count);
      receives.operand.copyFrom(sends.operand, 0, 0, sends.bytes);
      own.sends = own.posting = sends.next;
      own.receives = receives.next;
      if (own.sends === undefined) own.lastSend = undefined;
      if (own.receives === undefined) own.lastReceive = undefined;
      this.#finish(sends);
      this.#finish(receives);
    }
  }

  #finish(transfer: Transfer): void {
    this.inFlight.steps++;
    this.inFlight.pending--;
    transfer.done = true;
    if (transfer.any !== undefined) this.matching.lastSource = transfer.peer;
    transfer.ended?.();
    const { owner, entry } = transfer;
    if (entry >= 0) this.recorder?.endApart(entry);
    else if (transfer.any === undefined && !transfer.isKept)
      this.recorder?.addMessage(transfer.sends, transfer.peer, transfer.type.code, transfer.count);
    if (owner === undefined) return;
    this.recycle(transfer);
    owner.settled();
  }

  /** Both ranks, and the ranks that wait for either, get the same error. */
  readonly #mismatch = (expected: Transfer, typeCode: number, count: number): Error => {
    const { bootstrap, team } = this.#options;
    const error = transferMismatch(expected.peer, typeCode, count, bootstrap.rank, expected);
    team.recordFailure(packReason(error));
    return error;
  };
}
