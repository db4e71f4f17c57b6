import type { PeerConnections, WantedEnd } from '../../transport/peers.js';
import type { FifoSize } from '../../transport/transport.js';
import type { Channels } from './channels.js';
import type { Combiner } from './combiner.js';
import type { Outputs, Track } from './exchange.js';
import type { NetworkCall } from './network-call.js';

/** An algorithm over connections, with everything specific to it but its traits (traits.ts). */
export interface NetworkAlgorithm {
  /** Size that it requests for its connections, or for each lane of those that have several. */
  readonly fifo: (nRanks: number, nLanes: number) => FifoSize;
  /** The most NICs that one of its connections goes over; left out where that is one. */
  readonly lanes?: (channels: Channels) => number;
  /**
   * The ends of a rank's connections.
   * @param channels whose rings a WantedEnd may name, to use their NICs
   */
  readonly ends: (channels: Channels, rank: number) => Ends;
  /** Prepares this rank for calls. */
  readonly open: (context: NetworkContext) => NetworkPlayer;
}

export interface Ends {
  readonly sendTo: readonly WantedEnd[];
  readonly receiveFrom: readonly WantedEnd[];
}

interface NetworkContext {
  readonly combiner: Combiner;
  readonly outputs: Outputs;
  readonly order: readonly number[];
  readonly channels: Channels;
  readonly rank: number;
  /**
   * The connections that `ends` requested, in that order. Slices must fit their `size.slotBytes`, which may be less than
   * `fifo` requested (in tests): a longer one would overwrite other memory.
   */
  readonly connections: PeerConnections;
}

/** An algorithm on the connections of one rank. */
export interface NetworkPlayer {
  /** Returns this rank's part of a call, whose kind the algorithm supports. */
  start(call: NetworkCall): readonly Track[];
}
