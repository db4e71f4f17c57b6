import type { Bootstrap } from '../bootstrap/bootstrap.js';
import type { WaitLine } from '../bootstrap/wait-line.js';
import { describeLate } from '../algorithms/deed.js';
import { HoldUps, type Awaited } from '../algorithms/hold-ups.js';
import type { Team } from '../device/team.js';
import { WatchClock } from '../progress/watch-clock.js';

export interface OutOfBandWaitParts {
  readonly bootstrap: Bootstrap;
  readonly team: Team;
  readonly waitLine: WaitLine | undefined;
}

/**
 * Finds the ranks that hold up an out-of-band call: those that have not made it, or that are stuck in it. A rank knows whose
 * messages it waits for, and asks those ranks, over the bootstrap network and in shared memory, whether they wait too. See
 * HoldUps.
 */
export class OutOfBandWait {
  readonly #bootstrap: Bootstrap;
  readonly #team: Team;
  readonly #waitLine: WaitLine | undefined;
  readonly #timeoutMs: number;
  readonly #findBehind: () => number[];
  readonly #line: WaitLine;
  readonly #holdUps: HoldUps;
  readonly #peers: readonly (readonly Awaited[])[];
  readonly #looks: NodeJS.Timeout;
  #isOver = false;

  /** @param findBehind returns the ranks of this host that are known not to have made the call */
  constructor({ bootstrap, team, waitLine }: OutOfBandWaitParts, timeoutMs: number, findBehind: () => number[] = () => []) {
    this.#bootstrap = bootstrap;
    this.#team = team;
    this.#waitLine = waitLine;
    this.#timeoutMs = timeoutMs;
    this.#findBehind = findBehind;
    this.#line = bootstrap.openWaitLine();
    this.#holdUps = new HoldUps(bootstrap.rank);
    this.#peers = bootstrap.peers.map(({ rank }) => this.#await(rank));
    const clock = new WatchClock(timeoutMs);
    const begunMs = clock.look();
    this.#looks = clock.every(() => {
      if (clock.look() - begunMs > clock.gapMs) this.#look();
    });
  }

  /** The ranks that hold the call up, as far as known: ranks that have not made the call come before ranks that are stuck. */
  late(): number[] {
    const behind = this.#findBehind();
    return this.#holdUps.find(behind.length > 0 ? this.#peersOf(behind) : this.#awaited(), this.#timeoutMs);
  }

  /** Text with the ranks that hold the call up and what they reported to be waiting for. */
  describe(late: readonly number[]): string {
    return describeLate(late, (rank) => this.#holdUps.doing(rank));
  }

  close(): void {
    this.#isOver = true;
    clearInterval(this.#looks);
    this.#line.close();
  }

  #look(): void {
    const awaited = this.#awaited();
    const words = this.#holdUps.look(awaited, this.#timeoutMs, { kind: 'outOfBand' });
    this.#line.say(words);
    this.#waitLine?.say(words, () => !this.#isOver);
    this.#team.sayWaits(words);
    const late = this.late();
    this.#holdUps.hear(this.#peersOf(late));
    const ranks = [...new Set([...awaited.map(({ peer }) => peer), ...late])];
    this.#line.ask(ranks);
    this.#waitLine?.ask(ranks);
  }

  #awaited(): Awaited[] {
    return this.#peersOf([...new Set([...this.#line.awaited(), ...this.#findBehind()])]);
  }

  #peersOf(ranks: readonly number[]): Awaited[] {
    return ranks.flatMap((rank) => (rank === this.#bootstrap.rank ? [] : (this.#peers[rank] ?? [])));
  }

  /** The rank may be in this call or another one, and may share memory with this rank. */
  #await(rank: number): readonly Awaited[] {
    const { localRanks } = this.#bootstrap;
    // If the ranks of a host share no memory, each is a team of its own.
    const local = this.#team.nLocalRanks === localRanks.length ? localRanks.indexOf(rank) : -1;
    return [
      { peer: rank, heardWaits: () => this.#line.answer(rank) },
      { peer: rank, heardWaits: () => this.#waitLine?.answer(rank) },
      { peer: rank, heardWaits: () => (local < 0 ? undefined : this.#team.heardWaits(local)) },
    ];
  }
}
