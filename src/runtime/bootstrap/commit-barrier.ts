import type { Mesh } from './mesh.js';
import { clearInterval, setInterval } from '../platform/platform.js';

/** A rank's state in the barrier, as it answers queries. */
const COMING = 0;
const REACHED = 1;
const DONE = 2;
const GIVEN_UP = 3;

/** Answers of a rank that completed the barrier: all that it keeps. */
const finished = { words: () => [DONE], answered: () => undefined };

/** Interval of queries to a rank that has not reached the barrier. */
const ASK_EVERY_MS = 50;

/**
 * The barrier that commits something that the ranks of a network make together, with the same outcome on all live ranks. If a
 * rank dies in it, the others ask each other: if a live rank gave up before, no rank completed the barrier, and all give up;
 * otherwise all reached it.
 *
 *      rank 0            rank 1            rank 2
 *      reached ─────────► reached ───────► reached, dies
 *      done               "did you?"
 *         │◄───────────────── │
 *         │──── "done" ─────► done
 *
 * Only a rank that informs some of them that it gave up, and then dies too, can make them decide differently.
 */
export class CommitBarrier {
  readonly #mesh: Mesh;
  readonly #others: readonly number[];
  readonly #space: number;
  readonly #answers = new Map<number, number>();
  #state = COMING;
  #wake = (): void => undefined;

  /**
   * @param members the mesh's rank of each rank of the network
   * @param space of the mesh, used only here; this rank answers in it as long as the mesh exists
   */
  constructor(mesh: Mesh, members: readonly number[], space: number) {
    this.#mesh = mesh;
    this.#others = members.filter((rank) => rank !== mesh.rank);
    this.#space = space;
    mesh.answerQueries(space, {
      words: () => [this.#state],
      answered: (rank, [state = COMING]) => {
        this.#answers.set(rank, state);
        this.#wake();
      },
    });
  }

  /** This rank has reached the barrier. */
  reached(): void {
    this.#state = REACHED;
  }

  /** This rank has completed the barrier, or knows that the ranks commit. */
  done(): void {
    this.#mesh.answerQueries(this.#space, finished);
  }

  giveUp(): void {
    this.#state = GIVEN_UP;
  }

  /**
   * Resolves to true if the ranks commit, the same on all live ranks. This rank has reached the barrier. Rejects with the
   * signal's reason.
   */
  async commits(signal: AbortSignal): Promise<boolean> {
    const ask = (): void => {
      for (const rank of this.#living()) this.#mesh.query(rank, this.#space);
      this.#wake();
    };
    const asking = setInterval(ask, ASK_EVERY_MS);
    try {
      return await new Promise<boolean>((resolve, reject) => {
        this.#wake = () => {
          const outcome = this.#outcome();
          if (outcome !== undefined) resolve(outcome);
          else if (signal.aborted) reject(signal.reason as Error);
        };
        ask();
      });
    } finally {
      clearInterval(asking);
      this.#wake = () => undefined;
    }
  }

  /** The result, if enough answers have arrived. */
  #outcome(): boolean | undefined {
    const states = [...this.#answers.values()];
    if (states.includes(DONE)) return true;
    if (states.includes(GIVEN_UP)) return false;
    return this.#living().every((rank) => this.#answers.get(rank) === REACHED) ? true : undefined;
  }

  #living(): number[] {
    return this.#others.filter((rank) => !this.#mesh.isGone(rank));
  }
}
