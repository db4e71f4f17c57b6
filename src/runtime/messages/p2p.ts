import { setMaxListeners } from 'node:events';
import type { Introduction } from '../bootstrap/bootstrap.js';
import type { WaitQueries } from '../bootstrap/wait-queries.js';
import type { CallRecorder } from '../device/board.js';
import type { Libc } from '../device/libc.js';
import type { Team } from '../device/team.js';
import { describeElements, objectBytes, typeOfCode, type DataType, type NumericArray } from '../device/types.js';
import { TcclError } from '../../errors.js';
import { clearTimeout, setTimeout, type Timer } from '../platform/platform.js';
import { closedThere, died } from '../failure/reasons.js';
import { packReason, unpackReason } from '../failure/transfer.js';
import type { Transport } from '../transport/transport.js';
import { unlessAborted } from '../transport/unless-aborted.js';
import type { Observe, Operation } from '../algorithms/operation.js';
import { ANY_SOURCE, describeActivity } from '../algorithms/activity.js';
import type { WakeSources } from '../progress/parking.js';
import type { Dialling } from './p2p-connection.js';
import { Inbox, Outbox } from './p2p-mailbox.js';
import { SocketInlet, SocketOutlet } from './p2p-socket.js';
import { acceptingReceive, addFirst, Matching, unlink, type Peer } from './p2p-matching.js';
import { accepts, ANY_TAG, AnyReceive, Transfer, transferMismatch, type LongWait, type TransferOwner } from './p2p-transfer.js';
import { WaitReports } from './p2p-wait-reports.js';
import { withAnySignal } from '../with-any-signal.js';
import { graceMs } from '../failure/grace.js';

/** A message that has arrived and is not received yet. */
export interface Found {
  readonly source: number;
  readonly tag: number;
  readonly count: number;
  readonly type: DataType;
}

/** Tags of the bootstrap messages that set up connections. A lane is one purpose of connections between two ranks. */
const FIRST_TAG = 0x70327000;
/** The lane of send and receive. */
const MESSAGES = 0;

/**
 * The tag of a lane, see Dialling.
 * @param lane a small whole number, the same at both ends: 0 for send and receive
 */
function laneTag(lane: number): number {
  return FIRST_TAG + 2 * lane;
}

interface PointToPointOptions {
  readonly bootstrap: Introduction;
  readonly team: Team;
  readonly libc: Libc | undefined;
  /** True if the ranks of this host share the team's memory. */
  readonly shared: boolean;
  /** Connects ranks that share no memory; called at first use. */
  readonly openTransport: () => Transport;
  /** Called when there may be news from ranks whose connections are not polled. */
  readonly onNews: () => void;
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
  /** Number of transfers in flight. */
  pending = 0;
  /** Incremented whenever one of them progresses. */
  steps = 0;
  /** Records the transfers of a communicator. */
  recorder: CallRecorder | undefined;
  readonly #options: PointToPointOptions;
  readonly #peers: (Peer | undefined)[] = [];
  /** Peers with transfers in flight, and some without since the last poll. */
  readonly #busy: Peer[] = [];
  readonly #spare: Transfer[] = [];
  readonly #matching: Matching;
  /** Source of the last message that a receive from any rank took. */
  #lastSource = 0;
  readonly #stop = new AbortController();
  /** True if a connection may call `onNews`; see listen(). */
  #listens = false;
  /** Transport of messages and of connections for other purposes. */
  #transport: Transport | undefined;
  /** True if all ranks that share no memory with this one were connected before the first message. */
  #connectedAll = false;
  readonly otherRanks: readonly number[];
  /** Reports of waits, this rank's and those of others. */
  readonly waits: WaitReports;

  constructor(options: PointToPointOptions) {
    this.#options = options;
    const { rank: own, nRanks } = options.bootstrap;
    this.otherRanks = Array.from({ length: nRanks }, (_, rank) => rank).filter((rank) => rank !== own);
    const { team, shared, waitQueries, forwardInCalls } = options;
    this.waits = new WaitReports({
      rank: own,
      team,
      shared,
      waitQueries,
      forwardInCalls,
      localOf: (rank) => this.localOf(rank),
      isPending: () => this.pending > 0,
      peers: this.#peers,
    });
    this.#matching = new Matching({
      peerOf: (rank) => this.#peers[rank],
      spare: () => this.#spareTransfer(),
      recycle: (transfer) => this.recycle(transfer),
      finish: (transfer) => this.#finish(transfer),
      mismatch: (...message) => this.#mismatch(...message),
      count: (more) => (this.pending += more),
      setBusy: (peer) => this.#setBusy(peer),
    });
    setMaxListeners(0, this.#stop.signal); // one listener for each connection during its set-up
  }

  /** True if this rank may wait for `peer` without returning to its event loop, which makes connections. */
  isBlocking(peer: number): boolean {
    if (peer === this.#options.bootstrap.rank || this.localOf(peer) >= 0) return true;
    const { outlet, inlet } = this.#peers[peer] ?? {};
    return this.#connectedAll && [outlet, inlet].every((link) => link?.shared === false && link.polled);
  }

  /** True if news of the transfers in flight is found only by polling. */
  get polled(): boolean {
    for (const { local } of this.#busy) if (local >= 0) return true;
    return this.hasSockets;
  }

  /** True if a transfer in flight uses sockets by system calls. */
  get hasSockets(): boolean {
    for (const { sends, receives, outlet, inlet } of this.#busy) {
      if (sends !== undefined && outlet?.shared === false && outlet.polled) return true;
      if (receives !== undefined && inlet?.shared === false && inlet.polled) return true;
    }
    return false;
  }

  /** True if a transfer in flight uses the segment's bytes between these addresses. */
  uses(from: number, to: number): boolean {
    for (const { sends, receives } of this.#busy) {
      for (const first of [sends, receives]) {
        for (let transfer = first; transfer !== undefined; transfer = transfer.next) {
          const { operand, bytes } = transfer;
          if (operand.placed && operand.address(0) < to && operand.address(bytes) > from) return true;
        }
      }
    }
    return false;
  }

  /** True if a transfer from this rank to itself waits for its counterpart of this direction. */
  expectsOwn(sends: boolean): boolean {
    const own = this.#peers[this.#options.bootstrap.rank];
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
    const transfer = this.#queue(sends, rank, array, type, owner, tag);
    this.#begun(transfer);
    return transfer;
  }

  #queue(
    sends: boolean,
    rank: number,
    array: NumericArray,
    type: DataType,
    owner: TransferOwner | undefined,
    tag: number | undefined,
  ): Transfer {
    const peer = (this.#peers[rank] ??= this.#meet(rank));
    if (sends) peer.outlet ??= this.#openOutlet(peer);
    else peer.inlet ??= this.#openInlet(peer);
    const transfer = this.#spareTransfer();
    transfer.set(sends, rank, array, type, owner, tag);
    this.#setBusy(peer);
    if (sends) {
      if (peer.lastSend !== undefined) peer.lastSend.next = transfer;
      peer.lastSend = transfer;
      peer.sends ??= transfer;
      peer.posting ??= transfer;
    } else {
      if (peer.lastReceive !== undefined) peer.lastReceive.next = transfer;
      peer.lastReceive = transfer;
      peer.receives ??= transfer;
      if (tag !== undefined && tag !== ANY_TAG) peer.sorts = true;
    }
    return transfer;
  }

  /** Queues a receive of all of `array` from any rank, also from this one. Its owner is called once. */
  addAny(array: NumericArray, type: DataType, owner: TransferOwner, tag: number, atMost: boolean): AnyReceive {
    const any = new AnyReceive(owner);
    const { nRanks } = this.#options.bootstrap;
    // The last peer in the list of busy ones is polled first: the one after the last source.
    for (let i = 0; i < nRanks; i++) {
      const place = this.#queue(false, (this.#lastSource + nRanks - i) % nRanks, array, type, owner, tag);
      place.any = any;
      place.atMost = atMost;
      any.places.set(place.peer, place);
      const peer = this.#peers[place.peer];
      if (peer !== undefined) peer.sorts = true;
      this.pending++;
      if (i === 0) any.ended = this.#options.observe?.(operationOf(place));
    }
    if (this.recorder !== undefined) any.entry = this.recorder.beginMessage(false, ANY_SOURCE, type.code, array.length);
    return any;
  }

  /** Withdraws a receive from any rank. Returns false if its message has begun to arrive, or it has ended. */
  withdrawAny(any: AnyReceive, error: Error): boolean {
    if (any.places.size === 0) return false;
    this.#matching.removePlaces(any);
    any.ended?.(error);
    this.recorder?.endMessage(any.entry);
    return true;
  }

  /** Queues a receive before all others from a rank; see TransferOwner. */
  addNext(rank: number, array: NumericArray, type: DataType, owner: TransferOwner, tag: number): void {
    const peer = (this.#peers[rank] ??= this.#meet(rank));
    const transfer = this.#spareTransfer();
    transfer.set(false, rank, array, type, owner, tag);
    this.#setBusy(peer);
    addFirst(peer, 'receives', transfer);
    this.#begun(transfer);
  }

  #begun(transfer: Transfer): void {
    this.pending++;
    transfer.ended = this.#options.observe?.(operationOf(transfer));
    const { sends, peer, type, count } = transfer;
    if (this.recorder !== undefined) transfer.entry = this.recorder.beginMessage(sends, peer, type.code, count);
  }

  /**
   * Withdraws a receive. Returns false if its message has begun to arrive, or it has ended.
   * @param owner of the receive
   */
  withdraw(rank: number, owner: TransferOwner, error: Error): boolean {
    const peer = this.#peers[rank];
    let transfer = peer?.receives;
    while (transfer !== undefined && transfer.owner !== owner) transfer = transfer.next;
    if (peer === undefined || transfer === undefined || transfer.met || transfer.moved > 0) return false;
    unlink(peer, 'receives', transfer);
    this.pending--;
    transfer.ended?.(error);
    this.recorder?.endMessage(transfer.entry);
    this.recycle(transfer);
    return true;
  }

  /**
   * The message for the next receive from a rank with this tag, once it has arrived; others before it are kept. Throws the
   * reason if none can arrive.
   */
  peek(rank: number, tag = ANY_TAG): Found | undefined {
    const peer = (this.#peers[rank] ??= this.#meet(rank));
    if (rank === this.#options.bootstrap.rank) {
      let send = peer.sends;
      while (send !== undefined && !(accepts(tag, send.tag) && acceptingReceive(peer, send.tag) === undefined)) send = send.next;
      return send && { source: rank, tag: send.tag, count: send.count, type: send.type };
    }
    const kept = peer.kept.find((message) => accepts(tag, message.tag));
    if (kept !== undefined) return { source: rank, tag: kept.tag, count: kept.count, type: kept.type };
    if (peer.receives !== undefined) return undefined;
    const inlet = (peer.inlet ??= this.#openInlet(peer));
    if (inlet === undefined) return undefined;
    const head = inlet.peek();
    if (head === undefined) {
      if (inlet.shared && inlet.hasLeft() && inlet.peek() === undefined) throw closedThere(rank);
      return undefined;
    }
    if (!accepts(tag, head.tag)) {
      this.#matching.keepNext(peer, head);
      return undefined;
    }
    const type = typeOfCode(head.type);
    return type === undefined ? undefined : { source: rank, tag: head.tag, count: head.count, type };
  }

  /** {@link peek} at the messages of all ranks. Throws if no other rank is left that could send one. */
  peekAny(tag: number): Found | undefined {
    const { nRanks, rank: own } = this.#options.bootstrap;
    let closed: Error | undefined;
    let left = 0;
    for (let i = 1; i <= nRanks; i++) {
      const rank = (this.#lastSource + i) % nRanks;
      try {
        const found = this.peek(rank, tag);
        if (found !== undefined) return found;
        if (rank !== own) left++;
      } catch (error) {
        if (!(error instanceof TcclError && error.code === 'CLOSED')) throw error;
        closed = error;
      }
    }
    if (closed !== undefined && left === 0) throw closed;
    return undefined;
  }

  /** Adds the wake sources for a message from a rank. */
  wakeOnMessage(rank: number, sources: WakeSources): void {
    const { local, inlet } = this.#peers[rank] ?? {};
    if (local !== undefined && local >= 0) sources.addMember(this.#options.team, local);
    if (inlet instanceof SocketInlet) {
      inlet.wakeOn(sources);
      inlet.listen(true);
      this.#listens = true;
    }
  }

  #spareTransfer(): Transfer {
    return this.#spare.pop() ?? new Transfer(this.#options.team.segment, this.#options.libc);
  }

  #setBusy(peer: Peer): void {
    if (peer.isBusy) return;
    peer.isBusy = true;
    this.#busy.push(peer);
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
    const busy = this.#busy;
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

  /** Connects with all ranks that share no memory with this one, so that blocking calls may wait for them. All ranks call it. */
  async connectAll(): Promise<void> {
    const { nRanks, rank: own } = this.#options.bootstrap;
    const links: (SocketOutlet | SocketInlet)[] = [];
    for (let rank = 0; rank < nRanks; rank++) {
      if (rank === own || this.localOf(rank) >= 0) continue;
      const peer = (this.#peers[rank] ??= this.#meet(rank));
      for (const link of [(peer.outlet ??= this.#openOutlet(peer)), (peer.inlet ??= this.#openInlet(peer))])
        if (link?.shared === false) links.push(link);
    }
    await this.allMet(links.map((link) => link.met()));
    this.#connectedAll = true;
  }

  /**
   * Waits for connections that all ranks make at the same time. Gives up when this communicator ends, or some time after any
   * rank failed: the connections of others may be about to be made.
   */
  async allMet(connecting: readonly Promise<void>[]): Promise<void> {
    const failed = new AbortController();
    let timer: Timer | undefined;
    const unwatch = this.#options.bootstrap.onFailure(
      (error) => (timer ??= setTimeout(() => failed.abort(error), graceMs.messageConnections)),
    );
    try {
      await withAnySignal([this.#stop.signal, failed.signal], (either) => unlessAborted(Promise.all(connecting), either));
    } finally {
      clearTimeout(timer);
      unwatch();
    }
  }

  /** True if {@link connectAll} has made all connections: windows then connect in advance, too. */
  get connectsAll(): boolean {
    return this.#connectedAll;
  }

  /**
   * Means to make a connection for a purpose.
   * @param lane see laneTag()
   */
  dialling(lane: number, onNews: () => void): Dialling {
    const transport = (this.#transport ??= this.#options.openTransport());
    return { bootstrap: this.#options.bootstrap, transport, tag: laneTag(lane), onNews, signal: this.#stop.signal };
  }

  /** Local rank of a rank that shares memory with this one, or -1. */
  localOf(rank: number): number {
    return this.#options.shared ? this.#options.bootstrap.localRanks.indexOf(rank) : -1;
  }

  /** Adds the wake sources of the transfers in flight. */
  wakeOn(sources: WakeSources): void {
    for (const { local, sends, receives, outlet, inlet } of this.#busy) {
      if (local >= 0) sources.addMember(this.#options.team, local);
      if (sends !== undefined && outlet instanceof SocketOutlet) outlet.wakeOn(sources);
      if (receives !== undefined && inlet instanceof SocketInlet) inlet.wakeOn(sources);
    }
    this.listen(true);
  }

  /** Enables or disables news: while enabled, connections call `onNews` and keep the process alive. */
  listen(wanted: boolean): void {
    // Every blocking message ends with a call of this.
    if (!wanted && !this.#listens) return;
    this.#listens = wanted;
    for (const peer of this.#peers) {
      for (const link of [peer?.outlet, peer?.inlet]) if (link !== undefined && !link.shared) link.listen(wanted);
    }
  }

  /**
   * Checks whether the awaited ranks can still send or receive.
   * @throws RemoteError `RANK_DIED`, `CLOSED`, or the error with which another rank ended the communicator
   */
  check(): void {
    const { team, bootstrap } = this.#options;
    this.throwRecordedFailure();
    const abort = team.abort();
    if (abort?.reason === 'closed') throw closedThere(bootstrap.localRanks[abort.localRank] ?? abort.localRank);
    const dead = team.findDead();
    if (dead >= 0) throw died(bootstrap.localRanks[dead] ?? dead);
    this.checkSockets();
    for (const peer of [...this.#busy]) {
      const link = peer.inlet ?? peer.outlet;
      if (link?.shared !== true || !link.hasLeft()) continue;
      // First, because posts from before the peer left are valid.
      this.progress();
      if (peer.receives === undefined && peer.sends === undefined) continue;
      // Again, because the peer may have ended the communicator since the first check.
      this.throwRecordedFailure();
      if (!this.#matching.spare(peer, bootstrap.rank)) throw closedThere(peer.rank);
    }
  }

  /**
   * Throws the error that ended a connection; of several, the one that explains most. A closed rank matters only to those
   * that wait for it.
   */
  checkSockets(): void {
    let found: Error | undefined;
    for (const peer of this.#peers) {
      for (const link of [peer?.outlet, peer?.inlet]) {
        if (link === undefined || link.shared) continue;
        const error = link.failure();
        const isAwaited = (link === peer?.outlet ? peer.sends : peer?.receives) !== undefined;
        const code = error instanceof TcclError ? error.code : undefined;
        if (error === undefined) continue;
        if (code === 'CLOSED' && (!isAwaited || this.#matching.spare(peer as Peer, this.#options.bootstrap.rank))) continue;
        if (found === undefined || !(code === 'CLOSED' || code === 'ABORTED' || code === 'RANK_DIED')) found = error;
      }
    }
    if (found !== undefined) throw found;
  }

  /** The error with which another rank of this host ended the communicator, if there is one. */
  recordedFailure(): Error | undefined {
    const words = this.#options.team.recordedFailure();
    return words === undefined ? undefined : unpackReason(words, this.#options.bootstrap.rank);
  }

  throwRecordedFailure(): void {
    const words = this.recordedFailure();
    if (words !== undefined) throw words;
  }

  /** Time since which the transfer that has not moved for longest stands still, as of the last longWait(). */
  oldestMs(nowMs: number): number {
    let oldest = nowMs;
    for (const { sends, receives } of this.#busy) {
      if (sends !== undefined && sends.sinceMs > 0) oldest = Math.min(oldest, sends.sinceMs);
      if (receives !== undefined && receives.sinceMs > 0) oldest = Math.min(oldest, receives.sinceMs);
    }
    return oldest;
  }

  /**
   * The messages that have not moved for longer than `limitMs`; call it from time to time.
   * @param unwarned only those without a warning so far; they are then marked as warned
   */
  longWait(nowMs: number, limitMs: number, unwarned = false): LongWait | undefined {
    const late: Transfer[] = [];
    const own = this.#options.bootstrap.rank;
    for (const { sends, receives } of this.#busy) {
      for (const transfer of [receives, sends]) {
        if (transfer === undefined || !isLate(transfer, nowMs, limitMs) || (unwarned && transfer.warned)) continue;
        if (unwarned) transfer.warned = true;
        late.push(transfer);
      }
    }
    const [first] = late;
    if (first === undefined) return undefined;
    const { sends, peer, count, type, tag, any } = first;
    const awaited = late.map((transfer) => transfer.peer).filter((rank, i) => late[i]?.any === undefined || rank !== own);
    const activity = {
      kind: sends ? 'send' : 'recv',
      peer: any === undefined || any.claimed !== undefined ? peer : ANY_SOURCE,
      count,
      type,
      ...(tag > 0 ? { tag } : {}),
    } as const;
    const { steps } = this;
    return {
      text: describeActivity(activity),
      activity,
      ranks: [...new Set(awaited)],
      holds: () => this.pending > 0 && this.steps === steps,
    };
  }

  /**
   * Name of the call of a message in flight, with one of these ranks if there is one.
   * @param sends true to prefer sends
   */
  nameInFlight(ranks: readonly number[], sends: boolean): string | undefined {
    const peer = this.#busy.find(({ rank }) => ranks.includes(rank)) ?? this.#busy[0];
    const transfer = sends ? (peer?.sends ?? peer?.receives) : (peer?.receives ?? peer?.sends);
    if (transfer === undefined) return undefined;
    return `${transfer.sends ? 'send' : 'recv'}${transfer.any === undefined ? '' : 'Any'}${transfer.type === objectBytes ? 'Object' : ''}`;
  }

  /** Ends immediately: reports the reason to connected ranks and to the owners of transfers in flight. */
  abort(reason: Error): void {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort(reason);
    this.#transport?.close();
    for (const peer of this.#peers) {
      if (peer === undefined) continue;
      if (peer.outlet?.shared === true) peer.outlet.giveUp();
      for (const link of [peer.outlet, peer.inlet]) if (link !== undefined && !link.shared) link.abort(reason);
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
    this.#busy.length = 0;
    this.pending = 0;
  }

  /** Says goodbye. Nothing is in flight. */
  async close(): Promise<void> {
    if (!this.#stop.signal.aborted) this.#stop.abort(new Error('closed'));
    this.#transport?.close();
    const links = this.#peers.splice(0).flatMap((peer) => [peer?.outlet, peer?.inlet]);
    // The ends of sockets close in parallel.
    await Promise.all(links.map(async (link) => (link?.shared === false ? link.close() : undefined)));
  }

  // ── links ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  #meet(rank: number): Peer {
    return {
      rank,
      local: rank === this.#options.bootstrap.rank ? -1 : this.localOf(rank),
      sends: undefined,
      posting: undefined,
      lastSend: undefined,
      receives: undefined,
      lastReceive: undefined,
      isBusy: false,
      sorts: false,
      kept: [],
      outlet: undefined,
      inlet: undefined,
    };
  }

  #openOutlet({ rank, local }: Peer): Peer['outlet'] {
    const { bootstrap, team, onNews } = this.#options;
    if (rank === bootstrap.rank) return undefined;
    return local >= 0 ? new Outbox(team, local) : new SocketOutlet(team.segment, rank, this.dialling(MESSAGES, onNews));
  }

  #openInlet({ rank, local }: Peer): Peer['inlet'] {
    const { bootstrap, team, onNews } = this.#options;
    if (rank === bootstrap.rank) return undefined;
    return local >= 0 ? new Inbox(team, local) : new SocketInlet(team.segment, rank, this.dialling(MESSAGES, onNews));
  }

  // ── progress ──────────────────────────────────────────────────────────────────────────────────────────────────────

  #send(peer: Peer): void {
    const { outlet } = peer;
    if (outlet === undefined) return;
    while (peer.posting !== undefined) {
      const { moved } = peer.posting;
      const all = outlet.post(peer.posting);
      if (peer.posting.moved !== moved || all) this.steps++;
      if (!all) break;
      peer.posting = peer.posting.next;
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
      if (receives.moved !== moved) this.steps++;
      if (!all) return;
      peer.receives = receives.next;
      if (peer.receives === undefined) peer.lastReceive = undefined;
      if (receives.isKept) peer.kept.push(receives);
      this.#finish(receives);
    }
  }

  /** Puts first the receive of the next message. A peer that has closed is no source of receives from any rank. */
  #sort(peer: Peer, inlet: Inbox | SocketInlet): boolean {
    try {
      return this.#matching.next(peer, inlet);
    } catch (error) {
      const isClosed = error instanceof TcclError && error.code === 'CLOSED';
      if (isClosed && this.#matching.spare(peer, this.#options.bootstrap.rank)) return false;
      throw error;
    }
  }

  #exchangeWithSelf(own: Peer): void {
    while (own.sends !== undefined && own.receives !== undefined) {
      if (own.sorts && !this.#matching.pairOwn(own)) return;
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
    this.steps++;
    this.pending--;
    transfer.done = true;
    if (transfer.any !== undefined) this.#lastSource = transfer.peer;
    transfer.ended?.();
    this.recorder?.endMessage(transfer.entry);
    const { owner } = transfer;
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

function operationOf({ sends, peer, count, type, bytes, any }: Transfer): Operation {
  const name = sends ? 'send' : 'recv';
  const whom = any === undefined ? `rank ${peer}` : 'any rank';
  return {
    name,
    text: `${name} of ${describeElements(count, type)} ${sends ? 'to' : 'from'} ${whom}`,
    args: { peer: any === undefined ? peer : ANY_SOURCE, count, type: type.name, bytes },
  };
}

/** True if a transfer has not moved for `limitMs`. */
function isLate(transfer: Transfer, nowMs: number, limitMs: number): boolean {
  if (transfer.moved !== transfer.movedBefore) {
    transfer.movedBefore = transfer.moved;
    transfer.sinceMs = nowMs;
  }
  return nowMs - transfer.sinceMs > limitMs;
}
