import { InvalidArgumentError, InvalidUsageError } from '../errors.js';
import type { Bootstrap, PeerInfo, Scope } from './bootstrap.js';
import { Group } from './group.js';
import type { Mesh } from './mesh.js';

/** Message spaces of {@link Network}. */
export const spaces = { all: 1, host: 2, tags: 3 } as const;

const largestTag = 0xffffffff;

/** The out-of-band network of a rank whose mesh is complete. */
export class Network implements Bootstrap {
  readonly rank: number;
  readonly nRanks: number;
  readonly peers: readonly PeerInfo[];
  readonly localRanks: readonly number[];
  readonly localRank: number;
  readonly #mesh: Mesh;
  readonly #groups: Readonly<Record<Scope, Group>>;
  #pending = 0;
  /** Sockets alone don't keep the process alive; a pending operation does. */
  #keepAlive: NodeJS.Timeout | undefined;
  #closing: Promise<void> | undefined;

  /**
   * @param all The group of all ranks, in which the peers were introduced.
   */
  constructor(mesh: Mesh, all: Group, peers: readonly PeerInfo[], localRanks: readonly number[]) {
    this.rank = mesh.rank;
    this.nRanks = mesh.nRanks;
    this.peers = peers;
    this.localRanks = localRanks;
    this.localRank = localRanks.indexOf(mesh.rank);
    this.#mesh = mesh;
    this.#groups = { all, host: new Group(mesh, localRanks, spaces.host, `host of rank ${localRanks[0] ?? mesh.rank}`) };
  }

  allGather(data: Uint8Array, scope: Scope = 'all'): Promise<Uint8Array[]> {
    return this.#hold(this.#groups[scope].allGather(data));
  }

  barrier(scope: Scope = 'all'): Promise<void> {
    return this.#hold(this.#groups[scope].barrier());
  }

  async broadcast(data: Uint8Array, root: number, scope: Scope = 'all'): Promise<Uint8Array> {
    const group = this.#groups[scope];
    const index = group.ranks.indexOf(root);
    if (index < 0) {
      const where = scope === 'all' ? `the ranks are 0 to ${this.nRanks - 1}` : `those of this host are ${group.ranks.join(', ')}`;
      throw new InvalidArgumentError('ROOT_RANGE', `rank ${this.rank}: there is no rank ${root} to broadcast from; ${where}`);
    }
    return this.#hold(group.broadcast(data, index));
  }

  async send(peer: number, tag: number, data: Uint8Array): Promise<void> {
    this.#check(peer, tag);
    return this.#hold(this.#mesh.post(peer, { space: spaces.tags, operation: 0, number: tag }, data));
  }

  async recv(peer: number, tag: number): Promise<Uint8Array> {
    this.#check(peer, tag);
    const { data } = await this.#hold(this.#mesh.take(peer, { space: spaces.tags, number: tag }));
    return data;
  }

  onPeerLost(listener: (rank: number) => void): () => void {
    // Later, so that what the listener throws is its caller's error, not the connection's that brought the news.
    return this.#mesh.onLost((rank) => queueMicrotask(() => listener(rank)));
  }

  close(): Promise<void> {
    this.#closing ??= this.#mesh.close(new InvalidUsageError('CLOSED', `rank ${this.rank} has closed its communicator`));
    return this.#closing;
  }

  abort(reason: Error): void {
    this.#mesh.abort(reason, { kind: 'aborted', rank: this.rank, reason: reason.message });
  }

  #check(peer: number, tag: number): void {
    if (!Number.isInteger(peer) || peer < 0 || peer >= this.nRanks) {
      throw new InvalidArgumentError('ARGUMENT_RANGE', `rank ${this.rank}: there is no rank ${peer}; the ranks are 0 to ${this.nRanks - 1}`);
    }
    if (!Number.isInteger(tag) || tag < 0 || tag > largestTag) {
      throw new InvalidArgumentError('ARGUMENT_RANGE', `rank ${this.rank}: the tag ${tag} is not a whole number from 0 to ${largestTag}`);
    }
  }

  async #hold<T>(operation: Promise<T>): Promise<T> {
    if (this.#pending++ === 0) this.#keepAlive = setInterval(() => undefined, 2 ** 30);
    try {
      return await operation;
    } finally {
      if (--this.#pending === 0) clearInterval(this.#keepAlive);
    }
  }
}
