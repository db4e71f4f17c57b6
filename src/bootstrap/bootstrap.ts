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

/**
 * The out-of-band network of a communicator: small messages over TCP while it is set up, split or closed.
 * All ranks of the scope call the collective operations in the same order. An operation waits as long as the ranks that
 * it needs live; messages may have up to 1 GiB. docs/bootstrap.md tells when a rank counts as lost.
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
  /** Calls `listener` once for each peer whose connection broke without a goodbye. Returns a function that stops it. */
  onPeerLost(listener: (rank: number) => void): () => void;
  /** Says goodbye and closes all sockets. Pending operations reject. */
  close(): Promise<void>;
  /** Closes at once; pending and later operations reject with `reason`. */
  abort(reason: Error): void;
}
