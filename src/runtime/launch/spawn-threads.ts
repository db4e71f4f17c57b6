import type { Transferable, Worker, WorkerOptions } from '#platform/threads';
import { existsSync, statSync } from '#platform/files';
import { fileURLToPath, nodeModule, resolve } from '#platform/paths';
import { describeValue } from '../../describe-value.js';
import { InvalidArgumentError, RemoteError, SystemError } from '../../errors.js';
import type { PlatformAbortSignal } from '../platform/declarations.js';
import { afterWatching } from '../progress/watch-clock.js';
import { bundleAdvice } from './bundle-advice.js';
import { describeExit } from './exit-text.js';
import { localMeetingPoint } from './meeting-point.js';
import { ThreadPort, type RankPort } from './rank-port.js';
import { startThreadAt } from './thread-placement.js';
import { programThroughTsx, tsxFor, typeScriptAdvice } from './typescript-ranks.js';
import { startWithFlags, workerFlags } from './worker-flags.js';
import { onAbort } from '../abort-signals.js';

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

/** Ranks that run as threads: a promise that resolves when all have ended without error, and a port to each. */
export interface SpawnedRanks extends Promise<void> {
  /** A port for messages to and from each rank, by rank. */
  readonly ranks: readonly RankPort[];
}

/** @internal Options that the runtime adds. */
interface SpawnThreadsOptions extends SpawnRanksOptions {
  /** Public call that starts the ranks, for messages. */
  readonly call: string;
  /** Memory shared by the ranks, and their id. */
  readonly memory?: WebAssembly.Memory;
  /** Called once for each rank after its thread has ended. */
  readonly onEnd?: (rank: number) => void;
  /** False while a rank that exits with 0 has failed, too. */
  readonly mayEnd?: () => boolean;
  /** `workerData` of one rank with its transfer list, instead of `workerData`. */
  readonly dataOf?: (rank: number) => { readonly workerData: unknown; readonly transferList: Transferable[] };
  /** Module of the user, if `module` is one of ours that imports it. */
  readonly userModule?: string | URL;
}

/** A failed rank, with the error that it threw or its exit code. */
interface Failure {
  readonly rank: number;
  readonly cause: unknown;
  readonly exitCode: number | undefined;
}

/**
 * Runs ranks as threads of this process, each on `module`. The promise resolves when all have ended without error.
 *
 * @internal
 * @throws InvalidArgumentError `ARGUMENT_RANGE`, `ARGUMENT_TYPE` before anything runs; after all threads have ended,
 *   RemoteError `RANK_DIED` with the first rank that threw or exited with a code other than 0, and its error as `cause`
 */
export function spawnThreads(
  nRanks: number,
  module: string | URL,
  options: SpawnThreadsOptions,
): SpawnedRanks & { readonly ranks: readonly ThreadPort[] } {
  const ports = Number.isInteger(nRanks) && nRanks > 0 ? Array.from({ length: nRanks }, (_, rank) => new ThreadPort(rank)) : [];
  return Object.assign(runThreads(nRanks, module, options, ports), { ranks: ports });
}

async function runThreads(
  nRanks: number,
  module: string | URL,
  options: SpawnThreadsOptions,
  ports: readonly ThreadPort[],
): Promise<void> {
  if (ports.length === 0) {
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `${options.call} takes a number of ranks from 1, not ${describeValue(nRanks)}`,
    );
  }
  checkModule(options.call, options.userModule ?? module, `${options.call}(2, new URL('./rank.js', import.meta.url))`);
  checkSpawnOptions(options);
  const { signal, graceMs = 1000, onMessage, onEnd, mayEnd } = options;
  signal?.throwIfAborted();
  const threads = await startThreads(nRanks, module, options);
  const terminateAll = () => {
    for (const thread of threads) void thread.terminate();
  };
  for (const port of ports) {
    const thread = threads[port.rank];
    if (thread !== undefined) port.open(thread);
  }

  let first: Failure | undefined;
  let stopWaiting = (): void => undefined;
  const fail = (failure: Failure) => {
    if (first !== undefined) return;
    first = failure;
    stopWaiting = afterWatching(graceMs, terminateAll);
  };
  // An error of the caller's function ends all ranks, like the caller's signal; no rank failed.
  let thrown: { readonly error: unknown } | undefined;
  const deliver = (message: unknown, rank: number) => {
    if (thrown !== undefined) return;
    try {
      onMessage?.(message, rank);
    } catch (error) {
      thrown = { error };
      terminateAll();
    }
  };
  const stopListening = onAbort(signal, terminateAll);
  await Promise.all(
    threads.map(
      (thread, rank) =>
        new Promise<void>((resolve) => {
          thread.on('message', (message) => deliver(message, rank));
          thread.on('messageerror', (cause) => fail({ rank, cause, exitCode: undefined }));
          thread.on('error', (cause) => fail({ rank, cause, exitCode: undefined }));
          thread.on('exit', (exitCode) => {
            if (exitCode !== 0 || mayEnd?.() === false) fail({ rank, cause: undefined, exitCode });
            onEnd?.(rank);
            resolve();
          });
        }),
    ),
  );
  stopWaiting();
  stopListening();
  signal?.throwIfAborted();
  if (thrown !== undefined) throw thrown.error;
  if (first !== undefined) throw errorOf(first, nRanks, options);
}

async function startThreads(nRanks: number, module: string | URL, options: SpawnThreadsOptions): Promise<Worker[]> {
  const { call, args, env, workerData, execArgv, memory, dataOf, userModule = module } = options;
  const flags = execArgv ?? workerFlags();
  const tsx = tsxFor(moduleAt(userModule), flags, env, call);
  const program = tsx === undefined ? moduleAt(module) : programThroughTsx(tsx, moduleAt(module));
  const { TCCL_COMM_ID, TCCL_COMM_SECRET } = await localMeetingPoint();
  const threads: Worker[] = [];
  try {
    for (let rank = 0; rank < nRanks; rank++) {
      const place = { launcher: 'threads', rank, nRanks, localRank: rank, nLocalRanks: nRanks, commId: TCCL_COMM_ID };
      const threadOptions: WorkerOptions = {
        eval: tsx !== undefined,
        name: `rank ${rank}`,
        argv: [...(args ?? [])],
        env: { ...process.env, ...env, TCCL_COMM_SECRET },
        ...(dataOf?.(rank) ?? { workerData }),
      };
      const start = (own: string[]): Worker =>
        startThreadAt(memory === undefined ? place : { ...place, memory }, program, { ...threadOptions, execArgv: own });
      threads.push(execArgv === undefined ? startWithFlags(start) : start([...execArgv]));
    }
    return threads;
  } catch (error) {
    for (const thread of threads) void thread.terminate();
    throw new InvalidArgumentError('ARGUMENT_TYPE', `${call} cannot start rank ${threads.length}: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/** @internal Throws for what is no path or URL of a module; `example` is how to pass one. */
export function checkModule(call: string, module: unknown, example: string): void {
  if (module instanceof URL || (typeof module === 'string' && module !== '')) {
    checkFile(call, moduleAt(module));
    return;
  }
  throw new InvalidArgumentError(
    'ARGUMENT_TYPE',
    `${call}: module is a path or a file: URL, as in ${example}, not ${describeValue(module)}`,
  );
}

function checkFile(call: string, module: string | URL): void {
  if (typeof module !== 'string' && module.protocol !== 'file:') return;
  const path = typeof module === 'string' ? module : fileURLToPath(module);
  if (statSync(path, { throwIfNoEntry: false })?.isFile()) return;
  try {
    // Node also finds ./rank.js by ./rank, and the main file of a folder.
    nodeModule.createRequire(path).resolve(path);
    return;
  } catch (cause) {
    // tsx finds ./rank.ts by ./rank.js.
    const isThere = existsSync(path);
    if (!isThere && existsSync(path.replace(/js$/, 'ts'))) return;
    const what = isThere ? 'is a directory; name a file in it' : 'does not exist';
    throw new SystemError('FILE', `${call}: the module ${path} ${what}`, { cause });
  }
}

/** Options of the wrong type that Node would accept, or refuse without naming them. */
function checkSpawnOptions({ call, args, env, execArgv, onMessage, graceMs, signal }: SpawnThreadsOptions): void {
  const isList = (list: unknown): boolean => Array.isArray(list) && list.every((text) => typeof text === 'string');
  const wanted: [string, unknown, boolean, string][] = [
    ['args', args, isList(args), 'an array of strings'],
    ['execArgv', execArgv, isList(execArgv), 'an array of strings'],
    ['env', env, typeof env === 'object', 'an object of variables'],
    ['onMessage', onMessage, typeof onMessage === 'function', 'a function'],
    ['graceMs', graceMs, typeof graceMs === 'number' && graceMs >= 0, 'a number of milliseconds from 0'],
    ['signal', signal, signal instanceof AbortSignal, 'an AbortSignal'],
  ];
  for (const [name, value, fits, kind] of wanted) {
    if (value !== undefined && !fits)
      throw new InvalidArgumentError('ARGUMENT_TYPE', `${call}: ${name} is ${kind}, not ${describeValue(value)}`);
  }
}

/**
 * @internal Resolves a path relative to the working directory, which Worker accepts only with `./` before it, or the text of
 * a URL from `import.meta.resolve`.
 */
export function moduleAt(module: string | URL): string | URL {
  if (typeof module !== 'string') return module;
  return module.startsWith('file:') ? new URL(module) : resolve(module);
}

function errorOf({ rank, cause, exitCode }: Failure, nRanks: number, { call, userModule }: SpawnThreadsOptions): RemoteError {
  const what =
    exitCode === undefined ? `failed: ${cause instanceof Error ? cause.message : String(cause)}` : describeExit(exitCode);
  const advice = typeScriptAdvice(cause);
  const ofBundle = userModule === undefined ? '' : bundleAdvice(cause, 'pool-rank.js');
  return new RemoteError(
    'RANK_DIED',
    `rank ${rank} of ${nRanks} ${what}${advice === '' ? '' : `; ${call}: ${advice}`}${ofBundle}`,
    { rank, cause },
  );
}
