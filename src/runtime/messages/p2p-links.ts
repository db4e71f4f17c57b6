import { setMaxListeners } from '#platform/events';
import type { Introduction } from '../bootstrap/bootstrap.js';
import type { Team } from '../device/team.js';
import { graceMs } from '../failure/grace.js';
import { clearTimeout, setTimeout, type Timer } from '../platform/platform.js';
import type { WakeSources } from '../progress/parking.js';
import type { Transport } from '../transport/transport.js';
import { unlessAborted, withAnySignal } from '../abort-signals.js';
import type { Dialling } from './p2p-connection.js';
import { Inbox, Outbox } from './p2p-mailbox.js';
import { SocketInlet, SocketOutlet } from '#seam/messages/p2p-socket';
import type { Transfer } from './p2p-transfer.js';

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

/** This rank's relation to another: its link and its transfers. */
export interface Peer {
  readonly rank: number;
  /** Local rank in the team, or -1 if it shares no memory with this rank, or is this rank. */
  readonly local: number;
  /** True while it is among the peers whose transfers are progressed. */
  isBusy: boolean;
  /** Sends in order: those that the peer has not yet received, then, from `posting` on, those not yet handed over. */
  sends: Transfer | undefined;
  posting: Transfer | undefined;
  lastSend: Transfer | undefined;
  receives: Transfer | undefined;
  lastReceive: Transfer | undefined;
  /** True if a message need not be for the first receive: there are receives with a tag or from any rank, or kept messages. */
  sorts: boolean;
  /** Messages that arrived before a receive accepted them, in order. */
  readonly kept: Transfer[];
  outlet: Outbox | SocketOutlet | undefined;
  inlet: Inbox | SocketInlet | undefined;
}

export interface LinksParts {
  readonly bootstrap: Introduction;
  readonly team: Team;
  /** True if the ranks of this host share the team's memory. */
  readonly shared: boolean;
  /** Connects ranks that share no memory; called at first use. */
  readonly openTransport: () => Transport;
  /** Called when there may be news from ranks whose connections are not polled. */
  readonly onNews: () => void;
}

/** This rank's links to others, each made at first use: a mailbox in shared memory, or sockets. */
export class Links {
  /** By rank. */
  readonly peers: (Peer | undefined)[] = [];
  readonly #parts: LinksParts;
  readonly #stop = new AbortController();
  /** True if a connection may call `onNews`; see listen(). */
  #listens = false;
  /** Transport of messages and of connections for other purposes. */
  #transport: Transport | undefined;
  /** True if all ranks that share no memory with this one were connected before the first message. */
  #connectedAll = false;

  constructor(parts: LinksParts) {
    this.#parts = parts;
    setMaxListeners(0, this.#stop.signal); // one listener for each connection during its set-up
  }

  /** The relation to a rank. */
  of(rank: number): Peer {
    return (this.peers[rank] ??= this.#meet(rank));
  }

  outletOf(peer: Peer): Peer['outlet'] {
    return (peer.outlet ??= this.#openOutlet(peer));
  }

  inletOf(peer: Peer): Peer['inlet'] {
    return (peer.inlet ??= this.#openInlet(peer));
  }

  /** True if this rank may wait for `peer` without returning to its event loop, which makes connections. */
  isBlocking(peer: number): boolean {
    if (peer === this.#parts.bootstrap.rank || this.localOf(peer) >= 0) return true;
    const { outlet, inlet } = this.peers[peer] ?? {};
    return this.#connectedAll && [outlet, inlet].every((link) => link?.shared === false && link.polled);
  }

  /** Connects with all ranks that share no memory with this one, so that blocking calls may wait for them. All ranks call it. */
  async connectAll(): Promise<void> {
    const { nRanks, rank: own } = this.#parts.bootstrap;
    const links: (SocketOutlet | SocketInlet)[] = [];
    for (let rank = 0; rank < nRanks; rank++) {
      if (rank === own || this.localOf(rank) >= 0) continue;
      const peer = this.of(rank);
      for (const link of [this.outletOf(peer), this.inletOf(peer)]) if (link?.shared === false) links.push(link);
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
    const unwatch = this.#parts.bootstrap.onFailure(
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
    const transport = (this.#transport ??= this.#parts.openTransport());
    return { bootstrap: this.#parts.bootstrap, transport, tag: laneTag(lane), onNews, signal: this.#stop.signal };
  }

  /** Local rank of a rank that shares memory with this one, or -1. */
  localOf(rank: number): number {
    return this.#parts.shared ? this.#parts.bootstrap.localRanks.indexOf(rank) : -1;
  }

  /** Enables or disables news: while enabled, connections call `onNews` and keep the process alive. */
  listen(wanted: boolean): void {
    // Every blocking message ends with a call of this.
    if (!wanted && !this.#listens) return;
    this.#listens = wanted;
    for (const peer of this.peers) {
      for (const link of [peer?.outlet, peer?.inlet]) if (link !== undefined && !link.shared) link.listen(wanted);
    }
  }

  /** Adds the wake sources for a message from a rank. */
  wakeOnMessage(rank: number, sources: WakeSources): void {
    const { local, inlet } = this.peers[rank] ?? {};
    if (local !== undefined && local >= 0) sources.addMember(this.#parts.team, local);
    if (inlet?.shared === false) {
      inlet.wakeOn(sources);
      inlet.listen(true);
      this.#listens = true;
    }
  }

  /** Ends immediately; false if it has ended before. */
  abort(reason: Error): boolean {
    if (this.#stop.signal.aborted) return false;
    this.#stop.abort(reason);
    this.#transport?.close();
    for (const peer of this.peers) {
      if (peer?.outlet?.shared === true) peer.outlet.giveUp();
      for (const link of [peer?.outlet, peer?.inlet]) if (link?.shared === false) link.abort(reason);
    }
    return true;
  }

  /** Sends a goodbye. Nothing is in flight. */
  async close(): Promise<void> {
    if (!this.#stop.signal.aborted) this.#stop.abort(new Error('closed'));
    this.#transport?.close();
    const links = this.peers.splice(0).flatMap((peer) => [peer?.outlet, peer?.inlet]);
    // The ends of sockets close in parallel.
    await Promise.all(links.map(async (link) => (link?.shared === false ? link.close() : undefined)));
  }

  #meet(rank: number): Peer {
    return {
      rank,
      local: rank === this.#parts.bootstrap.rank ? -1 : this.localOf(rank),
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
    const { bootstrap, team, onNews } = this.#parts;
    if (rank === bootstrap.rank) return undefined;
    return local >= 0 ? new Outbox(team, local) : new SocketOutlet(team.segment, rank, this.dialling(MESSAGES, onNews));
  }

  #openInlet({ rank, local }: Peer): Peer['inlet'] {
    const { bootstrap, team, onNews } = this.#parts;
    if (rank === bootstrap.rank) return undefined;
    return local >= 0 ? new Inbox(team, local) : new SocketInlet(team.segment, rank, this.dialling(MESSAGES, onNews));
  }
}
