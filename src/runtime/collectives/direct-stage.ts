import type { Kernels } from '../device/kernels/kernels.js';
import type { Team } from '../device/team.js';

/**
 * Memory in the segment for what lies outside it: two halves that operations use in turn, and a third part that only the
 * operation under way uses. Taken from the heap when it is first needed.
 *
 * Every operation of the kernels waits for the posts of all ranks, so whoever is about to post operation s knows that
 * all have completed s - 2, and with it all reading of the half that s fills: nobody has to wait for readers.
 */
export class Stage {
  readonly #team: Team;
  readonly #kernels: Kernels;
  #address = -1;

  constructor(team: Team) {
    this.#team = team;
    this.#kernels = team.kernels;
  }

  /** The half of the operation that is posted next: Team.stageBytes. */
  next(): number {
    return this.#base() + ((this.#kernels.operationNumber() + 1) & 1) * this.#team.stageBytes;
  }

  /** The third part: Team.stageBytes. */
  scratch(): number {
    return this.#base() + 2 * this.#team.stageBytes;
  }

  #base(): number {
    if (this.#address < 0) this.#address = this.#team.allocateBytes(stageMemoryBytes(this.#team));
    return this.#address;
  }
}

/** What a stage takes of its rank's heap. */
export function stageMemoryBytes({ stageBytes }: Team): number {
  return 3 * stageBytes;
}
