import type { Deed } from './deed.js';
import { HoldUps, type Awaited } from './hold-ups.js';
import type { Team } from '../device/team.js';

/** Finds the members of a team that hold up a rank in shared memory; see HoldUps. */
export class TeamHoldUps {
  readonly #holdUps: HoldUps;
  readonly #members: readonly Awaited[];

  /** @param localRanks the rank of each member */
  constructor(
    readonly team: Team,
    localRanks: readonly number[],
  ) {
    this.#holdUps = new HoldUps(localRanks[team.localRank] ?? 0);
    this.#members = localRanks.map((peer, local) => ({ peer, heardWaits: () => team.heardWaits(local) }));
  }

  /** The ranks that hold up this one while it waits for these members. */
  find(locals: readonly number[], limitMs: number): number[] {
    return this.#holdUps.find(this.#awaited(locals), limitMs);
  }

  /** Reports to the members that this rank waits for these of them, and in which operation. */
  sayWaits(locals: readonly number[], limitMs: number, deed: Deed): readonly number[] {
    const report = this.#holdUps.look(this.#awaited(locals), limitMs, deed);
    this.team.sayWaits(report);
    return report;
  }

  /** See HoldUps. */
  doing(rank: number): string | undefined {
    return this.#holdUps.doing(rank);
  }

  #awaited(locals: readonly number[]): Awaited[] {
    return locals.flatMap((local) => this.#members[local] ?? []);
  }
}
