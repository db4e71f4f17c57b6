import type { Mesh } from './mesh.js';

/** What a rank said last of its waiting: words that mean something to those who opened the lines. */
export interface WaitAnswer {
  /** Grows with each answer. */
  readonly count: number;
  readonly words: readonly number[];
  readonly atMs: number;
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
  #words: () => readonly number[] | undefined;
  readonly #otherwise: () => readonly number[] | undefined;

  /**
   * @param members the mesh's rank of each rank of the network
   * @param space tells the network from others of the mesh
   * @param otherwise what those that ask are told while nothing is said that holds
   */
  constructor(mesh: Mesh, members: readonly number[], space: number, otherwise: () => readonly number[] | undefined = () => []) {
    this.#words = this.#otherwise = otherwise;
    this.#mesh = mesh;
    this.#members = members;
    this.#space = space;
    this.#stop = mesh.attend(space, {
      words: () => this.#words(),
      answered: (rank, words) =>
        this.#answers.set(rank, { count: (this.#answers.get(rank)?.count ?? 0) + 1, words, atMs: performance.now() }),
    });
  }

  /** The ranks that this one waits for, in whatever it has begun on the mesh since the line was opened. */
  awaited(): number[] {
    return this.#mesh
      .awaited(this.#openedMs)
      .map((rank) => this.#members.indexOf(rank))
      .filter((rank) => rank >= 0);
  }

  /** What those that ask are told from now on, as long as it holds. */
  say(words: readonly number[], holds = (): boolean => true): void {
    this.#words = () => (holds() ? words : this.#otherwise());
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
