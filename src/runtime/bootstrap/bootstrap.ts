import type { TcclError } from '../../errors.js';
import type { CommitBarrier } from './commit-barrier.js';
import type { Survivors, SurvivorWish } from './survivors.js';
import type { WaitQueries } from './wait-queries.js';

/** Members of an out-of-band operation: all ranks, or those on the caller's host. */
export type Scope = 'all' | 'host';

/** Data that every rank sends to every other in the first all-gather. */
export interface PeerInfo {
  readonly rank: number;
  /** Equal for two ranks exactly if they run on one host (kernel boot), in hexadecimal. */
  readonly hostHash: string;
  /** Equal for two ranks exactly if they run in one process, in hexadecimal. */
  readonly processHash: string;
  readonly hostname: string;
  readonly pid: number;
  /** Device of the rank; unique on a host. */
  readonly device: string;
  /** Version of tccl. */
  readonly version: string;
  /** IP address that it listens on. */
  readonly ip: string;
}

/** Part of the bootstrap network that ranks need to connect with each other for data. */
export type Introduction = Pick<
  Bootstrap,
  | 'rank'
  | 'nRanks'
  | 'peers'
  | 'localRanks'
  | 'allGather'
  | 'send'
  | 'recv'
  | 'watch'
  | 'waitFor'
  | 'onFailure'
  | 'whyGone'
  | 'fail'
>;

/**
 * The out-of-band network of a communicator: small messages over TCP while it is set up, split or closed. All ranks of the
 * scope call the collective operations in the same order. An operation waits as long as the ranks that it needs are alive;
 * messages may have up to 1 GiB. docs/notes/bootstrap.md defines when a rank counts as lost.
 */
export interface Bootstrap {
  /** The same on all ranks, and no other network of a job has it. */
  readonly id: string;
  readonly rank: number;
  readonly nRanks: number;
  /** The number of each rank in the job. */
  readonly members: readonly number[];
  /** Every rank's info, by rank. */
  readonly peers: readonly PeerInfo[];
  /** The ranks on this host in ascending order; a rank's index in it is its local rank. */
  readonly localRanks: readonly number[];
  readonly localRank: number;
  /** Returns every rank's bytes by rank, or by local rank with scope `host`; lengths may differ. */
  allGather(data: Uint8Array, scope?: Scope): Promise<Uint8Array[]>;
  barrier(scope?: Scope): Promise<void>;
  /** Returns `root`'s bytes on every rank; `root` is a rank of the communicator in both scopes. */
  broadcast(data: Uint8Array, root: number, scope?: Scope): Promise<Uint8Array>;
  /** Resolves when the bytes are handed to the network. Messages with one tag arrive in order. */
  send(peer: number, tag: number, data: Uint8Array): Promise<void>;
  recv(peer: number, tag: number): Promise<Uint8Array>;
  /**
   * From now on, `recv` from a peer that has closed this network rejects. Without this, that is certain only if the two are
   * connected.
   */
  watch(peer: number): void;
  /**
   * Counts `peer` as a rank that this one waits for, as during `recv`, until the returned function is called: wait queries name
   * it if the wait does not end.
   */
  waitFor(peer: number): () => void;
  /** Opens the line for ranks that wait in a common call on this network; one at a time. Close it with the call. */
  openWaitQueries(): WaitQueries;
  /** Opens the line for the communicator's other waits; there is one. */
  openLastingWaitQueries(): WaitQueries;
  /**
   * Calls `listener` when another rank has failed: it died, gave up, or ended this network with an error. The notice uses the
   * bootstrap network's own connections, so it may overtake data that the rank sent before. Returns a function that removes
   * the listener.
   */
  onFailure(listener: (error: Error) => void): () => void;
  /**
   * Calls `listener` immediately when another network of this process has ended because a rank of this one died. Returns a
   * function that removes the listener.
   */
  onDeath(listener: (error: Error) => void): () => void;
  /** Resolves to the reason why `peer` ended, once known: it is gone, or this network has failed. */
  whyGone(peer: number): Promise<Error>;
  /** Error for which other ranks cannot complete a collective operation that this rank has begun, and may have completed. */
  readonly failure: Error | undefined;
  /** A number for {@link derive} that no network of these ranks has or had. One rank takes it and sends it to the others. */
  nextNumber(): number;
  /**
   * Makes a network of some of the ranks, in that order, on the same connections: it opens none, and stays until it is closed
   * itself. Its members pass the same number and ranks.
   */
  derive(number: number, ranks: readonly number[]): Bootstrap;
  /**
   * The survivors: ranks that no rank excludes and that are not gone, ascending and equal on all of them, with a number
   * for {@link derive}. Works after a failure too. If a rank is lost afterwards, call again with the same signal. Throws
   * TimeoutError `RANK_MISSING` when the signal ends the wait, InvalidUsageError `ABORTED` if others exclude this rank,
   * RemoteError `NO_QUORUM` if they are no majority, and a rank asks for one by `quorum`.
   */
  survivors(excluded: readonly number[], signal: AbortSignal, wish?: SurvivorWish): Promise<Survivors>;
  /** The barrier that commits something that the ranks make on this network: every rank calls it once, at the beginning. */
  commitBarrier(): CommitBarrier;
  /** Sends a goodbye; sockets close with the last network on them. Pending operations reject. */
  close(): Promise<void>;
  /** From now on, collective operations of all ranks reject with `reason`; everything else goes on. */
  fail(reason: TcclError): void;
  /** Closes immediately; pending and later operations reject with `reason`. */
  abort(reason: Error): void;
}
