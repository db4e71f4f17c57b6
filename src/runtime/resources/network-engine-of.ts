import type { Aggregators } from '../aggregator/aggregators.js';
import { decodeJson, encodeJson } from '../bootstrap/json.js';
import { secretOf } from '../bootstrap/unique-id.js';
import type { Algorithm } from '../algorithms/call.js';
import type { Channels } from '../algorithms/connections/channels.js';
import { isOfAggregators } from '../algorithms/choose-algorithm.js';
import { dataHost } from '../algorithms/connections/data-host.js';
import type { Engine } from '../algorithms/engine.js';
import { HEADER_BYTES, HEADER_WORDS } from '../algorithms/connections/exchange.js';
import type { NetworkEngine } from '../algorithms/connections/network-engine.js';
import { openNetwork } from '../algorithms/connections/open-network.js';
import { lowLatencyFifo } from '../algorithms/connections/ring.js';
import { randomBytes } from '../platform/platform.js';
import { spinsFor } from '../progress/backoff.js';
import { shorterLimit } from '../progress/wait-limits.js';
import { startNetworkThread } from '#seam/threads/network-threads';
import { connectRing } from '../transport/ring.js';
import { ShmTransport } from '../transport/shm.js';
import { netOf } from './agree.js';
import { lowLatencyBytesOf, type EngineContext } from './engine-context.js';

/** Makes the engine of the algorithms over connections. */
export async function networkEngine(
  context: EngineContext,
  channels: Channels,
  algorithms: readonly Algorithm[],
  oneSegment: boolean,
  nThreads: number,
): Promise<{ readonly engine: Engine; readonly transports: readonly string[] }> {
  const { bootstrap, shared, team, facts, libc, nCores, settings, network: environment, id, signal, threads } = context;
  const { onWarning, name, forwardReport } = context;
  const { nics = [] } = facts[bootstrap.rank]?.location ?? {};
  const host = dataHost(bootstrap, environment, id);
  const aggregators = algorithms.some(isOfAggregators) ? await aggregatorsOf(context) : undefined;
  const options = { bootstrap, shared, team, libc, channels, nics, aggregators, net: netOf(facts), host, secret: secretOf(id) };
  if (nThreads > 0) {
    // Then a rank has two threads, one of which waits.
    const spins = spinsFor(bootstrap.localRanks.length, nCores);
    return startNetworkThread(
      {
        ...options,
        algorithms,
        spins,
        limits: {
          timeoutMs: settings.timeoutMs,
          warnAfterMs: settings.warnAfterMs,
          reportAtMs: settings.reportAtMs,
          isOfProgram: settings.isOfProgram,
        },
        heartbeatMs: settings.heartbeatMs,
        onWarning,
        name,
        forwardReport,
      },
      signal,
    );
  }
  const network = await openNetwork(options, signal, context.reports);
  // A blocking call cannot make connections.
  if (oneSegment || threads.connectsAll) await network.openAll(algorithms);
  const lowLatencyBytes = lowLatencyBytesOf(oneSegment, nThreads, settings);
  if (lowLatencyBytes >= 0) await addLowLatency(context, channels.order, network, lowLatencyBytes);
  return { engine: network, transports: network.transports };
}

/** The aggregators, with a random name of the communicator. Every rank calls it. */
async function aggregatorsOf({ bootstrap, settings, network }: EngineContext): Promise<Aggregators> {
  const name = bootstrap.rank === 0 ? randomBytes(16).toString('hex') : '';
  const communicator = decodeJson(await bootstrap.broadcast(encodeJson(name), 0)) as string;
  return { ids: settings.aggregators, secret: network.commSecret, communicator, limitMs: shorterLimit(settings) };
}

/** Adds a second ring with the protocol LL, for calls up to `bytes`. */
async function addLowLatency(
  { bootstrap, team, signal }: EngineContext,
  order: readonly number[],
  network: NetworkEngine,
  bytes: number,
): Promise<void> {
  const header = { headerBytes: HEADER_BYTES, headerWords: HEADER_WORDS };
  const transport = new ShmTransport({ size: lowLatencyFifo, team, localRanks: bootstrap.localRanks, lowLatency: header });
  network.useLowLatency(await connectRing(bootstrap, order, () => transport, signal), bytes);
}
