import type { Activity } from '../activity.js';
import { WaitChains, type Awaited } from '../wait-chains.js';
import type { Team } from '../../device/team.js';
import { defined } from '../../../defined.js';

/** Finds the members of a team that hold up a rank in shared memory; see WaitChains. */
export class TeamWaitChains {
  readonly #waitChains: WaitChains;
  readonly #members: readonly Awaited[];

  /** @param localRanks the rank of each member */
  constructor(
    readonly team: Team,
    localRanks: readonly number[],
  ) {
    this.#waitChains = new WaitChains(defined(localRanks[team.localRank]));
    this.#members = localRanks.map((peer, local) => ({ peer, waitReport: () => team.waitReport(local) }));
  }

  /** The ranks that hold up this one while it waits for these members. */
  find(locals: readonly number[], limitMs: number): number[] {
    return this.#waitChains.find(this.#awaited(locals), limitMs);
  }

  /** Reports to the members that this rank waits for these of them, and in which operation. */
  reportWait(locals: readonly number[], limitMs: number, activity: Activity): readonly number[] {
    const report = this.#waitChains.look(this.#awaited(locals), limitMs, activity);
    this.team.reportWait(report);
    return report;
  }

  /** See WaitChains. */
  doing(rank: number): string | undefined {
    return this.#waitChains.doing(rank);
  }

  #awaited(locals: readonly number[]): Awaited[] {
    return locals.flatMap((local) => this.#members[local] ?? []);
  }
}
