import type { Wait } from '../schedule/schedule.js';

/** Waits of programs: a move may begin after a number of moves of other workers. */
export class Waits {
  /** Time of each move's end, by worker. */
  readonly #doneUs: (number[] | undefined)[] = [];
  /** Workers that wait for the next move of each worker. */
  readonly #waiting: (number[] | undefined)[] = [];
  readonly #wake: (worker: number) => void;

  constructor(wake: (worker: number) => void) {
    this.#wake = wake;
  }

  /** Time at which all of `waits` are over; undefined if one is not done yet, which wakes the worker then. */
  over(waits: readonly Wait[], worker: number): number | undefined {
    let overUs = 0;
    for (const wait of waits) {
      const doneUs = this.#doneUs[wait.worker]?.[wait.moves - 1];
      if (doneUs === undefined) {
        (this.#waiting[wait.worker] ??= []).push(worker);
        return undefined;
      }
      overUs = Math.max(overUs, doneUs);
    }
    return overUs;
  }

  /** Records the end of a worker's next move. */
  end(worker: number, endUs: number): void {
    (this.#doneUs[worker] ??= []).push(endUs);
    const waiting = this.#waiting[worker] ?? [];
    this.#waiting[worker] = undefined;
    for (const other of waiting) this.#wake(other);
  }
}
