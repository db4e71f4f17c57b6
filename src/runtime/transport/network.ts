import type { Nic } from '../bootstrap/interfaces.js';
import type { Libc } from '../device/libc.js';
import type { Segment } from '../device/segment.js';
import type { WhyGone } from '../failure/breakage.js';
import type { FifoSize, Transport } from './transport.js';

/** The most sockets that a connection may have. */
export const MOST_SOCKETS = 16;

/** A transport for ranks that share no memory. */
export interface Network {
  /** Value of TCCL_NET. */
  readonly name: string;
  /** Name in the log, in NCCL's terms. */
  readonly logName: string;
  /** Reason why it cannot be used in this process, with a remedy; undefined if it can. */
  refusal(): string | undefined;
  /** Reason why it is not chosen unless TCCL_NET names it; undefined if it is better here than those after it in the registry. */
  doubt(): string | undefined;
  /** True if it divides data among NICs by itself, and `nic` is not its choice. */
  readonly choosesNics: boolean;
  /** Version of its library, if it has one. */
  version(): string | undefined;
  open(options: NetworkTransportOptions): Transport;
}

export interface NetworkTransportOptions {
  readonly size: FifoSize;
  /** Segment of this rank; it contains the slots. */
  readonly segment: Segment;
  readonly rank: number;
  /** Address of this host to listen on: chooseInterface() of bootstrap/ finds one. */
  readonly host: string;
  /** The NIC that connections to other hosts use, if `host` is its address. Left out, the kernel chooses. */
  readonly nic?: Nic | undefined;
  /** Number of sockets of a connection, where the network has sockets; left out, 1. */
  readonly sockets?: number;
  /** Secret of the communicator, known to its ranks only. */
  readonly secret: Uint8Array;
  /**
   * Resolves to the reason why a rank ended, from the bootstrap network. Left out, a connection that breaks means that the
   * rank died.
   */
  readonly whyGone?: WhyGone;
  /** Error of a connection that breaks for no known reason; left out, that the rank died. */
  readonly ended?: (cause: Error | undefined) => Error;
  /** A rank with its host and address, for errors. Left out, they have the rank only. */
  readonly placeOf?: (rank: number) => string;
  /**
   * Moves data by system calls during the caller's polls. Left out, or where node:net has no descriptors, node:net moves them.
   */
  readonly libc?: Libc | undefined;
}
