import type { RasCommunicator } from '../../readers/ras.js';
import type { TimedCall } from '../../readers/timeline.js';

/** The last operation of a kind that a rank has finished, as NCCL Inspector records it. */
interface LastCall {
  /** From 0: RAS has counted one more when it was launched. */
  readonly sequence: number;
  readonly bytes: number | undefined;
  readonly durationUs: number;
}

/** An operation that all ranks have launched and that some have not finished. */
export interface Unfinished {
  readonly communicator: RasCommunicator;
  readonly operation: string;
  /** Its number, from 1. */
  readonly number: number;
  /** Ranks with records that have finished it, and that have not. */
  readonly done: readonly number[];
  readonly waiting: readonly number[];
  /** The last one of the kind that was finished. */
  readonly last: LastCall;
}

/** Operations that ranks have finished, by NCCL Inspector, which also says what RAS cannot: whether the last launch completes. */
export class FinishedCalls {
  /** By hash of the communicator and operation: the last call of each rank. */
  readonly #last = new Map<string, Map<number, LastCall>>();

  add(calls: readonly TimedCall[]): void {
    for (const { group, operation, rank, sequence, bytes, durationUs } of calls) {
      const key = `${hashOf(group)} ${operation}`;
      const ranks = this.#last.get(key) ?? new Map<number, LastCall>();
      this.#last.set(key, ranks);
      if ((ranks.get(rank)?.sequence ?? -1) < sequence) ranks.set(rank, { sequence, bytes, durationUs });
    }
  }

  /** The last operation of a kind that a rank of a communicator has finished. */
  lastOf(name: string, operation: string): LastCall | undefined {
    return [...this.#of(name, operation).values()].sort((a, b) => b.sequence - a.sequence)[0];
  }

  /** Text of the numbers of a communicator, which changes where a rank finishes something. */
  numbersOf({ name, counts }: RasCommunicator): string {
    return [...counts.keys()]
      .map((operation) => [...this.#of(name, operation)].map(([rank, { sequence }]) => `${rank}:${sequence}`).join())
      .join(' ');
  }

  /**
   * Of operations that all ranks have launched equally: the first that some have not finished; `all` where every rank with a
   * record has finished all; undefined where there are no records of the last ones.
   */
  unfinished(communicators: readonly RasCommunicator[]): Unfinished | 'all' | undefined {
    let isKnown = false;
    for (const communicator of communicators)
      for (const [operation, groups] of communicator.counts) {
        const [launched] = groups;
        const ranks = this.#of(communicator.name, operation);
        if (groups.length !== 1 || launched === undefined || launched.value === 0 || ranks.size === 0) continue;
        const done = [...ranks].filter(([, { sequence }]) => sequence + 1 >= launched.value).map(([rank]) => rank);
        const waiting = [...ranks.keys()].filter((rank) => !done.includes(rank));
        const last = this.lastOf(communicator.name, operation);
        if (waiting.length > 0 && last !== undefined)
          return { communicator, operation, number: launched.value, done, waiting: waiting.sort((a, b) => a - b), last };
        isKnown = true;
      }
    return isKnown ? 'all' : undefined;
  }

  #of(name: string, operation: string): ReadonlyMap<number, LastCall> {
    return this.#last.get(`${hashOf(name)} ${operation}`) ?? none;
  }
}

const none: ReadonlyMap<number, LastCall> = new Map();

/** RAS' JSON and Inspector write `0x1f`, RAS' text `000000000000001f`. */
function hashOf(text: string): string {
  return text.replace(/^0x/, '').replace(/^0+(?=.)/, '');
}
