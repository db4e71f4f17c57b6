import type { Mesh } from './mesh.js';
import { clockMs } from '../platform/platform.js';
import { defined } from '../../defined.js';

/** A rank's last report of its wait, in words that only its users interpret. */
interface WaitAnswer {
  /** Incremented with each answer. */
  readonly count: number;
  readonly words: readonly number[];
  readonly atMs: number;
}

/**
 * Queries between ranks that wait in out-of-band calls on one network. Ranks that have opened theirs there answer when
 * their event loop turns; a rank that is stopped or computes does not answer.
 */
export class WaitQueries {
  readonly #mesh: Mesh;
  readonly #members: readonly number[];
  readonly #space: number;
  readonly #openedMs = clockMs();
  readonly #answers = new Map<number, WaitAnswer>();
  readonly #stop: () => void;
  #answer: (() => readonly number[] | undefined) | undefined;
  #defaultAnswer: () => readonly number[] | undefined = () => [];

  /**
   * @param members the mesh's rank of each rank of the network
   * @param space identifies the network in the mesh
   */
  constructor(mesh: Mesh, members: readonly number[], space: number) {
    this.#mesh = mesh;
    this.#members = members;
    this.#space = space;
    this.#stop = mesh.answerQueries(space, {
      words: () => (this.#answer ?? this.#defaultAnswer)(),
      answered: (rank, words) =>
        this.#answers.set(rank, { count: (this.#answers.get(rank)?.count ?? 0) + 1, words, atMs: clockMs() }),
    });
  }

  /** The ranks that this one waits for, in all that it has begun on the mesh since the construction. */
  awaited(): number[] {
    return this.#mesh
      .awaited(this.#openedMs)
      .map((rank) => this.#members.indexOf(rank))
      .filter((rank) => rank >= 0);
  }

  /** Sets the answer to queries, as long as `holds` returns true. */
  setAnswer(words: readonly number[], holds = (): boolean => true): void {
    this.#answer = () => (holds() ? words : this.#defaultAnswer());
  }

  /** Sets the answer to queries while none of setAnswer() holds. */
  setDefaultAnswer(answer: () => readonly number[] | undefined): void {
    this.#defaultAnswer = answer;
  }

  ask(ranks: readonly number[]): void {
    for (const rank of ranks) this.#mesh.query(defined(this.#members[rank]), this.#space);
  }

  /** A rank's last answer. */
  answer(rank: number): WaitAnswer | undefined {
    return this.#answers.get(defined(this.#members[rank]));
  }

  close(): void {
    this.#stop();
  }
}
