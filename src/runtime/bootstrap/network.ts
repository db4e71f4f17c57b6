import { InvalidArgumentError, InvalidUsageError, RemoteError, TcclError } from '../../errors.js';
import type { Bootstrap, PeerInfo, Scope } from './bootstrap.js';
import { isInRanksOfNetwork, packError, unpackError, type TransferredError } from '../failure/transfer.js';
import { RankGroup } from './group.js';
import { CommitBarrier } from './commit-barrier.js';
import { ofSilence, silenceOf } from '../failure/silence.js';
import type { Mesh } from './mesh.js';
import { ranksOnHost } from './peer-info.js';
import { agreeOnSurvivors, type Survivors, type SurvivorWish } from './survivors.js';
import { WaitQueries } from './wait-queries.js';
import { clearInterval, setInterval, type Timer } from '../platform/platform.js';
import { defined } from '../../defined.js';

/** Message spaces of network number 0, which has all ranks of the mesh. */
export const spaces = { all: 1, host: 2, tags: 3, survivors: 4, commitBarrier: 5, waits: 6 } as const;
const SPACES_PER_NETWORK = 6;

const LARGEST_TAG = 0xffffffff;

/**
 * The out-of-band network of a rank whose mesh is complete: of all ranks of the mesh, or of some of them, in any order. All
 * networks of a mesh use its connections, which end when the last network is closed.
 */
export class Network implements Bootstrap {
  readonly id: string;
  readonly rank: number;
  readonly nRanks: number;
  readonly peers: readonly PeerInfo[];
  readonly localRanks: readonly number[];
  readonly localRank: number;
  readonly #mesh: Mesh;
  /** The mesh's rank of each rank. */
  readonly members: readonly number[];
  readonly #groups: Readonly<Record<Scope, RankGroup>>;
  readonly #firstSpace: number;
  #pending = 0;
  /** Number of this rank's queries for survivors, and the signal of the last query. */
  #asked = 0;
  #askedWith: AbortSignal | undefined;
  /** Keeps the process alive during a pending operation; sockets alone do not. */
  #keepAlive: Timer | undefined;
  #closing: Promise<void> | undefined;
  #closed: Error | undefined;
  /** Error with which collective operations ended early. */
  #failure: TcclError | undefined;

  /**
   * @param number from the mesh, the same on all members; 0 for the network in which the peers were introduced
   * @param members ranks of the mesh in the order of the network
   * @param peers by rank of the mesh
   * @param all the group of all members, if it exists already
   */
  constructor(mesh: Mesh, number: number, members: readonly number[], peers: readonly PeerInfo[], all?: RankGroup) {
    this.#mesh = mesh;
    this.members = members;
    this.#firstSpace = number * SPACES_PER_NETWORK;
    this.id = `${number}.${defined(members[0])}`;
    this.rank = members.indexOf(mesh.rank);
    this.nRanks = members.length;
    this.peers = members.flatMap((member, rank) => {
      const peer = peers[member];
      return peer === undefined ? [] : [{ ...peer, rank }];
    });
    this.localRanks = ranksOnHost(this.peers, this.rank);
    this.localRank = this.localRanks.indexOf(this.rank);
    const name = number === 0 ? '' : ` of network ${number} from rank ${defined(members[0])}`;
    const host = this.localRanks.map((rank) => this.#meshRank(rank));
    this.#groups = {
      all: all ?? new RankGroup(mesh, members, this.#firstSpace + spaces.all, `all${name}`),
      host: new RankGroup(mesh, host, this.#firstSpace + spaces.host, `host of rank ${defined(host[0])}${name}`),
    };
    mesh.use(this.#tagSpace);
  }

  allGather(data: Uint8Array, scope: Scope = 'all'): Promise<Uint8Array[]> {
    return this.#hold(this.#groups[scope].allGather(data));
  }

  barrier(scope: Scope = 'all'): Promise<void> {
    return this.#hold(this.#groups[scope].barrier());
  }

  async broadcast(data: Uint8Array, root: number, scope: Scope = 'all'): Promise<Uint8Array> {
    const group = this.#groups[scope];
    const index = group.ranks.indexOf(this.#meshRank(root));
    if (index < 0) {
      const where =
        scope === 'all' ? `the ranks are 0 to ${this.nRanks - 1}` : `those of this host are ${this.localRanks.join(', ')}`;
      throw new InvalidArgumentError('ROOT_RANGE', `rank ${this.rank}: there is no rank ${root} to broadcast from; ${where}`);
    }
    return this.#hold(group.broadcast(data, index));
  }

  async send(peer: number, tag: number, data: Uint8Array): Promise<void> {
    this.#check(peer, tag);
    return this.#hold(this.#mesh.post(this.#meshRank(peer), { space: this.#tagSpace, operation: 0, number: tag }, data));
  }

  async recv(peer: number, tag: number): Promise<Uint8Array> {
    this.#check(peer, tag);
    const { data } = await this.#hold(
      this.#mesh.take(this.#meshRank(peer), { space: this.#tagSpace, number: tag }).catch((error: unknown) => {
        // A rank that closes after a failure has reported the failure before.
        throw error instanceof RemoteError && error.code === 'CLOSED' ? (this.#groups.all.failure ?? error) : error;
      }),
    );
    return data;
  }

  watch(peer: number): void {
    this.#mesh.watch(this.#meshRank(peer), this.#tagSpace);
  }

  waitFor(peer: number): () => void {
    return this.#mesh.waitFor(this.#meshRank(peer));
  }

  openWaitQueries(): WaitQueries {
    return new WaitQueries(this.#mesh, this.members, this.#tagSpace);
  }

  openLastingWaitQueries(): WaitQueries {
    return new WaitQueries(this.#mesh, this.members, this.#firstSpace + spaces.waits);
  }

  onFailure(listener: (error: Error) => void): () => void {
    // Later, so that an error of the listener does not end the connection that brought the notice.
    return this.#groups.all.onFailure((error) => queueMicrotask(() => listener(this.#news(error))));
  }

  onDeath(listener: (error: Error) => void): () => void {
    return this.#mesh.onDeath((error) => {
      if (this.members.includes(error.rank ?? -1)) listener(this.#news(error));
    });
  }

  async whyGone(peer: number): Promise<Error> {
    return this.#news(await this.#groups.all.whyGone(this.#meshRank(peer)));
  }

  get failure(): Error | undefined {
    const reason = this.#groups.all.brokenOff;
    return reason === undefined ? undefined : (this.#inMyRanks(reason) as Error);
  }

  nextNumber(): number {
    return this.#mesh.nextNetworkNumber();
  }

  derive(number: number, ranks: readonly number[]): Network {
    const infos: PeerInfo[] = [];
    for (const peer of this.peers) infos[this.#meshRank(peer.rank)] = peer;
    return new Network(
      this.#mesh,
      number,
      ranks.map((rank) => this.#meshRank(rank)),
      infos,
    );
  }

  survivors(
    excluded: readonly number[],
    signal: AbortSignal,
    { call = 'shrink', quorum = false, flag = true }: SurvivorWish = {},
  ): Promise<Survivors> {
    // A query is repeated when a rank dies, by some ranks more often than by others, which knew of the death sooner.
    if (signal !== this.#askedWith) this.#asked++;
    this.#askedWith = signal;
    const question = {
      members: this.members,
      excluded,
      call,
      quorum,
      flag,
      space: this.#firstSpace + spaces.survivors,
      number: this.#asked,
      signal,
    };
    return this.#hold(agreeOnSurvivors(this.#mesh, question));
  }

  commitBarrier(): CommitBarrier {
    return new CommitBarrier(this.#mesh, this.members, this.#firstSpace + spaces.commitBarrier);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  fail(reason: TcclError): void {
    if (this.#closed !== undefined) return;
    this.#failure ??= reason;
    for (const group of Object.values(this.#groups)) group.fail(reason);
    // Abort connections that are being made: their waits would keep the process alive.
    this.#mesh.leaveSpace(this.#tagSpace, reason);
    if (reason.code === 'RANK_DIED' && reason.rank !== undefined) this.#mesh.foundDead(this.#meshRank(reason.rank));
  }

  abort(reason: Error): void {
    if (this.#closed !== undefined) return;
    if (this.#mesh.users === 1) {
      this.#leave(reason);
      const death = this.#deathOfAnother(reason);
      this.#mesh.abort(reason, { kind: 'aborted', rank: this.#mesh.rank, reason: reason.message, death });
      return;
    }
    this.fail(
      reason instanceof TcclError
        ? reason
        : new RemoteError('ABORTED', `rank ${this.rank} aborted: ${reason.message}`, { rank: this.rank }),
    );
    this.#leave(reason);
  }

  async #close(): Promise<void> {
    if (this.#closed !== undefined) return;
    const reason = new InvalidUsageError('CLOSED', `rank ${this.rank} has closed its communicator`);
    // For the last network, the end of the connections shows it.
    if (this.#mesh.users > 1) {
      for (const group of Object.values(this.#groups)) group.sayGoodbye();
      this.#mesh.fallSilent(this.members, this.#tagSpace, this.#failure);
    }
    if (this.#leave(reason) === 0) await this.#mesh.close(reason);
  }

  /** Ends all activity of this network here. Returns the number of networks that remain on the mesh. */
  #leave(reason: Error): number {
    this.#closed = reason;
    for (const group of Object.values(this.#groups)) group.close(reason);
    this.#mesh.leaveSpace(this.#tagSpace, reason);
    this.#mesh.leaveSpace(this.#firstSpace + spaces.survivors, reason);
    return this.#mesh.leaveUse(this.#tagSpace);
  }

  get #tagSpace(): number {
    return this.#firstSpace + spaces.tags;
  }

  /** The loss of another rank, which the others may learn from this one alone: a data connection may break first. */
  #deathOfAnother(reason: Error): TransferredError | undefined {
    if (!(reason instanceof RemoteError) || reason.code !== 'RANK_DIED' || reason.rank === undefined) return undefined;
    const rank = this.#meshRank(reason.rank);
    return rank === this.#mesh.rank ? undefined : { ...packError(reason), rank };
  }

  #meshRank(rank: number): number {
    return this.members[rank] ?? -1;
  }

  #check(peer: number, tag: number): void {
    if (!Number.isInteger(peer) || peer < 0 || peer >= this.nRanks) {
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `rank ${this.rank}: there is no rank ${peer}; the ranks are 0 to ${this.nRanks - 1}`,
      );
    }
    if (!Number.isInteger(tag) || tag < 0 || tag > LARGEST_TAG) {
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `rank ${this.rank}: the tag ${tag} is not a whole number from 0 to ${LARGEST_TAG}`,
      );
    }
  }

  async #hold<T>(operation: Promise<T>): Promise<T> {
    if (this.#closed !== undefined) {
      operation.catch(() => undefined);
      throw this.#closed;
    }
    if (this.#pending++ === 0) this.#keepAlive = setInterval(() => undefined, 2 ** 30);
    try {
      return await operation;
    } catch (error) {
      throw this.#inMyRanks(error);
    } finally {
      if (--this.#pending === 0) clearInterval(this.#keepAlive);
    }
  }

  /** A copy of an error of the mesh for this network alone: all networks of the mesh get it, and communicators add to theirs. */
  #news(error: Error): Error {
    const mine = this.#inMyRanks(error) as Error;
    return mine === error && mine instanceof TcclError ? unpackError(packError(mine)) : mine;
  }

  /** Translates an error's rank from the mesh's number to this network's. Errors of this network already have that. */
  #inMyRanks(error: unknown): unknown {
    if (!(error instanceof RemoteError) || error.rank === undefined || isInRanksOfNetwork(error)) return error;
    const rank = this.members.indexOf(error.rank);
    if (rank < 0 || rank === error.rank) return error;
    const message = `${error.message} (it is rank ${rank} of this communicator)`;
    return ofSilence(new RemoteError(error.code, message, { rank, cause: error }), silenceOf(error));
  }
}
