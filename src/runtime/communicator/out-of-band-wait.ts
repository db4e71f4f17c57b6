import type { Bootstrap } from '../bootstrap/bootstrap.js';
import type { WaitLine } from '../bootstrap/wait-line.js';
import { HoldUps, type Awaited } from '../algorithms/hold-ups.js';
import type { Team } from '../device/team.js';
import { WatchClock } from '../progress/watch-clock.js';

/**
 * Who holds up a call out of band: ranks that have not made it, or that stand still in the middle of it. A rank knows whose
 * messages it waits for; those it asks, on the bootstrap network and in memory that they share, whether they wait, too.
 * See HoldUps.
 */
export class OutOfBandWait {
  readonly #bootstrap: Bootstrap;
  readonly #team: Team;
  readonly #timeoutMs: number;
  readonly #findBehind: () => number[];
  readonly #line: WaitLine;
  readonly #holdUps: HoldUps;
  readonly #peers: readonly (readonly Awaited[])[];
  readonly #looks: NodeJS.Timeout;

  /** @param findBehind the ranks of this host that are known not to have made the call */
  constructor(bootstrap: Bootstrap, team: Team, timeoutMs: number, findBehind: () => number[] = () => []) {
    this.#bootstrap = bootstrap;
    this.#team = team;
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

  /**
   * The ranks that hold it up, as far as that is known: those that have not called, whatever they do, before those that
   * stand still.
   */
  late(): number[] {
    const behind = this.#findBehind();
    return this.#holdUps.find(behind.length > 0 ? this.#peersOf(behind) : this.#awaited(), this.#timeoutMs);
  }

  close(): void {
    clearInterval(this.#looks);
    this.#line.close();
  }

  #look(): void {
    const awaited = this.#awaited();
    const words = this.#holdUps.look(awaited, this.#timeoutMs, { kind: 'outOfBand' });
    this.#line.say(words);
    this.#team.sayWaits(words);
    this.#line.ask([...new Set(awaited.map(({ peer }) => peer))]);
  }

  #awaited(): Awaited[] {
    return this.#peersOf([...new Set([...this.#line.awaited(), ...this.#findBehind()])]);
  }

  #peersOf(ranks: readonly number[]): Awaited[] {
    return ranks.flatMap((rank) => (rank === this.#bootstrap.rank ? [] : (this.#peers[rank] ?? [])));
  }

  #await(rank: number): readonly Awaited[] {
    const onLine: Awaited = { peer: rank, heardWaits: () => this.#line.answer(rank) };
    const { localRanks } = this.#bootstrap;
    // Where the ranks of a host share no memory, each is a team of its own.
    const shares = this.#team.nLocalRanks === localRanks.length && localRanks.includes(rank);
    return shares ? [onLine, { peer: rank, heardWaits: () => this.#team.heardWaits(localRanks.indexOf(rank)) }] : [onLine];
  }
}
