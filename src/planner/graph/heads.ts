import type { Candidate } from './candidate.js';
import { Pattern } from './graph.js';
import type { SearchHost } from './host.js';
import type { Reservations } from './reservations.js';

/**
 * Paths of one head: one to every GPU and one back from each, its *legs*. It reserves all or none.
 *
 *     NVLS              NVSwitch ─► GPU 0 … GPU n-1     GPU 0 … GPU n-1 ─► NVSwitch     all of a channel, twice at the head
 *     CollNet direct    head ─► GPU 0 … GPU n-1         GPU 0 … GPU n-1 ─► head         a (n-1)th of a channel
 */
export class Heads {
  readonly #host: SearchHost;
  readonly #attempt: Candidate;
  readonly #reserve: Reservations;
  readonly #gpuCount: number;

  constructor(host: SearchHost, attempt: Candidate, reserve: Reservations) {
    this.#host = host;
    this.#attempt = attempt;
    this.#reserve = reserve;
    this.#gpuCount = attempt.gpuCount;
  }

  /** Reserves all legs of a head for the current channel; false if one of them has too little bandwidth. */
  take(head: number): boolean {
    const legs = 2 * this.#gpuCount;
    for (let leg = 0; leg < legs; leg++) {
      if (this.#reserve.inside(this.#from(head, leg), this.#to(head, leg), this.#share(head, leg))) continue;
      this.#releaseLegs(head, leg);
      return false;
    }
    if (this.#attempt.pattern === Pattern.COLLNET_DIRECT) this.#listOthers(head);
    return true;
  }

  release(head: number): void {
    this.#releaseLegs(head, 2 * this.#gpuCount);
  }

  #releaseLegs(head: number, taken: number): void {
    for (let leg = taken - 1; leg >= 0; leg--) {
      const share = this.#share(head, leg);
      this.#reserve.release(this.#from(head, leg), this.#to(head, leg), Math.fround(this.#attempt.bwIntra * share), share);
    }
  }

  #from(head: number, leg: number): number {
    return leg < this.#gpuCount ? this.#centre(head) : leg - this.#gpuCount;
  }

  #to(head: number, leg: number): number {
    return leg < this.#gpuCount ? leg : this.#centre(head);
  }

  /** Node where all legs meet. */
  #centre(head: number): number {
    return this.#attempt.pattern === Pattern.NVLS ? this.#host.routes.nvSwitch : head;
  }

  /** The head of NVLS carries its own share twice: as one of all, and as the one that reduces. */
  #share(head: number, leg: number): number {
    if (this.#attempt.pattern === Pattern.NVLS) return leg % this.#gpuCount === head ? 2 : 1;
    return Math.fround(1 / (this.#gpuCount - 1));
  }

  /** A channel of CollNet direct names the other GPUs after its head. */
  #listOthers(head: number): void {
    let place = this.#attempt.nChannels * this.#gpuCount + 1;
    for (let gpu = 0; gpu < this.#gpuCount; gpu++) {
      if (gpu !== head) this.#attempt.gpus[place++] = gpu;
    }
  }
}
