import type { TcclError } from '../../errors.js';
import type { LastStep } from './last-step.js';
import type { WaitLine } from './wait-line.js';

/** Who takes part in an out-of-band operation: all ranks, or those on the caller's host. */
export type Scope = 'all' | 'host';

/** What every rank tells every other in the first all-gather. */
export interface PeerInfo {
  readonly rank: number;
  /** Same for two ranks exactly when they run on one host (kernel boot), in hexadecimal. */
  readonly hostHash: string;
  /** Same for two ranks exactly when they run in one process, in hexadecimal. */
  readonly processHash: string;
  readonly hostname: string;
  readonly pid: number;
  /** What the rank computes on; unique on a host. */
  readonly device: string;
  /** Of tccl. */
  readonly version: string;
}

/** What ranks need of it to connect with each other for data. */
export type Introduction = Pick<
  Bootstrap,
  'rank' | 'nRanks' | 'peers' | 'localRanks' | 'allGather' | 'send' | 'recv' | 'watch' | 'onFailure' | 'whyGone'
>;

/**
 * The out-of-band network of a communicator: small messages over TCP while it is set up, split or closed.
 * All ranks of the scope call the collective operations in the same order. An operation waits as long as the ranks that
 * it needs live; messages may have up to 1 GiB. docs/notes/bootstrap.md tells when a rank counts as lost.
 */
export interface Bootstrap {
  readonly rank: number;
  readonly nRanks: number;
  /** Every rank's info, by rank. */
  readonly peers: readonly PeerInfo[];
  /** The ranks on this host in ascending order; a rank's place in it is its local rank. */
  readonly localRanks: readonly number[];
  readonly localRank: number;
  /** Every rank's bytes by rank, or by local rank with scope `host`; lengths may differ. */
  allGather(data: Uint8Array, scope?: Scope): Promise<Uint8Array[]>;
  barrier(scope?: Scope): Promise<void>;
  /** `root`'s bytes at every rank; `root` is a rank of the communicator in both scopes. */
  broadcast(data: Uint8Array, root: number, scope?: Scope): Promise<Uint8Array>;
  /** Resolves when the bytes are handed to the network. Messages of one tag arrive in order. */
  send(peer: number, tag: number, data: Uint8Array): Promise<void>;
  recv(peer: number, tag: number): Promise<Uint8Array>;
  /**
   * From now on `recv` from a peer that has closed this network rejects, which otherwise is certain only where the two
   * are connected.
   */
  watch(peer: number): void;
  /** For the ranks that wait in a call which all make on this network; one at a time. To be closed with the call. */
  openWaitLine(): WaitLine;
  /**
   * For what a communicator does elsewhere than on this network; there is one. `otherwise` gives what to answer while
   * it does not wait.
   */
  openLastingWaitLine(otherwise: () => readonly number[] | undefined): WaitLine;
  /**
   * Calls `listener` when another rank has failed: it died, gave up, or ended this network for an error. The news come on the
   * bootstrap network's own connections, so they may overtake data that the rank sent before. Returns a function that stops it.
   */
  onFailure(listener: (error: Error) => void): () => void;
  /** Why `peer` does not go on with this rank, as soon as that is known: it is gone, or this network has failed. */
  whyGone(peer: number): Promise<Error>;
  /** Why other ranks cannot complete a collective operation that this one has begun, though this one may have completed it. */
  readonly failure: Error | undefined;
  /** A number for {@link derive} that no network of these ranks has or had. One rank asks and tells the others. */
  nextNumber(): number;
  /**
   * A network of some of the ranks, in that order, over the same connections: it opens none and lives as long as it is
   * not closed itself. Its members call this with the same number and ranks.
   */
  derive(number: number, ranks: readonly number[]): Bootstrap;
  /**
   * Which ranks go on without those that anybody excludes and those that are gone: ascending and alike at all of them,
   * with a number for {@link derive}. Works after a failure too. One who is lost afterwards is left out by asking again, with
   * the same signal. Throws TimeoutError `RANK_MISSING` when the signal ends it, InvalidUsageError `ABORTED` where
   * others exclude this rank.
   */
  survivors(
    excluded: readonly number[],
    signal: AbortSignal,
  ): Promise<{ readonly ranks: readonly number[]; readonly number: number }>;
  /** What all ranks do once at the end of making something on this network: each of them calls it, at the beginning. */
  lastStep(): LastStep;
  /** Says goodbye; sockets close with the last network on them. Pending operations reject. */
  close(): Promise<void>;
  /** Collective operations reject with `reason` from now on, at all ranks; all else goes on. */
  fail(reason: TcclError): void;
  /** Closes at once; pending and later operations reject with `reason`. */
  abort(reason: Error): void;
}
