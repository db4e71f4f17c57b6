/** Most waits in a row that sleep at once. */
const MOST_SKIPPED = 63;

/**
 * Whether it is worth to look again and again before a sleep. Where the other rank has no core because the machine is full,
 * it is not: who looks uses up the time that the kernel gives it, and gets its core later each time. So after a wait that looked
 * in vain the next ones sleep at once: 1, then 3, 7 … for as long as looking fails, half as many after each time that it does
 * not.
 */
export class SpinTrial {
  #penalty = 0;
  #toSkip = 0;
  #hasSlept = false;

  /** Whether the wait under way should look first. */
  get isDue(): boolean {
    return this.#toSkip === 0;
  }

  /** The wait under way sleeps. */
  slept(): void {
    if (this.#hasSlept) return;
    this.#hasSlept = true;
    if (this.#toSkip === 0) {
      this.#penalty = Math.min(MOST_SKIPPED, 2 * this.#penalty + 1);
      this.#toSkip = this.#penalty + 1;
    }
  }

  /** The wait has ended: something got further. */
  ended(): void {
    if (this.#toSkip > 0) this.#toSkip--;
    else this.#penalty >>= 1;
    this.#hasSlept = false;
  }
}
