import { setMaxListeners } from '#platform/events';
import { describeError, InvalidUsageError, RemoteError, SystemError } from '../../errors.js';
import type { TcclError } from '../../errors.js';
import { onExit } from '../exit.js';
import { formatAddress, inZone } from './address.js';
import type { Address } from './address.js';
import type { ConnectionEvents, Message, MessageHeader, RankConnection } from './rank-connection.js';
import { inRanksOfNetwork, packError, unpackError } from '../failure/transfer.js';
import { eventOf, isSpread } from './notice.js';
import type { Notice, SpreadNotice } from './notice.js';
import { Peer } from './peer.js';
import { clockMs } from '../platform/platform.js';
import { graceMs } from '../failure/grace.js';
import { cannotBeReached } from '../failure/reasons.js';
import { ofSilence, silenceOf, type Silence } from '../failure/silence.js';
import { onAbort } from '../abort-signals.js';

/** Addresses of the other ranks, known after the first all-gather. */
interface Directory {
  readonly addresses: readonly Address[];
  /** Such as `rank 3 (process 123 on host7)`. */
  readonly names: readonly string[];
}

/** Connects this rank to another. */
export type DialPeer = (options: {
  readonly from: number;
  readonly to: number;
  readonly address: Address;
  readonly secret: Uint8Array;
  readonly events: ConnectionEvents;
  /** Aborts the attempts. */
  readonly signal: AbortSignal;
  /** Notices for the other side before the goodbye, if the dial is aborted. */
  readonly news: readonly string[];
  /** Called after each failed attempt before the next one; an error that it throws ends the dial. */
  readonly onFailure: (error: Error) => void;
}) => Promise<RankConnection>;

/** Answers queries of other ranks about this rank's state on a network, and receives their answers. */
interface QueryHandler {
  /** Returns the answer to queries. */
  readonly words: () => readonly number[] | undefined;
  readonly answered: (rank: number, words: readonly number[]) => void;
}

/** End of a rank without a goodbye. */
interface Loss {
  readonly code: 'RANK_DIED' | 'ABORTED';
  /** Continues the rank's name. */
  readonly what: string;
  readonly silence?: Silence | undefined;
  /** The loss of another rank, for which the rank aborted: receivers get it as the reason. */
  readonly death?: RemoteError | undefined;
}

type FailureNotice = Notice & { readonly kind: 'failed' };
type FailureListener = (notice: FailureNotice) => void;

/**
 * A rank's connections to the others. Messages use one connection in each direction between two ranks, made by the sender at
 * first use; those of the ring are made first. Notices about ranks travel along the ring, in both directions.
 */
export class Mesh {
  readonly rank: number;
  readonly nRanks: number;
  readonly #peers = new Map<number, Peer>();
  readonly #connections = new Set<RankConnection>();
  readonly #lostListeners = new Set<(rank: number, error: Error) => void>();
  readonly #deathListeners = new Set<(error: RemoteError) => void>();
  /** Ranks that a network of this rank has found dead. */
  readonly #foundDead = new Set<number>();
  /** By group. */
  readonly #failureListeners = new Map<string, Set<FailureListener>>();
  /** By group: failures may arrive before this rank has the group. */
  readonly #failures = new Map<string, FailureNotice[]>();
  /** Events that were passed on. */
  readonly #passedOn = new Set<string>();
  /** Notices of losses and failures. */
  readonly #badNews: string[] = [];
  /** Ranks that are being lost, with actions for afterwards: notices of ranks that closed or aborted because of the loss. */
  readonly #losing = new Set<number>();
  readonly #afterLosses: (() => void)[] = [];
  readonly #closing = new AbortController();
  readonly #stopExit: () => void;
  /** Spaces of messages between two ranks, for networks on this mesh that have not been closed. */
  readonly #spaces = new Set<number>();
  /** By space. */
  readonly #queryHandlers = new Map<number, QueryHandler>();
  /** Ranks that are waited for, each with the time since which. */
  readonly #waits = new Set<{ readonly rank: number; readonly sinceMs: number }>();
  /** Count of networks that this rank has numbered. */
  #numbered = 0;
  #ringSecret: Uint8Array | undefined;
  #zone: string | undefined;
  #directory: Directory | undefined;
  #previousArrived: () => void = () => undefined;
  #hasNext = false;

  constructor(
    rank: number,
    nRanks: number,
    private readonly dial: DialPeer,
  ) {
    this.rank = rank;
    this.nRanks = nRanks;
    setMaxListeners(0, this.#closing.signal); // one listener for each connection during its set-up
    // All networks end with the process, including those of communicators under construction, which nobody else would close.
    this.#stopExit = onExit((exitCode) => {
      if (exitCode === 0) void this.close(new InvalidUsageError('CLOSED', `rank ${rank} has exited`));
    });
  }

  /** A number for a new network that no other network on this mesh has or had, whichever rank numbered it. */
  nextNetworkNumber(): number {
    return ++this.#numbered * this.nRanks + this.rank;
  }

  /** Counts one more network on this mesh, by its space for messages between two ranks. */
  use(space: number): void {
    this.#spaces.add(space);
  }

  /** Counts one network less, and returns the number that remains. */
  leaveUse(space: number): number {
    this.#spaces.delete(space);
    return this.#spaces.size;
  }

  get users(): number {
    return this.#spaces.size;
  }

  /** True if a rank is known to be gone: dead, aborted or closed. */
  isGone(rank: number): boolean {
    const reason = this.#peers.get(rank)?.gone;
    return reason !== undefined && reason !== this.signal.reason;
  }

  /** Resolves with the reason when a rank is gone, or this one leaves. */
  whenGone(rank: number): Promise<Error> {
    return this.#peer(rank).whenGone();
  }

  /** Drops the messages of a space that is no longer used; waiting receivers reject with `reason`. */
  leaveSpace(space: number, reason: Error): void {
    for (const { mailbox } of this.#peers.values()) mailbox.leave(space, reason);
  }

  /** Aborted when this rank closes or aborts: every later operation rejects with the reason. */
  get signal(): AbortSignal {
    return this.#closing.signal;
  }

  get previousRank(): number {
    return (this.rank + this.nRanks - 1) % this.nRanks;
  }

  get nextRank(): number {
    return (this.rank + 1) % this.nRanks;
  }

  /** `rank 3 (process 123 on host7)`, or `rank 3` before more is known. */
  nameOf(rank: number): string {
    return this.#directory?.names[rank] ?? `rank ${rank}`;
  }

  /**
   * Connects to the next rank; resolves when the previous rank has connected too.
   * @param zone this host's name for the link of link-local addresses
   * @param hint possible reason if the next rank cannot be reached
   */
  async joinRing(secret: Uint8Array, zone: string | undefined, next: Address, hint?: string): Promise<void> {
    this.#ringSecret = secret;
    this.#zone = zone;
    if (this.nRanks === 1) return;
    const previousArrived = new Promise<void>((resolve, reject) => {
      this.#previousArrived = resolve;
      onAbort(this.signal, () => reject(this.signal.reason as Error));
      if (this.#peer(this.previousRank).incoming !== undefined) resolve();
    });
    const peer = this.#peer(this.nextRank);
    peer.outgoing = this.#dial(peer, next, hint);
    const nextReached = peer.outgoing.then(() => (this.#hasNext = true));
    await Promise.all([
      nextReached.finally(this.waitFor(this.nextRank)),
      previousArrived.finally(this.waitFor(this.previousRank)),
    ]);
  }

  /** Reason why the latest attempt did not reach a rank, if one failed. */
  whyUnreached(rank: number): string | undefined {
    return this.#peers.get(rank)?.dialFailure;
  }

  /** True if this rank has connected to the next one of the ring. */
  get hasNext(): boolean {
    return this.#hasNext;
  }

  /** Sets the directory, after which every rank can be reached. */
  introduce(directory: Directory): void {
    this.#directory = directory;
  }

  /** Takes a connection that `rank` made. */
  accept(rank: number, open: (events: ConnectionEvents) => RankConnection): void {
    const peer = this.#peer(rank);
    const connection = open(
      this.#eventsOf(peer, (cause) => {
        peer.hasEnded = true;
        this.#ended(peer, cause);
      }),
    );
    this.#keep(connection);
    peer.incoming = connection;
    if (rank === this.previousRank) this.#previousArrived();
  }

  /** Hands bytes for `to` to the network. Messages with one header arrive in the order of the calls. */
  async post(to: number, header: MessageHeader, data: Uint8Array): Promise<void> {
    this.signal.throwIfAborted();
    const peer = this.#peer(to);
    if (to === this.rank) {
      peer.mailbox.deliver({ ...header, data: new Uint8Array(data) });
      return;
    }
    // A stopped rank completes no connection, and takes no more data than its socket holds.
    const taken = this.waitFor(to);
    try {
      if (peer.gone !== undefined) throw peer.gone;
      peer.outgoing ??= this.#dial(peer, this.#addressOf(to));
      await (await peer.outgoing).send(header, data);
    } catch (error) {
      this.signal.throwIfAborted();
      throw await peer.whyBroken(error);
    } finally {
      taken();
    }
  }

  /** Takes the next message with a space and number from a rank. */
  async take(from: number, header: Pick<MessageHeader, 'space' | 'number'>): Promise<Message> {
    this.signal.throwIfAborted();
    const taken = this.waitFor(from);
    try {
      return await this.#peer(from).mailbox.take(header);
    } finally {
      taken();
    }
  }

  /** Counts a rank as awaited until the returned function is called. */
  waitFor(rank: number): () => void {
    const wait = { rank, sinceMs: clockMs() };
    this.#waits.add(wait);
    return () => this.#waits.delete(wait);
  }

  /** Ranks that have been waited for since `sinceMs` or later. */
  awaited(sinceMs: number): number[] {
    return [
      ...new Set([...this.#waits].flatMap((wait) => (wait.sinceMs < sinceMs || wait.rank === this.rank ? [] : [wait.rank]))),
    ];
  }

  /** Answers other ranks' {@link query} about a space, and receives their answers. Returns a function that stops it. */
  answerQueries(space: number, handler: QueryHandler): () => void {
    this.#queryHandlers.set(space, handler);
    return () => this.#queryHandlers.delete(space);
  }

  /** Asks a rank for its state on the network of a space. The handler receives the answer. */
  query(rank: number, space: number): void {
    this.#tellOne(rank, { kind: 'asks', rank: this.rank, space });
  }

  /**
   * Sends a notice to all ranks that the ring still reaches, this one included. Bad news is sent on all connections, so that
   * on each it precedes the goodbye of a rank that closes because of it.
   */
  spread(notice: SpreadNotice): void {
    const event = eventOf(notice);
    if (this.signal.aborted || this.#passedOn.has(event)) return;
    this.#passedOn.add(event);
    // The sender of the notice gets it too: a rank that already has a notice stops it.
    const text = JSON.stringify(notice);
    if (notice.kind !== 'left') {
      this.#badNews.push(text);
      for (const connection of this.#connections) connection.notify(text);
    } else {
      this.#peer(this.previousRank).notifyBack(text);
      this.#peer(this.nextRank).notifyForth(text);
    }
    this.#handle(notice);
  }

  /** Sends a notice to those of some ranks that have a connection with this one. */
  notify(ranks: readonly number[], notice: Notice): void {
    const text = JSON.stringify(notice);
    for (const rank of ranks) {
      const peer = this.#peers.get(rank);
      if (peer?.notifyBack(text) === false) peer.notifyForth(text);
    }
  }

  /**
   * Sends the end of a space's messages, behind all that were sent, to those of some ranks that have a connection with this one.
   */
  fallSilent(ranks: readonly number[], space: number, failure?: TcclError): void {
    const text = JSON.stringify({
      kind: 'silent',
      rank: this.rank,
      space,
      ...(failure === undefined ? {} : { error: packError(failure) }),
    } satisfies Notice);
    for (const rank of ranks) {
      const peer = this.#peers.get(rank);
      if (peer?.notifyForth(text) === false) peer.notifyBack(text);
    }
  }

  /**
   * Makes sure that this rank receives a notice when a rank from which it waits for messages in a space closes, or has closed,
   * that network.
   */
  watch(rank: number, space: number): void {
    this.#tellOne(rank, { kind: 'waits', rank: this.rank, space });
  }

  /** Sends a notice to another live rank, connected with it or not; before its address is known, only if connected. */
  #tellOne(rank: number, notice: Notice): void {
    const peer = this.#peer(rank);
    if (rank === this.rank || peer.gone !== undefined || this.signal.aborted) return;
    const text = JSON.stringify(notice);
    if (peer.outgoing === undefined && (peer.notifyBack(text) || this.#directory === undefined)) return;
    peer.outgoing ??= this.#dial(peer, this.#addressOf(rank));
    peer.notifyForth(text);
  }

  /** Calls `listener` once for each rank that is lost without a goodbye. Returns a function that removes it. */
  onLost(listener: (rank: number, error: Error) => void): () => void {
    this.#lostListeners.add(listener);
    return () => this.#lostListeners.delete(listener);
  }

  /** Calls `listener` once for each rank that a network has found dead. Returns a function that removes it. */
  onDeath(listener: (error: RemoteError) => void): () => void {
    this.#deathListeners.add(listener);
    return () => this.#deathListeners.delete(listener);
  }

  /** Records a rank that a network has found dead, perhaps before its connections here broke. */
  foundDead(rank: number): void {
    if (this.#foundDead.has(rank)) return;
    this.#foundDead.add(rank);
    const error = new RemoteError('RANK_DIED', `${this.nameOf(rank)} died: another communicator of this process found it dead`, {
      rank,
    });
    for (const listener of [...this.#deathListeners]) listener(error);
  }

  /** Calls `listener` for each failure of a group, past ones included. Returns a function that stops it. */
  onFailure(group: string, listener: FailureListener): () => void {
    const listeners = this.#failureListeners.get(group) ?? new Set();
    this.#failureListeners.set(group, listeners.add(listener));
    for (const notice of this.#failures.get(group) ?? []) listener(notice);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#failureListeners.delete(group);
    };
  }

  #tellFailure(notice: FailureNotice): void {
    for (const listener of this.#failureListeners.get(notice.group) ?? []) listener(notice);
  }

  /** Sends a goodbye to all; waiting receivers reject with `reason`. Resolves when all connections are closed. */
  async close(reason: Error): Promise<void> {
    if (this.signal.aborted) return;
    this.#shut(reason);
    await Promise.all([...this.#connections].map((connection) => connection.leave()));
  }

  /** Closes immediately; waiting receivers reject with `reason`. A last notice goes out where possible. */
  abort(reason: Error, notice: Notice): void {
    if (this.signal.aborted) return;
    for (const connection of this.#connections) connection.notify(JSON.stringify(notice));
    this.#shut(reason);
    for (const connection of this.#connections) connection.destroy();
  }

  #shut(reason: Error): void {
    this.#stopExit();
    this.#closing.abort(reason);
    for (const peer of this.#peers.values()) peer.shut(reason);
  }

  #peer(rank: number): Peer {
    let peer = this.#peers.get(rank);
    if (peer === undefined) {
      peer = new Peer(rank);
      if (this.signal.aborted) peer.shut(this.signal.reason as Error);
      this.#peers.set(rank, peer);
    }
    return peer;
  }

  #addressOf(rank: number): Address {
    const address = this.#directory?.addresses[rank];
    if (address === undefined) throw new SystemError('NETWORK', `the address of rank ${rank} is not known yet`);
    return address;
  }

  async #dial(peer: Peer, address: Address, hint?: string): Promise<RankConnection> {
    let refusedSince: number | undefined;
    const connection = await this.dial({
      from: this.rank,
      to: peer.rank,
      address: inZone(address, this.#zone),
      secret: this.#ringSecret ?? new Uint8Array(),
      // The peer's goodbye on this connection means that it sends nothing more; its messages come on the other one.
      events: this.#eventsOf(peer, (cause) => {
        if (cause !== undefined || peer.incoming === undefined) this.#ended(peer, cause);
      }),
      signal: this.signal,
      news: this.#badNews,
      onFailure: (error) => {
        if (peer.gone !== undefined) throw peer.gone;
        peer.dialFailure = describeError(error);
        const isRefusal = 'code' in error && error.code === 'ECONNREFUSED';
        refusedSince = isRefusal ? (refusedSince ?? clockMs()) : undefined;
        if (refusedSince === undefined || clockMs() - refusedSince < graceMs.goodbyeAfterRefusal) return;
        const what = `cannot be reached: nobody listens at ${formatAddress(address)} any more, or a firewall refuses connections there${hint === undefined ? '' : `; ${hint}`}`;
        throw this.#forget(peer, { code: 'RANK_DIED', what });
      },
    });
    this.#keep(connection);
    return connection;
  }

  #keep(connection: RankConnection): void {
    this.#connections.add(connection);
    for (const text of this.#badNews) connection.notify(text);
    if (this.signal.aborted) void connection.leave(); // closed while the connection was being made
  }

  #eventsOf(peer: Peer, end: (cause: Error | undefined) => void): ConnectionEvents {
    return {
      message: (message) => {
        if (!this.signal.aborted) peer.mailbox.deliver(message);
      },
      notice: (text) => {
        const notice = JSON.parse(text) as Notice;
        if (isSpread(notice)) this.spread(notice);
        else this.#handle(notice);
      },
      end,
    };
  }

  /** A connection with a peer has ended: with a goodbye, or broken. */
  #ended(peer: Peer, cause: Error | undefined): void {
    if (cause !== undefined && peer.hasEnded) peer.loseNow();
    if (this.signal.aborted || peer.gone !== undefined || peer.hasLeft) return;
    const { rank } = peer;
    const silence = silenceOf(cause);
    const why = silence && cannotBeReached(cause as Error);
    this.spread(cause === undefined ? { kind: 'left', rank } : { kind: 'died', rank, why, silence });
    if (cause === undefined) this.#takeLeave(peer);
  }

  /** A peer has sent a goodbye. */
  #takeLeave(peer: Peer): void {
    peer.leave();
    this.#afterLoss(() => peer.forget(this.#closedBy(peer.rank)));
  }

  /**
   * Runs `then`, for a rank that has closed or aborted, after any loss in progress: if it did so because of the loss, receivers
   * that wait for it should get the loss as the reason. This rank may still be reading the lost rank's last messages.
   */
  #afterLoss(then: () => void): void {
    if (this.#losing.size === 0) then();
    else this.#afterLosses.push(then);
  }

  #handle(notice: Notice): void {
    switch (notice.kind) {
      case 'left': {
        if (notice.rank === this.rank) return;
        const peer = this.#peer(notice.rank);
        // If the peer has a connection to this rank, its last messages come on it, followed by its goodbye.
        if (peer.incoming === undefined) this.#takeLeave(peer);
        return;
      }
      case 'died':
        if (notice.rank === this.rank && notice.why === undefined)
          this.#giveUp({ code: 'RANK_DIED', what: 'its connections to them broke' });
        else {
          const { rank, why = 'died: its connections broke without a goodbye', silence } = notice;
          this.#loseLater(rank, { code: 'RANK_DIED', what: why, silence });
        }
        return;
      case 'aborted': {
        const { rank, reason } = notice;
        const cause = notice.death === undefined || notice.death.rank === this.rank ? undefined : unpackError(notice.death);
        const death = cause instanceof RemoteError ? cause : undefined;
        this.#afterLoss(() => this.#loseLater(rank, { code: 'ABORTED', what: `aborted: ${reason}`, death }));
        return;
      }
      case 'closed': {
        const { rank, group, sequence } = notice;
        const error = packError(this.#closedBy(rank));
        this.#afterLoss(() => this.#tellFailure({ kind: 'failed', group, sequence, error }));
        return;
      }
      case 'asks': {
        const words = this.#queryHandlers.get(notice.space)?.words();
        if (words !== undefined) this.#tellOne(notice.rank, { kind: 'answers', rank: this.rank, space: notice.space, words });
        return;
      }
      case 'answers':
        this.#queryHandlers.get(notice.space)?.answered(notice.rank, notice.words);
        return;
      case 'waits':
        if (!this.#spaces.has(notice.space)) this.fallSilent([notice.rank], notice.space);
        return;
      case 'silent': {
        const { rank, space, error } = notice;
        if (!this.#spaces.has(space)) return;
        const reason = error === undefined ? this.#closedBy(rank) : inRanksOfNetwork(unpackError(error));
        this.#afterLoss(() => this.#peer(rank).mailbox.end(space, reason));
        return;
      }
      case 'failed':
        this.#failures.set(notice.group, [...(this.#failures.get(notice.group) ?? []), notice]);
        this.#tellFailure(notice);
    }
  }

  /** Loses a rank once all messages that it sent have been read, if they can still arrive. */
  #loseLater(rank: number, loss: Loss): void {
    if (rank === this.rank) this.#giveUp({ ...loss, what: `it ${loss.what}` });
    else {
      this.#losing.add(rank);
      this.#peer(rank).loseLater(() => {
        this.#losing.delete(rank);
        if (this.signal.aborted) return;
        this.#lose(this.#peer(rank), loss);
        if (this.#losing.size === 0) for (const then of this.#afterLosses.splice(0)) then();
      });
    }
  }

  /** The other ranks have lost this rank. */
  #giveUp({ code, what, silence }: Loss): void {
    const text = `rank ${this.rank} was given up by the other ranks: ${what}`;
    this.#shut(ofSilence(new RemoteError(code, text, { rank: this.rank }), silence));
    for (const connection of this.#connections) connection.destroy();
  }

  #lose(peer: Peer, loss: Loss): void {
    if (peer.hasLeft && loss.code === 'RANK_DIED') return;
    const error = this.#forget(peer, loss);
    for (const listener of this.#lostListeners) listener(peer.rank, error);
  }

  /** Ends all traffic with the peer. */
  #forget(peer: Peer, { code, what, silence, death }: Loss): Error {
    const own = (): RemoteError =>
      ofSilence(new RemoteError(code, `${this.nameOf(peer.rank)} ${what}`, { rank: peer.rank }), silence);
    return peer.forget(death ?? own());
  }

  #closedBy(rank: number): RemoteError {
    return new RemoteError('CLOSED', `${this.nameOf(rank)} closed its communicator or exited`, { rank });
  }
}
