import type { Mesh } from './mesh.js';

/** What a rank said last of its waiting: words that mean something to those who opened the lines. */
export interface WaitAnswer {
  /** Grows with each answer. */
  readonly count: number;
  readonly words: readonly number[];
}

/**
 * By this, ranks that wait in calls out of band on one network ask each other whether they do. An answer comes from those
 * that have opened a line there, when their event loop turns; who is stopped, computes or does something else gives none.
 */
export class WaitLine {
  readonly #mesh: Mesh;
  readonly #members: readonly number[];
  readonly #space: number;
  readonly #openedMs = performance.now();
  readonly #answers = new Map<number, WaitAnswer>();
  readonly #stop: () => void;
  #words: readonly number[] = [];

  /**
   * @param members the mesh's rank of each rank of the network
   * @param space tells the network from others of the mesh
   */
  constructor(mesh: Mesh, members: readonly number[], space: number) {
    this.#mesh = mesh;
    this.#members = members;
    this.#space = space;
    this.#stop = mesh.attend(space, {
      words: () => this.#words,
      answered: (rank, words) => this.#answers.set(rank, { count: (this.#answers.get(rank)?.count ?? 0) + 1, words }),
    });
  }

  /** The ranks that this one waits for, in whatever it has begun on the mesh since the line was opened. */
  awaited(): number[] {
    return this.#mesh.awaited(this.#openedMs).map((rank) => this.#members.indexOf(rank)).filter((rank) => rank >= 0);
  }

  /** What those that ask are told from now on. */
  say(words: readonly number[]): void {
    this.#words = words;
  }

  ask(ranks: readonly number[]): void {
    for (const rank of ranks) this.#mesh.askWaits(this.#members[rank] ?? -1, this.#space);
  }

  /** What a rank answered last. */
  answer(rank: number): WaitAnswer | undefined {
    return this.#answers.get(this.#members[rank] ?? -1);
  }

  close(): void {
    this.#stop();
  }
}
