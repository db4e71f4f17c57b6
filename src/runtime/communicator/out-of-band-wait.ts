import type { Bootstrap } from '../bootstrap/bootstrap.js';
import type { WaitQueries } from '../bootstrap/wait-queries.js';
import { describeLate } from '../algorithms/activity.js';
import { WaitChains, type Awaited } from '../algorithms/wait-chains.js';
import type { Team } from '../device/team.js';
import { WatchClock } from '../progress/watch-clock.js';

interface OutOfBandWaitParts {
  readonly bootstrap: Bootstrap;
  readonly team: Team;
  readonly waitQueries: WaitQueries | undefined;
}

/**
 * Finds the ranks that hold up an out-of-band call: those that have not made it, or that are stuck in it. Their wait reports come
 * from queries on the bootstrap network, and from shared memory; see WaitChains.
 */
export class OutOfBandWait {
  readonly #bootstrap: Bootstrap;
  readonly #team: Team;
  readonly #waitQueries: WaitQueries | undefined;
  readonly #timeoutMs: number;
  readonly #findBehind: () => number[];
  readonly #queries: WaitQueries;
  readonly #waitChains: WaitChains;
  readonly #peers: readonly (readonly Awaited[])[];
  readonly #looks: NodeJS.Timeout;
  #isOver = false;

  /** @param findBehind returns the ranks of this host that are known not to have made the call */
  constructor({ bootstrap, team, waitQueries }: OutOfBandWaitParts, timeoutMs: number, findBehind: () => number[] = () => []) {
    this.#bootstrap = bootstrap;
    this.#team = team;
    this.#waitQueries = waitQueries;
    this.#timeoutMs = timeoutMs;
    this.#findBehind = findBehind;
    this.#queries = bootstrap.openWaitQueries();
    this.#waitChains = new WaitChains(bootstrap.rank);
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
    return this.#waitChains.find(behind.length > 0 ? this.#peersOf(behind) : this.#awaited(), this.#timeoutMs);
  }

  /** Text with the ranks that hold the call up and the waits that they reported. */
  describe(late: readonly number[]): string {
    return describeLate(late, (rank) => this.#waitChains.doing(rank));
  }

  close(): void {
    this.#isOver = true;
    clearInterval(this.#looks);
    this.#queries.close();
  }

  #look(): void {
    const awaited = this.#awaited();
    const words = this.#waitChains.look(awaited, this.#timeoutMs, { kind: 'outOfBand' });
    this.#queries.setAnswer(words);
    this.#waitQueries?.setAnswer(words, () => !this.#isOver);
    this.#team.reportWait(words);
    const late = this.late();
    this.#waitChains.hear(this.#peersOf(late));
    const ranks = [...new Set([...awaited.map(({ peer }) => peer), ...late])];
    this.#queries.ask(ranks);
    this.#waitQueries?.ask(ranks);
  }

  #awaited(): Awaited[] {
    return this.#peersOf([...new Set([...this.#queries.awaited(), ...this.#findBehind()])]);
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
      { peer: rank, waitReport: () => this.#queries.answer(rank) },
      { peer: rank, waitReport: () => this.#waitQueries?.answer(rank) },
      { peer: rank, waitReport: () => (local < 0 ? undefined : this.#team.waitReport(local)) },
    ];
  }
}
