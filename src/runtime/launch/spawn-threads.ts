import type { Worker } from 'node:worker_threads';
import { resolve } from 'node:path';
import { InvalidArgumentError, RemoteError } from '../../errors.js';
import type { PlatformAbortSignal } from '../platform.js';
import { afterWatching } from '../progress/watch-clock.js';
import { localMeetingPoint } from './meeting-point.js';
import { workerFlags } from './worker-flags.js';
import { startThreadAt } from './thread-placement.js';

/** Options of spawnRanks(). */
export interface SpawnRanksOptions {
  /** Arguments of the module: `process.argv.slice(2)` in the ranks. */
  readonly args?: readonly string[] | undefined;
  /** Environment variables in addition to those of this process. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** `workerData` in the ranks. */
  readonly workerData?: unknown;
  /** Node's command-line options for the ranks; default: those of this process. */
  readonly execArgv?: readonly string[] | undefined;
  /**
   * Called with each message that a rank sends with `parentPort.postMessage`. If it throws, all ranks end and the promise
   * rejects.
   */
  readonly onMessage?: ((message: unknown, rank: number) => void) | undefined;
  /** Time that the other ranks may run after one fails, milliseconds. Default 1000. */
  readonly graceMs?: number | undefined;
  /** Ends all ranks; the promise rejects with the signal's reason. */
  readonly signal?: PlatformAbortSignal | undefined;
}

/** @internal Options that the runtime adds. */
export interface SpawnThreadsOptions extends SpawnRanksOptions {
  /** Memory shared by the ranks, and their id. */
  readonly memory?: WebAssembly.Memory;
  /** Called once for each rank after its thread has ended. */
  readonly onEnd?: (rank: number) => void;
}

/** A failed rank, with the error that it threw or its exit code. */
interface Failure {
  readonly rank: number;
  readonly cause: unknown;
  readonly exitCode: number | undefined;
}

/**
 * Runs ranks as threads of this process, each on `module`, and resolves when all have ended without error.
 *
 * @internal
 * @throws InvalidArgumentError `ARGUMENT_RANGE`, `ARGUMENT_TYPE` before anything runs; after all threads have ended,
 *   RemoteError `RANK_DIED` with the first rank that threw or exited with a code other than 0, and its error as `cause`
 */
export async function spawnThreads(nRanks: number, module: string | URL, options: SpawnThreadsOptions = {}): Promise<void> {
  if (!Number.isInteger(nRanks) || nRanks < 1) {
    throw new InvalidArgumentError('ARGUMENT_RANGE', `spawnRanks takes a number of ranks from 1, not ${nRanks}`);
  }
  const { signal, graceMs = 1000, onMessage, onEnd } = options;
  signal?.throwIfAborted();
  const threads = await startThreads(nRanks, module, options);
  const terminateAll = () => {
    for (const thread of threads) void thread.terminate();
  };

  let first: Failure | undefined;
  let stopWaiting = (): void => undefined;
  const fail = (failure: Failure) => {
    if (first !== undefined) return;
    first = failure;
    stopWaiting = afterWatching(graceMs, terminateAll);
  };
  // An error of the caller's function ends all ranks, like the caller's signal; no rank failed.
  let thrown: { readonly error: unknown } | undefined;
  const tell = (message: unknown, rank: number) => {
    if (thrown !== undefined) return;
    try {
      onMessage?.(message, rank);
    } catch (error) {
      thrown = { error };
      terminateAll();
    }
  };
  signal?.addEventListener('abort', terminateAll, { once: true });
  await Promise.all(
    threads.map(
      (thread, rank) =>
        new Promise<void>((resolve) => {
          thread.on('message', (message) => tell(message, rank));
          thread.on('messageerror', (cause) => fail({ rank, cause, exitCode: undefined }));
          thread.on('error', (cause) => fail({ rank, cause, exitCode: undefined }));
          thread.on('exit', (exitCode) => {
            if (exitCode !== 0) fail({ rank, cause: undefined, exitCode });
            onEnd?.(rank);
            resolve();
          });
        }),
    ),
  );
  stopWaiting();
  signal?.removeEventListener('abort', terminateAll);
  signal?.throwIfAborted();
  if (thrown !== undefined) throw thrown.error;
  if (first !== undefined) throw errorOf(first, nRanks);
}

async function startThreads(
  nRanks: number,
  module: string | URL,
  { args, env, workerData, execArgv, memory }: SpawnThreadsOptions,
): Promise<Worker[]> {
  const { TCCL_COMM_ID, TCCL_COMM_SECRET } = await localMeetingPoint();
  const threads: Worker[] = [];
  try {
    for (let rank = 0; rank < nRanks; rank++) {
      const place = { launcher: 'threads', rank, nRanks, localRank: rank, nLocalRanks: nRanks, commId: TCCL_COMM_ID };
      threads.push(
        startThreadAt(memory === undefined ? place : { ...place, memory }, moduleAt(module), {
          name: `rank ${rank}`,
          argv: [...(args ?? [])],
          env: { ...process.env, ...env, TCCL_COMM_SECRET },
          workerData,
          execArgv: [...(execArgv ?? workerFlags())],
        }),
      );
    }
    return threads;
  } catch (error) {
    for (const thread of threads) void thread.terminate();
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      `spawnRanks cannot start rank ${threads.length}: ${(error as Error).message}`,
      { cause: error },
    );
  }
}

/**
 * Resolves a path relative to the working directory, which Worker accepts only with `./` before it, or the text of a URL from
 * `import.meta.resolve`.
 */
function moduleAt(module: string | URL): string | URL {
  if (typeof module !== 'string') return module;
  return module.startsWith('file:') ? new URL(module) : resolve(module);
}

function errorOf({ rank, cause, exitCode }: Failure, nRanks: number): RemoteError {
  const what =
    exitCode === undefined ? `failed: ${cause instanceof Error ? cause.message : String(cause)}` : `exited with code ${exitCode}`;
  return new RemoteError('RANK_DIED', `rank ${rank} of ${nRanks} ${what}`, { rank, cause });
}
