import { pathToFileURL } from '#platform/paths';
import { MessageChannel } from '#platform/threads';
import { describeValue } from '../../describe-value.js';
import { InvalidArgumentError } from '../../errors.js';
import { checkOptionNames } from '../../option-names.js';
import { withCallerFrames } from '../caller-stack.js';
import type { Communicator } from '../communicator/communicator.js';
import { markDead } from '../device/rank-lines.js';
import { threadMemory } from '../init/thread-memory.js';
import type { RankPort } from '../launch/rank-port.js';
import { checkModule, moduleAt, spawnThreads, type SpawnRanksOptions } from '../launch/spawn-threads.js';
import { ownModule } from '../../own-module.js';
import type { PlatformAsyncDisposable, PlatformURL } from '../platform/declarations.js';
import type { MapOptions, MapProgress } from './map-options.js';
import type { PoolRankData } from './pool-messages.js';
import type { RankOutcome } from './outcome.js';
import { ThreadPool } from './thread-pool.js';

export type { MapOptions, MapProgress, RankOutcome };

/** Options of openPool(). */
export interface PoolOptions extends Omit<SpawnRanksOptions, 'workerData'> {
  /** Number of ranks. */
  readonly ranks: number;
  /** The module whose exported functions the ranks run: a path, a `file:` URL, or its text. */
  readonly module: string | PlatformURL;
}

/** A function that a pool runs on every rank, with a communicator of all ranks, then the arguments of `run`. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- parameters are checked where a module's type is known
export type PoolFunction = (comm: Communicator, ...args: any[]) => unknown;

type NameIn<Module> = { [Name in keyof Module]: Module[Name] extends PoolFunction ? Name : never }[keyof Module] & string;
type ArgumentsOf<F> = F extends (comm: Communicator, ...args: infer Arguments) => unknown ? Arguments : never;
/** Names of functions that take an item. */
type TaskIn<Module> = { [Name in keyof Module]: Module[Name] extends (...args: never) => unknown ? Name : never }[keyof Module] &
  string;
type ItemOf<F> = PoolFunction extends F ? unknown : F extends (item: infer Item, ...args: never) => unknown ? Item : never;
type ResultOf<F> = F extends (...args: never) => infer Result ? Awaited<Result> : never;

/** Ranks that stay ready between jobs. */
export interface Pool<Module = Readonly<Record<string, PoolFunction>>> extends PlatformAsyncDisposable {
  /** Number of ranks. */
  readonly nRanks: number;
  /** A port to each rank, whose module reads it from `parentPort`. */
  readonly ranks: readonly RankPort[];
  /**
   * Runs the exported function `name` on all ranks, after the jobs before it, and resolves with the results in rank order.
   * Arguments are copied to every rank when the job begins.
   *
   * @throws InvalidArgumentError `UNKNOWN_NAME`, `ARGUMENT_TYPE` before anything runs; RemoteError `JOB_FAILED` when it threw:
   *   `rank` is the first that did, `cause` its error; the pool stays usable. RemoteError `RANK_DIED` when a rank ended, which
   *   ends the pool. InvalidUsageError `CLOSED` after close()
   */
  run<Name extends NameIn<Module>>(name: Name, ...args: ArgumentsOf<Module[Name]>): Promise<ResultOf<Module[Name]>[]>;
  /** As {@link run}, but resolves with each rank's result or error. */
  runSettled<Name extends NameIn<Module>>(
    name: Name,
    ...args: ArgumentsOf<Module[Name]>
  ): Promise<RankOutcome<ResultOf<Module[Name]>>[]>;
  /**
   * Calls the exported function `name` once for each item, on any rank, after the jobs before it, and resolves with the results
   * in the order of the items. Each rank gets further items when it has done its own; short ones go several at a time. The
   * function gets the item and its index, and no communicator: ranks are at different items. Items and results are copied.
   *
   * @throws InvalidArgumentError `UNKNOWN_NAME`, `ARGUMENT_TYPE`; RemoteError `JOB_FAILED` when it threw: `rank` is the rank,
   *   `cause` its error, of the first item that failed; further items are not begun, and the pool stays usable. RemoteError
   *   `RANK_DIED`, InvalidUsageError `CLOSED` as {@link run}; the signal's reason
   *
   * @example
   * const digests = await pool.map('digest', files);   // job.js: export function digest(file) { … }
   */
  map<Name extends TaskIn<Module>>(
    name: Name,
    items: Iterable<ItemOf<Module[Name]>>,
    options?: MapOptions,
  ): Promise<ResultOf<Module[Name]>[]>;
  /**
   * Waits for the jobs, then ends the ranks. A second call returns the same promise.
   *
   * @throws RemoteError `RANK_DIED` when a rank has died and no job has reported it
   */
  close(): Promise<void>;
}

const optionNames = Object.keys({
  ranks: true,
  module: true,
  args: true,
  env: true,
  execArgv: true,
  onMessage: true,
  graceMs: true,
  signal: true,
} satisfies Record<keyof PoolOptions, true>);

/**
 * Starts ranks as threads that load `module` once and then run its exported functions repeatedly. A job on ready ranks adds some
 * 0.05 ms to its own work; starting ranks takes a few 100 ms. A pool that runs no job does not keep the process alive.
 *
 * @throws InvalidArgumentError, InvalidUsageError, SystemError as spawnRanks(); RemoteError `RANK_DIED` when the module cannot
 *   be loaded
 *
 * @example
 * const pool = await openPool<typeof import('./job.js')>({ ranks: 4, module: new URL('./job.js', import.meta.url) });
 * const losses = await pool.run('train', { epochs: 3 });   // job.js: export async function train(comm, { epochs }) { … }
 * await pool.close();
 */
export function openPool<Module = Readonly<Record<string, PoolFunction>>>(options: PoolOptions): Promise<Pool<Module>> {
  return withCallerFrames(startPool(options) as Promise<unknown> as Promise<Pool<Module>>);
}

async function startPool(options: PoolOptions): Promise<ThreadPool> {
  checkOptionNames('openPool', options, optionNames, "{ ranks: 4, module: new URL('./job.js', import.meta.url) }");
  const { ranks, module, ...others } = options;
  if (!Number.isInteger(ranks) || ranks < 1) {
    throw new InvalidArgumentError('ARGUMENT_RANGE', `openPool takes a number of ranks from 1, not ${describeValue(ranks)}`);
  }
  checkModule('openPool', module, "openPool({ ranks: 4, module: new URL('./job.js', import.meta.url) })");
  const user = moduleAt(module);
  const href = typeof user === 'string' ? pathToFileURL(user).href : user.href;
  const { memory, end } = threadMemory(ranks);
  const channels = Array.from({ length: ranks }, () => new MessageChannel());
  const threads = spawnThreads(ranks, ownModule('runtime/pool/pool-rank.js'), {
    ...others,
    call: 'openPool',
    userModule: module,
    memory,
    dataOf: (rank) => {
      const { port2: port } = channels[rank] ?? new MessageChannel();
      const workerData: PoolRankData = { port, module: href, graceMs: others.graceMs ?? 1000 };
      return { workerData, transferList: [port] };
    },
    onEnd: (rank) => markDead(memory, rank),
    mayEnd: () => pool.isClosing,
  });
  void threads.then(end, end);
  const pool: ThreadPool = new ThreadPool(
    threads,
    channels.map(({ port1 }) => port1),
  );
  await pool.ready();
  return pool;
}
