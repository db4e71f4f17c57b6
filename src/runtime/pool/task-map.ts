import { InvalidArgumentError, RemoteError } from '../../errors.js';
import type { MapProgress } from './map-options.js';
import { canBeSent, unpackThrown, type FromPoolRank, type TaskResults, type Tasks, type ToPoolRank } from './pool-messages.js';
import { defined } from '../../defined.js';

/** Processor time that a batch of tasks should take, milliseconds: sending one costs some 0.02 ms. */
const BATCH_MS = 1;
/**
 * Batches of a rank whose batches are short, so that it need not wait for the next. One whose batches take longer has one, so
 * that at the end no rank has two while another has none.
 */
const IN_FLIGHT = 2;
const LONG_MS = 2;
/** A batch has at most this many times the tasks of the one before: the first shows how long a task takes. */
const MOST_GROWTH = 4;

interface TaskMapInput {
  readonly name: string;
  readonly items: readonly unknown[];
  readonly nRanks: number;
  readonly post: (rank: number, message: ToPoolRank) => void;
  readonly onProgress: ((progress: MapProgress) => void) | undefined;
  /** Called when no rank works on it any more. */
  readonly end: () => void;
}

/** Gives the items of a list to ranks in batches, the next to the rank that ends one. Results are in the order of the items. */
export class TaskMap {
  readonly #input: TaskMapInput;
  readonly #results: unknown[];
  /** Shared with the ranks: a word that is 1 when they shall begin no further task, and the item that each is at, or -1. */
  readonly #words: Int32Array;
  /** Tasks of the next batch of each rank. */
  readonly #sizes: number[];
  /** Batches that each rank has and shall have. */
  readonly #has: number[];
  readonly #shallHave: number[];
  #next = 0;
  #done = 0;
  /** The first item, by its place, that failed, or what another part of the program threw. */
  #failed: { readonly item: number; readonly error: unknown } | undefined;

  constructor(input: TaskMapInput) {
    this.#input = input;
    this.#words = new Int32Array(new SharedArrayBuffer(4 + 4 * input.nRanks)).fill(-1, 1);
    this.#results = Array.from({ length: input.items.length });
    this.#sizes = Array.from({ length: input.nRanks }, () => 1);
    this.#has = this.#sizes.map(() => 0);
    this.#shallHave = this.#sizes.map(() => 1);
  }

  begin(): void {
    for (let rank = 0; rank < this.#input.nRanks; rank++) this.#give(rank);
    if (this.#isOver()) this.#input.end();
  }

  /** Ranks end the task that they are at, and begin no further one. */
  stop(): void {
    Atomics.store(this.#words, 0, 1);
    this.#next = this.#input.items.length;
  }

  receive(rank: number, message: FromPoolRank): void {
    this.#has[rank] = defined(this.#has[rank]) - 1;
    if (message.kind === 'results') this.#take(rank, message);
    else if (message.kind === 'failed') this.#fail({ item: -1, error: unpackThrown(message.error) });
    while (defined(this.#has[rank]) < defined(this.#shallHave[rank]) && this.#next < this.#input.items.length) this.#give(rank);
    if (this.#isOver()) this.#input.end();
  }

  #isOver(): boolean {
    return this.#next === this.#input.items.length && this.#has.every((batches) => batches === 0);
  }

  /** The results by item. Throws the error of the first item that failed. */
  finish(): unknown[] {
    if (this.#failed !== undefined) throw this.#failed.error;
    return this.#results;
  }

  /** The error of a map during which a rank ended: it names the item that the rank was at. */
  ended(error: unknown): unknown {
    if (!(error instanceof RemoteError) || error.rank === undefined) return error;
    const item = Atomics.load(this.#words, 1 + error.rank);
    if (item < 0) return error;
    const text = `map: ${error.message}, in ${this.#input.name} of item ${item}`;
    return new RemoteError(error.code, text, { rank: error.rank, cause: error.cause });
  }

  #take(rank: number, { first, values, failed, wantsCommunicator, ms }: TaskResults): void {
    for (const [i, value] of values.entries()) this.#results[first + i] = value;
    this.#done += values.length;
    const fitting = Math.floor((BATCH_MS / Math.max(ms, 1e-3)) * values.length);
    this.#shallHave[rank] = ms < LONG_MS ? IN_FLIGHT : 1;
    this.#sizes[rank] = Math.max(1, Math.min(fitting, (this.#sizes[rank] ?? 1) * MOST_GROWTH));
    if (failed !== undefined) {
      const item = first + values.length;
      const cause = unpackThrown(failed);
      const what = cause instanceof Error ? cause.message : String(cause);
      const { name } = this.#input;
      const advice = wantsCommunicator
        ? `; map calls ${name}(item, index), without a communicator, and run ${name}(comm, …)`
        : '';
      const text = `map: rank ${rank} failed in ${name} of item ${item}: ${what}${advice}`;
      this.#fail({ item, error: new RemoteError('JOB_FAILED', text, { rank, cause }) });
    }
    if (values.length > 0 && this.#failed === undefined) this.#tellProgress();
  }

  #tellProgress(): void {
    try {
      this.#input.onProgress?.({ done: this.#done, total: this.#input.items.length });
    } catch (error) {
      this.#fail({ item: -1, error });
    }
  }

  #fail(failed: { readonly item: number; readonly error: unknown }): void {
    if (this.#failed === undefined || failed.item < this.#failed.item) this.#failed = failed;
    this.stop();
  }

  #give(rank: number): void {
    const { items, nRanks, name, post } = this.#input;
    const left = items.length - this.#next;
    if (left === 0) return;
    // At the end batches become smaller, so that all ranks end at about the same time.
    const size = Math.min(this.#sizes[rank] ?? 1, Math.ceil(left / (IN_FLIGHT * nRanks)));
    const first = this.#next;
    const stop = this.#words.subarray(0, 1);
    const at = this.#words.subarray(1 + rank, 2 + rank);
    const tasks: Tasks = { kind: 'tasks', name, first, items: items.slice(first, first + size), stop, at };
    try {
      post(rank, tasks);
    } catch (cause) {
      this.#fail({ item: first, error: cannotBeSent(name, tasks, cause as Error) });
      return;
    }
    this.#next += size;
    this.#has[rank] = defined(this.#has[rank]) + 1;
  }
}

function cannotBeSent(name: string, { first, items }: Tasks, cause: Error): InvalidArgumentError {
  const item = first + items.findIndex((each) => !canBeSent(each));
  return new InvalidArgumentError('ARGUMENT_TYPE', `map: item ${item} of ${name} cannot be copied to a rank: ${cause.message}`, {
    cause,
  });
}
