import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { pathToFileURL } from 'node:url';
import { describeValue } from '../../describe-value.js';
import { InvalidArgumentError, InvalidUsageError, RemoteError } from '../../errors.js';
import { checkOptionNames } from '../../option-names.js';
import { didYouMean } from '../../suggest.js';
import { withCallerFrames } from '../caller-stack.js';
import type { Communicator } from '../communicator/communicator.js';
import { markDead } from '../device/rank-lines.js';
import { threadMemory } from '../communicator/thread-memory.js';
import type { RankPort, ThreadPort } from '../launch/rank-port.js';
import { checkModule, moduleAt, spawnThreads, type SpawnRanksOptions } from '../launch/spawn-threads.js';
import { ownModule } from '../../own-module.js';
import { closeAtEndOfBlock, type PlatformAsyncDisposable, type PlatformURL } from '../platform/declarations.js';
import { packThrown, unpackThrown, type FromPoolRank, type PoolRankData, type ToPoolRank } from './pool-messages.js';
import { setImmediate } from '../platform/platform.js';

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
type ResultOf<F> = F extends (...args: never) => infer Result ? Awaited<Result> : never;

/** One rank's part of a job, as Promise.allSettled() gives it. */
export type RankOutcome<Result> =
  { readonly status: 'fulfilled'; readonly value: Result } | { readonly status: 'rejected'; readonly reason: unknown };

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

/** An answer of each rank, by rank, and the order in which they came. */
interface Collected {
  readonly answers: readonly FromPoolRank[];
  readonly order: readonly number[];
}

interface Collection {
  readonly answers: (FromPoolRank | undefined)[];
  readonly order: number[];
  readonly resolve: (collected: Collected) => void;
  readonly reject: (error: unknown) => void;
}

class ThreadPool {
  readonly nRanks: number;
  readonly ranks: readonly ThreadPort[];
  readonly #threads: Promise<void>;
  readonly #ports: readonly MessagePort[];
  /** Answers of the job that runs. One at a time, so that an open pool does not collect promises. */
  #collection: Collection | undefined;
  /** The error that ended the pool. */
  #failure: { readonly error: unknown; isTold: boolean } | undefined;
  #names: readonly string[] = [];
  /** Settles with the last requested job. */
  #last: Promise<unknown> = Promise.resolve();
  /** Number of jobs so far. */
  #jobs = 0;
  #afterFailure = false;
  #closing: Promise<void> | undefined;

  constructor(threads: ReturnType<typeof spawnThreads>, ports: readonly MessagePort[]) {
    this.nRanks = ports.length;
    this.ranks = threads.ranks;
    this.#threads = threads;
    this.#ports = ports;
    ports.forEach((port, rank) => {
      port.on('message', (message: FromPoolRank) => this.#hear(rank, message));
      port.on('messageerror', (error) => this.#hear(rank, { kind: 'failed', error: packThrown(error), isConsequence: false }));
    });
    threads.catch((error: unknown) => {
      this.#failure = { error, isTold: this.#collection !== undefined };
      this.#collection?.reject(error);
      for (const port of ports) port.close();
    });
  }

  get isClosing(): boolean {
    return this.#closing !== undefined;
  }

  /** Resolves when all ranks have loaded their module and joined. */
  async ready(): Promise<void> {
    const { answers } = await this.#collect(() => undefined);
    const [first] = answers;
    this.#names = first?.kind === 'ready' ? first.names : [];
  }

  async run(name: string, ...args: readonly unknown[]): Promise<unknown[]> {
    return withCallerFrames(this.#inTurn(name, args, (collected) => resultsOf(name, collected)));
  }

  async runSettled(name: string, ...args: readonly unknown[]): Promise<RankOutcome<unknown>[]> {
    return withCallerFrames(this.#inTurn(name, args, ({ answers }) => answers.map(outcomeOf)));
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#last;
    this.#keepAlive(true);
    if (this.#failure === undefined) for (const port of this.#ports) port.postMessage({ kind: 'close' } satisfies ToPoolRank);
    try {
      await this.#threads;
    } catch (error) {
      if (this.#failure?.isTold !== true) throw error;
    }
  }

  /** Runs a job when those before it have ended. */
  async #inTurn<Result>(name: string, args: readonly unknown[], finish: (collected: Collected) => Result): Promise<Result> {
    this.#check(name);
    const collected = this.#last.then(() => this.#collect(() => this.#begin(name, args)));
    this.#last = collected.catch(() => undefined);
    return finish(await collected);
  }

  /** Sends a request that every rank answers once, and waits for the answers. */
  async #collect(begin: () => void): Promise<Collected> {
    if (this.#failure !== undefined) {
      this.#failure.isTold = true;
      throw this.#failure.error;
    }
    this.#keepAlive(true);
    begin();
    try {
      return await new Promise<Collected>((resolve, reject) => {
        this.#collection = { answers: Array.from({ length: this.nRanks }), order: [], resolve, reject };
      });
    } finally {
      this.#collection = undefined;
      this.#keepAlive(false);
    }
  }

  /** An idle pool does not keep the process alive. */
  #keepAlive(does: boolean): void {
    for (const rank of this.ranks) rank.keepAlive(does);
    for (const port of this.#ports) {
      if (does) port.ref();
      else port.unref();
    }
  }

  #hear(rank: number, message: FromPoolRank): void {
    const collection = this.#collection;
    if (collection === undefined) return;
    collection.answers[rank] = message;
    if (collection.order.push(rank) < this.nRanks) return;
    const answers = collection.answers.filter((answer) => answer !== undefined);
    this.#afterFailure = answers.some((answer) => answer.kind === 'failed' || (answer.kind === 'done' && answer.isOver));
    // Messages that ranks sent to `onMessage` before their answers come by another port: within two turns of the event loop.
    setImmediate(() => setImmediate(() => collection.resolve({ answers, order: collection.order })));
  }

  #begin(name: string, args: readonly unknown[]): void {
    const message: ToPoolRank = { kind: 'run', number: ++this.#jobs, name, args, afterFailure: this.#afterFailure };
    try {
      for (const port of this.#ports) port.postMessage(message);
    } catch (cause) {
      const what = (cause as Error).message;
      throw new InvalidArgumentError('ARGUMENT_TYPE', `run: the arguments of ${name} cannot be copied to the ranks: ${what}`, {
        cause,
      });
    }
  }

  #check(name: string): void {
    if (this.#closing !== undefined)
      throw new InvalidUsageError('CLOSED', `run: the pool was closed before ${describeValue(name)} was run`);
    if (this.#names.includes(name)) return;
    const there = this.#names.length === 0 ? 'it exports none' : `there are ${this.#names.join(', ')}`;
    throw typeof name === 'string'
      ? new InvalidArgumentError(
          'UNKNOWN_NAME',
          `run: the module exports no function ${JSON.stringify(name)}${didYouMean(name, this.#names)}; ${there}`,
        )
      : new InvalidArgumentError(
          'ARGUMENT_TYPE',
          `run takes the name of a function that the module exports, not ${describeValue(name)}: functions do not go between threads`,
        );
  }
}

closeAtEndOfBlock(ThreadPool.prototype);

function outcomeOf(answer: FromPoolRank): RankOutcome<unknown> {
  if (answer.kind === 'failed') return { status: 'rejected', reason: unpackThrown(answer.error) };
  return { status: 'fulfilled', value: answer.kind === 'done' ? answer.value : undefined };
}

/** The results by rank. Throws the error of the first rank that failed by itself. */
function resultsOf(name: string, { answers, order }: Collected): unknown[] {
  const failed = order.filter((rank) => answers[rank]?.kind === 'failed');
  const isCause = (rank: number): boolean => {
    const answer = answers[rank];
    return answer?.kind === 'failed' && !answer.isConsequence;
  };
  const rank = failed.find(isCause) ?? failed[0];
  const answer = rank === undefined ? undefined : answers[rank];
  if (answer?.kind !== 'failed') return answers.map((each) => (each.kind === 'done' ? each.value : undefined));
  const cause = unpackThrown(answer.error);
  const what = cause instanceof Error ? cause.message : String(cause);
  throw new RemoteError('JOB_FAILED', `run: rank ${String(rank)} of ${answers.length} failed in ${name}: ${what}`, {
    ...(rank !== undefined && { rank }),
    cause,
  });
}
