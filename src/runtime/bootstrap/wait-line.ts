import type { Mesh } from './mesh.js';

/** A rank's last report of its wait, in words that only the users of the line interpret. */
export interface WaitAnswer {
  /** Incremented with each answer. */
  readonly count: number;
  readonly words: readonly number[];
  readonly atMs: number;
}

/**
 * Queries between ranks that wait in out-of-band calls on one network. Ranks that have opened a line there answer when their
 * event loop turns; a rank that is stopped, computes or does something else does not answer.
 */
export class WaitLine {
  readonly #mesh: Mesh;
  readonly #members: readonly number[];
  readonly #space: number;
  readonly #openedMs = performance.now();
  readonly #answers = new Map<number, WaitAnswer>();
  readonly #stop: () => void;
  /** What those that ask are told; and while nothing is said that holds. */
  #words: (() => readonly number[] | undefined) | undefined;
  #otherwise: () => readonly number[] | undefined = () => [];

  /**
   * @param members the mesh's rank of each rank of the network
   * @param space identifies the network in the mesh
   */
  constructor(mesh: Mesh, members: readonly number[], space: number) {
    this.#mesh = mesh;
    this.#members = members;
    this.#space = space;
    this.#stop = mesh.attend(space, {
      words: () => (this.#words ?? this.#otherwise)(),
      answered: (rank, words) =>
        this.#answers.set(rank, { count: (this.#answers.get(rank)?.count ?? 0) + 1, words, atMs: performance.now() }),
    });
  }

  /** The ranks that this one waits for, in everything that it has begun on the mesh since the line was opened. */
  awaited(): number[] {
    return this.#mesh
      .awaited(this.#openedMs)
      .map((rank) => this.#members.indexOf(rank))
      .filter((rank) => rank >= 0);
  }

  /** Sets the answer to queries, as long as `holds` returns true. */
  say(words: readonly number[], holds = (): boolean => true): void {
    this.#words = () => (holds() ? words : this.#otherwise());
  }

  /** Sets what those that ask are told while nothing is said that holds. */
  answerOtherwise(otherwise: () => readonly number[] | undefined): void {
    this.#otherwise = otherwise;
  }

  ask(ranks: readonly number[]): void {
    for (const rank of ranks) this.#mesh.askWaits(this.#members[rank] ?? -1, this.#space);
  }

  /** A rank's last answer. */
  answer(rank: number): WaitAnswer | undefined {
    return this.#answers.get(this.#members[rank] ?? -1);
  }

  close(): void {
    this.#stop();
  }
}
