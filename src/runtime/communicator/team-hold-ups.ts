import { HoldUps, type Awaited } from '../collectives/hold-ups.js';
import type { Team } from '../device/team.js';

/** Who holds up a rank in what it does with the other members of a team; see HoldUps. */
export class TeamHoldUps {
  readonly #holdUps: HoldUps;
  readonly #members: readonly Awaited[];

  /** @param localRanks the rank of each member */
  constructor(readonly team: Team, localRanks: readonly number[]) {
    this.#holdUps = new HoldUps(localRanks[team.localRank] ?? 0);
    this.#members = localRanks.map((peer, local) => ({ peer, heardWaits: () => team.heardWaits(local) }));
  }

  /** The ranks that hold this one up, which waits for these members. */
  find(locals: readonly number[], timeoutMs: number): number[] {
    return this.#holdUps.find(this.#awaited(locals), timeoutMs);
  }

  /** Tells the members that this rank waits for these of them. */
  sayWaits(locals: readonly number[], timeoutMs: number): void {
    this.team.sayWaits(this.#holdUps.look(this.#awaited(locals), timeoutMs));
  }

  #awaited(locals: readonly number[]): Awaited[] {
    return locals.flatMap((local) => this.#members[local] ?? []);
  }
}
