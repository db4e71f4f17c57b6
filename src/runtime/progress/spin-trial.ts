/** Most consecutive waits that park immediately. */
const MOST_SKIPPED = 63;

/**
 * Decides whether to spin before parking; on a full machine, spinning only uses up this rank's time slice. After a wait that spun
 * in vain, the next waits park immediately: 1, then 3, 7 … while spinning keeps failing, and half as many after each success.
 */
export class SpinTrial {
  #penalty = 0;
  #toSkip = 0;
  #hasParked = false;

  /** True if the current wait should spin first. */
  get isDue(): boolean {
    return this.#toSkip === 0;
  }

  /** The current wait parks. */
  parked(): void {
    if (this.#hasParked) return;
    this.#hasParked = true;
    if (this.#toSkip === 0) {
      this.#penalty = Math.min(MOST_SKIPPED, 2 * this.#penalty + 1);
      this.#toSkip = this.#penalty + 1;
    }
  }

  /** The current wait has ended with progress. */
  ended(): void {
    if (this.#toSkip > 0) this.#toSkip--;
    else this.#penalty >>= 1;
    this.#hasParked = false;
  }
}
