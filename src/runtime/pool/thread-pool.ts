import { describeValue } from '../../describe-value.js';
import { InvalidArgumentError, InvalidUsageError, RemoteError } from '../../errors.js';
import { didYouMean } from '../../suggest.js';
import { withCallerFrames } from '../caller-stack.js';
import type { RankPort } from '../launch/rank-port.js';
import { closeAtEndOfBlock } from '../platform/declarations.js';
import { setImmediate } from '../platform/platform.js';
import type { RankOutcome } from './outcome.js';
import { checkedItems, checkedMapOptions, type MapOptions } from './map-options.js';
import { packThrown, unpackThrown, type FromPoolRank, type ToPoolRank } from './pool-messages.js';
import { TaskMap } from './task-map.js';
import { onAbort, unlessAborted } from '../abort-signals.js';

/** Ranks of a pool. The promise resolves when all have ended. */
interface PoolThreads extends Promise<void> {
  readonly ranks: readonly (RankPort & { keepAlive(does: boolean): void })[];
}

/** A port to the jobs of one rank. */
export interface PoolPort {
  on(event: 'message', listener: (message: FromPoolRank) => void): unknown;
  on(event: 'messageerror', listener: (error: Error) => void): unknown;
  postMessage(message: ToPoolRank): void;
  close(): void;
  ref(): void;
  unref(): void;
}

/** An answer of each rank, by rank, and the order in which they came. */
interface Collected {
  readonly answers: readonly FromPoolRank[];
  readonly order: readonly number[];
}

/** The job that runs, as the pool's ports see it. */
interface Running {
  readonly receive: (rank: number, message: FromPoolRank) => void;
  readonly reject: (error: unknown) => void;
}

/** A pool as the program sees it: jobs one after the other, each answered once by every rank. */
export class ThreadPool {
  readonly nRanks: number;
  readonly ranks: PoolThreads['ranks'];
  readonly #threads: Promise<void>;
  readonly #ports: readonly PoolPort[];
  /** The job that runs. One at a time, so that an open pool does not collect promises. */
  #running: Running | undefined;
  /** The error that ended the pool. */
  #failure: { readonly error: unknown; isTold: boolean } | undefined;
  #names: readonly string[] = [];
  /** Settles with the last requested job. */
  #last: Promise<unknown> = Promise.resolve();
  /** Number of jobs so far. */
  #jobs = 0;
  #afterFailure = false;
  #closing: Promise<void> | undefined;

  constructor(threads: PoolThreads, ports: readonly PoolPort[]) {
    this.nRanks = ports.length;
    this.ranks = threads.ranks;
    this.#threads = threads;
    this.#ports = ports;
    ports.forEach((port, rank) => {
      port.on('message', (message: FromPoolRank) => this.#running?.receive(rank, message));
      port.on('messageerror', (error) =>
        this.#running?.receive(rank, { kind: 'failed', error: packThrown(error), isConsequence: false }),
      );
    });
    threads.catch((error: unknown) => {
      this.#failure = { error, isTold: this.#running !== undefined };
      this.#running?.reject(error);
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

  async map(name: string, items: Iterable<unknown>, options?: MapOptions): Promise<unknown[]> {
    return withCallerFrames(this.#map(name, items, options ?? {}));
  }

  async #map(name: string, items: Iterable<unknown>, options: MapOptions): Promise<unknown[]> {
    this.#check('map', name);
    const list = checkedItems(items);
    const { signal, onProgress } = checkedMapOptions(options);
    signal?.throwIfAborted();
    let stop = (): void => undefined;
    const ended = this.#last.then(() => {
      // The signal can have been aborted while other jobs ran.
      if (signal?.aborted === true) return [];
      return this.#run<unknown[]>((resolve, reject) => {
        const map = new TaskMap({
          name,
          items: list,
          nRanks: this.nRanks,
          post: (rank, message) => this.#ports[rank]?.postMessage(message),
          onProgress,
          end() {
            try {
              resolve(map.finish());
            } catch (error) {
              reject(error);
            }
          },
        });
        stop = () => map.stop();
        return {
          receive: (rank, message) => map.receive(rank, message),
          begin: () => map.begin(),
          reject: (error) => reject(map.ended(error)),
        };
      });
    });
    this.#last = ended.catch(() => undefined);
    if (signal === undefined) return ended;
    return unlessAborted(ended, signal).finally(onAbort(signal, () => stop()));
  }

  /** Runs a job when those before it have ended. */
  async #inTurn<Result>(name: string, args: readonly unknown[], finish: (collected: Collected) => Result): Promise<Result> {
    this.#check('run', name);
    const collected = this.#last.then(() => this.#collect(() => this.#begin(name, args)));
    this.#last = collected.catch(() => undefined);
    return finish(await collected);
  }

  /** Sends a request that every rank answers once, and waits for the answers. */
  #collect(begin: () => void): Promise<Collected> {
    return this.#run((resolve, reject) => {
      const answers = Array.from<FromPoolRank | undefined>({ length: this.nRanks });
      const order: number[] = [];
      const receive = (rank: number, message: FromPoolRank): void => {
        answers[rank] = message;
        if (order.push(rank) < this.nRanks) return;
        const all = answers.filter((answer) => answer !== undefined);
        this.#afterFailure = all.some((answer) => answer.kind === 'failed' || (answer.kind === 'done' && answer.isOver));
        // Messages that ranks sent to `onMessage` before their answers come by another port: within two turns of the event loop.
        setImmediate(() => setImmediate(() => resolve({ answers: all, order })));
      };
      return { receive, begin, reject };
    });
  }

  /** Lets the ranks work, and waits. */
  async #run<Result>(
    job: (resolve: (result: Result) => void, reject: (error: unknown) => void) => Running & { readonly begin: () => void },
  ): Promise<Result> {
    if (this.#failure !== undefined) {
      this.#failure.isTold = true;
      throw this.#failure.error;
    }
    this.#keepAlive(true);
    try {
      return await new Promise<Result>((resolve, reject) => {
        const running = job(resolve, reject);
        this.#running = running;
        running.begin();
      });
    } finally {
      this.#running = undefined;
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

  #check(call: 'run' | 'map', name: string): void {
    if (this.#closing !== undefined)
      throw new InvalidUsageError('CLOSED', `${call}: the pool was closed before ${describeValue(name)} was run`);
    if (this.#names.includes(name)) return;
    const there = this.#names.length === 0 ? 'it exports none' : `there are ${this.#names.join(', ')}`;
    throw typeof name === 'string'
      ? new InvalidArgumentError(
          'UNKNOWN_NAME',
          `${call}: the module exports no function ${JSON.stringify(name)}${didYouMean(name, this.#names)}; ${there}`,
        )
      : new InvalidArgumentError(
          'ARGUMENT_TYPE',
          `${call} takes the name of a function that the module exports, not ${describeValue(name)}: functions do not go between threads`,
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
