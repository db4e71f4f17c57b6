import type { Introduction } from '../../bootstrap/bootstrap.js';
import { connectAggregator } from '#seam/aggregator/connect';
import type { Aggregators } from '../../aggregator/aggregators.js';
import type { Algorithm } from '../call.js';
import { nicsBetween, type Channels } from './channels.js';
import { headOf } from './collnet-trees.js';
import { TimeoutError } from '../../../errors.js';
import { REASON_BYTES } from '../../failure/transfer.js';
import { TransportsByNic, type NetworkMeans } from '../../transport/by-nic.js';
import { connectPeers, keyOf, type PeerConnections, type TransportFor, type WantedEnd } from '../../transport/peers.js';
import { inLanes } from '#seam/transport/rails';
import type { Ends } from './algorithm.js';
import { connectRings } from '../../transport/ring.js';
import { ShmTransport } from '../../transport/shm.js';
import type { ChosenNetwork } from '#seam/transport/networks';
import type { FifoSize, Transport, TwoWayConnection } from '../../transport/transport.js';
import { afterWatching } from '../../progress/watch-clock.js';
import { networkAlgorithm } from './registry.js';
import { ringFifo } from './ring.js';
import type { ReportsOnRequest } from '../wait-chains.js';
import { NetworkEngine, type Connect } from './network-engine.js';
import { withAnySignal } from '../../abort-signals.js';
import { defined } from '../../../defined.js';

/** Time limit for connections that are made at first use. */
const CONNECT_TIMEOUT_MS = 60_000;
/** See connectBeside(). */
const BESIDE_TAG = 0xc0111ec8;
/** More than a slot and a connection need beside data, and than an algorithm needs beside its connections. */
const BESIDES_SLOT_BYTES = 256;
const BESIDES_CONNECTION_BYTES = 16 * 1024;
const BESIDES_BYTES = 64 * 1024;

/** Means of a rank to connect with the others for data. */
interface DataTransports extends NetworkMeans {
  readonly bootstrap: Introduction;
  /** True if all ranks of this host share memory. */
  readonly shared: boolean;
  readonly channels?: Channels;
}

/** The same, for an engine. */
export interface NetworkOptions extends DataTransports {
  readonly channels: Channels;
  readonly aggregators: Aggregators | undefined;
}

/**
 * Opens all rings, and returns an engine that makes other connections when they are needed.
 *
 * @param signal aborts the opening
 * @param reports of ranks whose connections may not have been made yet
 */
export async function openNetwork(
  options: NetworkOptions,
  signal: AbortSignal,
  reports?: ReportsOnRequest,
): Promise<NetworkEngine> {
  const { bootstrap, team, libc, channels } = options;
  const { rank, nRanks } = bootstrap;
  const rings = await overTransports(options, ringFifo(nRanks), (transportFor) =>
    connectRings(bootstrap, channels.rings, transportFor, signal),
  );
  const connect: Connect = (algorithm, stop, pending) => {
    const { sendTo, receiveFrom } = networkAlgorithm(algorithm).ends(channels, rank);
    return overTransports(options, fifoOf(algorithm, channels), (transportFor) =>
      connectInTime(CONNECT_TIMEOUT_MS, (late) =>
        withAnySignal([late, stop], async (either) => {
          const isOfRanks = ({ peer }: WantedEnd): boolean => peer < nRanks;
          const heads = sendTo.filter((end) => !isOfRanks(end));
          const others = [sendTo.filter(isOfRanks), receiveFrom.filter(isOfRanks)] as const;
          const connections = await connectPeers(bootstrap, ...others, transportFor, either, { pending });
          return heads.length === 0
            ? connections
            : withAggregators(options, algorithm, { sendTo, receiveFrom }, connections, either);
        }),
      ),
    );
  };
  return new NetworkEngine(team, libc, rings, channels, connect, reports);
}

/** Connections of all ends, of which `made` are those with ranks. */
async function withAggregators(
  { bootstrap, team, libc, host, channels, aggregators }: NetworkOptions,
  algorithm: Algorithm,
  { sendTo, receiveFrom }: Ends,
  made: PeerConnections,
  signal: AbortSignal,
): Promise<PeerConnections> {
  const { rank, nRanks } = bootstrap;
  const beyond = new Map<string, TwoWayConnection>();
  const end = (error: unknown): never => {
    for (const connection of [...made.sends, ...made.receives, ...beyond.values()]) connection.abort(error as Error);
    throw error;
  };
  for (const wanted of sendTo) {
    if (wanted.peer < nRanks || aggregators === undefined) continue;
    const of = headOf(channels, rank, wanted.peer, wanted.name, algorithm);
    const options = { bootstrap, segment: team.segment, libc, host, size: fifoOf(algorithm, channels) };
    beyond.set(keyOf(wanted), await connectAggregator(aggregators, of, options, signal).catch(end));
  }
  const isOfRank = ({ peer }: WantedEnd): boolean => peer < nRanks;
  const madeTo = new Map(sendTo.filter(isOfRank).map((wanted, index) => [keyOf(wanted), made.sends[index]]));
  const madeFrom = new Map(receiveFrom.filter(isOfRank).map((wanted, index) => [keyOf(wanted), made.receives[index]]));
  return {
    sends: sendTo.map((wanted) => beyond.get(keyOf(wanted)) ?? defined(madeTo.get(keyOf(wanted)))),
    receives: receiveFrom.map((wanted) => beyond.get(keyOf(wanted)) ?? defined(madeFrom.get(keyOf(wanted)))),
  };
}

/** Does something with transports whose connections have a size: shared memory within a host, a network beyond. */
async function overTransports<T>(
  means: DataTransports,
  size: FifoSize,
  make: (transportFor: TransportFor) => Promise<T>,
): Promise<T> {
  const { bootstrap, shared, team, channels } = means;
  const { rank, localRanks } = bootstrap;
  const shm = new ShmTransport({ size, team, localRanks });
  const byNic = new TransportsByNic(size, means);
  const networkFor = (peer: number, channel: WantedEnd['channel']): Transport => {
    if (channel !== 'all') return byNic.over(channel === undefined ? undefined : channels?.rings[channel]?.nics[rank]?.name);
    const lanes = channels === undefined || byNic.network.choosesNics ? undefined : nicsBetween(channels, rank, peer);
    return (lanes === undefined ? undefined : inLanes(lanes, (nic) => byNic.over(nic))) ?? byNic.over();
  };
  try {
    return await make((peer, channel) => (shared && localRanks.includes(peer) ? shm : networkFor(peer, channel)));
  } finally {
    byNic.close();
    shm.close();
  }
}

/** Connections beside those of the communicator's engine. Messages of their making have a tag of their own. */
export function connectBeside(
  options: DataTransports,
  size: FifoSize,
  { sendTo, receiveFrom }: Ends,
  signal: AbortSignal,
): Promise<PeerConnections> {
  return overTransports(options, size, (transportFor) =>
    connectPeers(options.bootstrap, sendTo, receiveFrom, transportFor, signal, { tag: BESIDE_TAG }),
  );
}

/** Enough memory in this rank's heap for a network with all connections of these algorithms. */
export function networkMemoryBytes(
  algorithms: readonly Algorithm[],
  channels: Channels,
  { sockets }: ChosenNetwork,
  rank: number,
): number {
  const needed = [...new Set<Algorithm>(['ring', ...algorithms])].map((algorithm) => {
    const size = fifoOf(algorithm, channels);
    const { sendTo, receiveFrom } = networkAlgorithm(algorithm).ends(channels, rank);
    const nLanes = [...sendTo, ...receiveFrom].reduce((sum, end) => sum + lanesOf(channels, rank, end), 0);
    return nLanes * sockets * connectionBytes(size) + size.slotBytes;
  });
  return needed.reduce((sum, bytes) => sum + bytes, BESIDES_BYTES);
}

function fifoOf(algorithm: Algorithm, channels: Channels): FifoSize {
  const { fifo, lanes } = networkAlgorithm(algorithm);
  return fifo(channels.order.length, lanes?.(channels) ?? 1);
}

/** The most NICs that a connection goes over. */
function lanesOf(channels: Channels, rank: number, { peer, channel }: WantedEnd): number {
  return channel === 'all' ? Math.max(1, nicsBetween(channels, rank, peer).nics.length) : 1;
}

/** Enough memory in this rank's heap for one end of a connection. */
function connectionBytes({ steps, slotBytes }: FifoSize): number {
  return (steps + 1) * (Math.max(slotBytes, REASON_BYTES) + BESIDES_SLOT_BYTES) + BESIDES_CONNECTION_BYTES;
}

/** Returns the result of `connect`, whose signal is aborted when it takes too long. */
async function connectInTime<T>(timeoutMs: number, connect: (late: AbortSignal) => Promise<T>): Promise<T> {
  const late = new AbortController();
  const lift = afterWatching(
    timeoutMs,
    () =>
      late.abort(new TimeoutError('TIMEOUT', `the ranks did not connect with each other for data within ${timeoutMs / 1000} s`)),
    { ref: false },
  );
  try {
    return await connect(late.signal);
  } finally {
    lift();
  }
}
