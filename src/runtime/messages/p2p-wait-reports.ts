import { WaitChains, type Awaited } from '../algorithms/wait-chains.js';
import type { WaitQueries } from '../bootstrap/wait-queries.js';
import type { Team } from '../device/team.js';
import type { WaitReport } from '../device/wait-report.js';
import { ReportPace } from '../progress/wait-limits.js';
import type { Connection } from '../transport/transport.js';
import type { Peer } from './p2p-links.js';
import type { LongWait } from './p2p-transfer.js';

interface WaitReportsParts {
  readonly rank: number;
  readonly team: Team;
  /** True if the ranks of this host share the team's memory. */
  readonly shared: boolean;
  readonly waitQueries: WaitQueries | undefined;
  /** Reports this rank's wait to ranks that may wait for it in a collective. */
  readonly forwardInCalls: (report: readonly number[]) => void;
  readonly localOf: (rank: number) => number;
  /** True while messages are in flight. */
  readonly isPending: () => boolean;
  /** By rank, as far as there are connections. */
  readonly peers: readonly (Peer | undefined)[];
}

/** Reports of long waits to ranks that wait for messages of this one, and their reports; see WaitChains. */
export class WaitReports {
  readonly #parts: WaitReportsParts;
  readonly #waitChains: WaitChains;
  readonly #pace = new ReportPace();
  /** For each awaited rank, the ranks that it waits for itself. */
  readonly #awaited: (readonly Awaited[])[] = [];

  constructor(parts: WaitReportsParts) {
    this.#parts = parts;
    this.#waitChains = new WaitChains(parts.rank);
  }

  /** The ranks at the ends of the wait chains that begin with `ranks`; see WaitChains. */
  stragglers(ranks: readonly number[], limitMs: number): number[] {
    return this.#waitChains.find(this.#awaitedOf(ranks), limitMs);
  }

  /** Text of the operation in which an awaited rank waits itself; see WaitChains. */
  doing(rank: number): string | undefined {
    return this.#waitChains.doing(rank);
  }

  /** See WaitChains. */
  isInCallOfAll(rank: number): boolean {
    return this.#waitChains.isInCallOfAll(rank);
  }

  /** True if ranks are known to wait for each other in a circle. */
  get isDeadlock(): boolean {
    return this.#waitChains.isDeadlock;
  }

  /** Reports to ranks that may wait for this one that it waits too, for messages or windows. */
  reportWait({ ranks, activity, holds }: LongWait, limitMs: number): void {
    if (!this.#pace.isDue(limitMs)) return;
    // In a circle, a rank that waits for messages is at fault, because all ranks make the same collectives.
    const report = this.#waitChains.look(this.#awaitedOf(ranks), limitMs, activity, true);
    this.#send(report);
    this.#parts.forwardInCalls(report);
    // Connections are made when both ranks have messages for each other; in a circle that may never happen.
    const { waitQueries } = this.#parts;
    waitQueries?.setAnswer(report, holds);
    waitQueries?.ask(ranks.filter((rank) => this.#parts.localOf(rank) < 0));
  }

  /** Reports this rank's wait elsewhere to ranks that may wait for its messages. */
  forwardReport(report: readonly number[]): void {
    if (!this.#parts.isPending()) this.#send(report);
  }

  /** Records the reports of all connected ranks, for doing(); called at intervals while this rank waits elsewhere. */
  readReports(limitMs: number): void {
    this.#waitChains.readReports(this.#awaitedOf([...this.#parts.peers.keys()]), limitMs);
  }

  #send(report: readonly number[]): void {
    if (this.#parts.shared) this.#parts.team.reportWait(report);
    for (const connection of this.#connections()) connection.reportWait(report);
  }

  /** Connections with ranks that share no memory. */
  #connections(): Connection[] {
    return this.#parts.peers.flatMap((peer) =>
      [peer?.outlet, peer?.inlet].flatMap((link) => (link?.shared === false ? (link.connection ?? []) : [])),
    );
  }

  #awaitedOf(ranks: readonly number[]): Awaited[] {
    return ranks.flatMap((rank) => (this.#awaited[rank] ??= this.#await(rank)));
  }

  #await(rank: number): readonly Awaited[] {
    const local = this.#parts.localOf(rank);
    if (local >= 0) return [{ peer: rank, waitReport: () => this.#parts.team.waitReport(local) }];
    const linked = (): WaitReport | undefined => {
      const peer = this.#parts.peers[rank];
      const link = [peer?.inlet, peer?.outlet].find((one) => one?.shared === false && one.connection !== undefined);
      return link?.shared === false ? link.connection?.waitReport() : undefined;
    };
    return [
      { peer: rank, waitReport: linked },
      { peer: rank, waitReport: () => this.#parts.waitQueries?.answer(rank) },
    ];
  }
}
