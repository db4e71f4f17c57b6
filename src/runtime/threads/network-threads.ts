import type { Worker } from '#platform/threads';
import type { Bootstrap } from '../bootstrap/bootstrap.js';
import type { Algorithm } from '../algorithms/call.js';
import { packReason, unpackReason } from '../failure/transfer.js';
import { answerer } from './bootstrap-proxy.js';
import type { EngineThreadMemory } from './engine-thread-memory.js';
import { notStarted, startEngineThread } from './start-thread.js';
import type { FromNetworkThread, NetworkThreadData, ToNetworkThread } from './network-thread.js';
import { networkMemoryBytes, type NetworkOptions } from '../algorithms/connections/open-network.js';
import { ThreadEngine } from './thread-engine.js';
import type { WaitLimits } from '../progress/wait-limits.js';
import { graceMs } from '../failure/grace.js';
import { onAbort } from '../abort-signals.js';

interface NetworkThreadOptions extends NetworkOptions {
  readonly bootstrap: Bootstrap;
  /** Algorithms that calls may use. All connections are made now, because a rank that blocks or computes cannot help. */
  readonly algorithms: readonly Algorithm[];
  /** Number of polls of shared memory before the thread gives its core away. */
  readonly spins: number;
  readonly limits: WaitLimits;
  readonly heartbeatMs: number;
  /** Called with warnings about calls that take long; default: standard error. */
  readonly onWarning: ((text: string) => void) | undefined;
  /** Name of the communicator. */
  readonly name: string | undefined;
  /** Receives the thread's wait reports. */
  readonly forwardReport: (report: readonly number[]) => void;
}

/** A thread that has the sockets of a rank's collectives. */
interface NetworkThread {
  readonly engine: ThreadEngine;
  /** Transport to the next rank of the ring. */
  readonly transports: readonly string[];
}

/**
 * Runs the algorithms over connections on a separate thread that owns the sockets: the rank can block, or compute, while data
 * move. Every rank calls it.
 *
 *      rank's thread                     engine thread
 *      bootstrap network   ◄─ asks ────  makes connections, once
 *      call, arrays        ── memory ─►  ring, tree, PAT, pairs  ◄──► sockets
 *      waits               ◄─ memory ──  done, or why not
 *
 * @param signal aborts the making of connections with its reason
 * @throws errors of connecting; SystemError `OUT_OF_MEMORY`, `LAUNCH` when a thread cannot be started
 */
export async function startNetworkThread(options: NetworkThreadOptions, signal: AbortSignal): Promise<NetworkThread> {
  const { bootstrap, team, libc, shared, net, host, secret, channels, nics, aggregators } = options;
  const { algorithms, spins, limits, heartbeatMs, name } = options;
  const { rank, nRanks, peers, localRanks } = bootstrap;
  const bytes = networkMemoryBytes(algorithms, channels, net, rank);
  signal.throwIfAborted();
  const { memory, worker } = startEngineThread<NetworkThreadData>(
    'network-thread.js',
    `network of rank ${rank}`,
    team,
    nRanks,
    bytes,
    {
      team: { address: team.address, members: team.members },
      members: { rank, nRanks, peers, localRanks },
      shared,
      net,
      host,
      secret,
      channels,
      nics: nics ?? [],
      aggregators,
      algorithms,
      spins,
      limits,
      heartbeatMs,
      takesWarnings: options.onWarning !== undefined,
      name,
    },
  );
  const post = (message: ToNetworkThread): void => worker.postMessage(message);
  const stopForwarding = bootstrap.onFailure((error) => post({ kind: 'failure', reason: packReason(error) }));
  const stopListening = onAbort(signal, () => post({ kind: 'abort', reason: packReason(signal.reason as Error) }));
  try {
    const transports = await whenOpened(worker, memory, post, options);
    worker.unref();
    const fail = (error: Error): void => {
      if (memory.reason() !== undefined) return;
      post({ kind: 'abort', reason: packReason(error) });
      memory.waitUntilGivenUp(graceMs.engineThreadSends);
    };
    const engine = new ThreadEngine({
      threads: [{ memory, worker, fail, forwardReport: (report) => post({ kind: 'waits', report }), left: () => undefined }],
      team,
      libc,
      rank,
      nRanks,
      keepsTime: true,
    });
    return { engine, transports };
  } catch (error) {
    void worker.terminate();
    throw signal.aborted ? signal.reason : error;
  } finally {
    stopListening();
    stopForwarding();
  }
}

/**
 * Resolves to the names of the thread's transports once its connections are made. Answers the thread's requests to the
 * bootstrap network, then and later.
 */
function whenOpened(
  worker: Worker,
  memory: EngineThreadMemory,
  post: (message: ToNetworkThread) => void,
  { bootstrap, onWarning, forwardReport }: NetworkThreadOptions,
): Promise<readonly string[]> {
  const answer = answerer(bootstrap);
  return new Promise((resolve, reject) => {
    worker.on('message', (message: FromNetworkThread) => {
      if (message.kind === 'opened') resolve(message.transports);
      else if (message.kind === 'warning') onWarning?.(message.text);
      else if (message.kind === 'waits') forwardReport(message.report);
      else if (message.kind === 'failed') reject(unpackReason(message.reason, bootstrap.rank));
      else void answer(message).then(post);
    });
    worker.on('error', (error) => {
      reject(notStarted(error, 'network-thread.js'));
      memory.gaveUp(packReason(error));
    });
  });
}
