import type { PeerConnections, WantedEnd } from '../transport/peers.js';
import type { FifoSize } from '../transport/transport.js';
import type { Algorithm, CallKind } from './call.js';
import type { Combiner } from './combiner.js';
import type { Track } from './exchange.js';
import type { NetworkCall } from './network-call.js';

/** The properties of an algorithm that decide which calls take it. */
export interface AlgorithmTraits {
  readonly name: Algorithm;
  readonly kinds: readonly CallKind[];
  /** Largest number of ranks it works with. */
  readonly mostRanks: number;
  /** `segment`: all ranks share one segment. `connections`: it sends messages, over shared memory or sockets. */
  readonly over: 'segment' | 'connections';
  /**
   * Largest call in bytes that takes this algorithm by default among ranks that use connections; 0 for none.
   * A call takes the algorithm of the smallest range that holds it.
   */
  readonly defaultUpToBytes: (nRanks: number) => number;
}

/** An algorithm over connections: all that is particular to it. */
export interface NetworkAlgorithm extends AlgorithmTraits {
  readonly over: 'connections';
  /** The size of its connections. */
  readonly fifo: (nRanks: number) => FifoSize;
  /**
   * The ends that a rank has of its connections.
   * @param order the ranks in the order of the ring, host by host
   */
  readonly ends: (order: readonly number[], rank: number) => Ends;
  /** Prepares this rank for calls. */
  readonly open: (context: NetworkContext) => NetworkPlayer;
}

export interface Ends {
  readonly sendTo: readonly WantedEnd[];
  readonly receiveFrom: readonly WantedEnd[];
}

export interface NetworkContext {
  readonly combiner: Combiner;
  readonly order: readonly number[];
  readonly rank: number;
  /** The connections that `ends` asked for, in that order. */
  readonly connections: PeerConnections;
}

/** An algorithm on the connections of one rank. */
export interface NetworkPlayer {
  /** This rank's part of a call, of a kind that the algorithm has. */
  start(call: NetworkCall): readonly Track[];
}
