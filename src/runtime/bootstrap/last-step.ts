import type { Mesh } from './mesh.js';

/** How far a rank is with the step, as it says when asked. */
const COMING = 0;
const REACHED = 1;
const DONE = 2;
const GIVEN_UP = 3;

/** What a rank that came through answers: all that is kept of the step. */
const finished = { words: () => [DONE], answered: () => undefined };

/** How often a rank that is still coming is asked. */
const ASK_EVERY_MS = 50;

/**
 * The last step of something that the ranks of a network make together: it counts if all came to it. Who comes through the step
 * (a barrier) knows that they did. Where a rank dies in it, others don't know, and ask: if any that lives gave up before, nobody
 * came through, and all give up; else all came to it.
 *
 *      rank 0            rank 1            rank 2
 *      reached ─────────► reached ───────► reached, dies
 *      done               "did you?"
 *         │◄───────────────── │
 *         │──── "done" ─────► done
 *
 * Only a rank that tells some of them that it gave up, and then dies, too, can leave them apart.
 */
export class LastStep {
  readonly #mesh: Mesh;
  readonly #others: readonly number[];
  readonly #space: number;
  readonly #answers = new Map<number, number>();
  #state = COMING;
  #hear = (): void => undefined;

  /**
   * @param members the mesh's rank of each rank of the network
   * @param space of the mesh, for this only; in it this rank answers as long as there is the mesh
   */
  constructor(mesh: Mesh, members: readonly number[], space: number) {
    this.#mesh = mesh;
    this.#others = members.filter((rank) => rank !== mesh.rank);
    this.#space = space;
    mesh.attend(space, {
      words: () => [this.#state],
      answered: (rank, [state = COMING]) => {
        this.#answers.set(rank, state);
        this.#hear();
      },
    });
  }

  /** This rank has come to the step. */
  reached(): void {
    this.#state = REACHED;
  }

  /** It came through, or knows that the step counts. */
  done(): void {
    this.#mesh.attend(this.#space, finished);
  }

  giveUp(): void {
    this.#state = GIVEN_UP;
  }

  /** Whether the step counts, as all that live find. This rank has reached it. Rejects with the reason of the signal. */
  async counts(signal: AbortSignal): Promise<boolean> {
    const ask = (): void => {
      for (const rank of this.#living()) this.#mesh.askWaits(rank, this.#space);
      this.#hear();
    };
    const asking = setInterval(ask, ASK_EVERY_MS);
    try {
      return await new Promise<boolean>((resolve, reject) => {
        this.#hear = () => {
          const outcome = this.#outcome();
          if (outcome !== undefined) resolve(outcome);
          else if (signal.aborted) reject(signal.reason as Error);
        };
        ask();
      });
    } finally {
      clearInterval(asking);
      this.#hear = () => undefined;
    }
  }

  /** What follows from the answers, if enough of them have come. */
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
