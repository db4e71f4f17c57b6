import { clockMs, wallClockMs } from '../platform/platform.js';
import type { Connection } from '../transport/transport.js';
import type { WaitReport } from '../device/wait-report.js';
import { ACTIVITY_WORDS, decodeActivity, describeReport, encodeActivity, isWaitReport, type Activity } from './activity.js';

/** A rank that this one waits for, with one source of its reports; a rank may have several. */
export interface Awaited {
  readonly peer: number;
  /** Its last report, if there is one. */
  waitReport(): WaitReport | undefined;
}

/** A silent rank, as seen by a rank that waits for it (the witness). */
interface Observation {
  readonly rank: number;
  readonly witness: number;
  /** Time of the last observation: milliseconds of the witness's clock, as int32. */
  readonly time: number;
  /** Time at which this rank received it. */
  readonly atMs: number;
}

/** A report is valid for this share of a rank's time limit, so that new ones have time to arrive. */
const FRESH_PART = 1 / 4;
/** In a report, after the activity, each observation has three words: rank, witness and time. */
const OBSERVATION_WORDS = 3;
/** Replaces a missing activity. */
const noActivity: readonly number[] = new Array<number>(ACTIVITY_WORDS).fill(0);
/** Times wrap around after 50 days, so two times are compared only if both are recent. */
const COMPARED_MS = 3_600_000;

/**
 * Finds the ranks that hold up a waiting rank, at the ends of its wait chains. A rank that waits for long reports this repeatedly
 * to all that may wait for it; a rank without reports is stopped or does something else, which its witnesses pass on.
 *      rank 0                      rank 1                     rank 2
 *      waits for 1                 waits for 2                is stopped
 *         ◄─── "I wait; 2 is ────────│◄──────── nothing ────────│
 *               silent, I saw it"
 *
 * Ranks may wait for each other in a circle (in a tree for the sum from below and the result from above), and reports go
 * around in it. So an observation is valid only while its witness renews it.
 */
export class WaitChains {
  readonly #rank: number;
  /** Number and time of each rank's last report of a wait. */
  readonly #lastReports = new WeakMap<Awaited, { readonly count: number; readonly atMs: number }>();
  /** Observations by rank and witness. */
  readonly #observations = new Map<string, Observation>();
  /** Operations that waiting ranks reported, by rank, with the time. */
  readonly #activities = new Map<number, { readonly words: readonly number[]; readonly atMs: number }>();
  #sinceMs = 0;
  #lookedMs = -Infinity;
  #freshMs = 0;

  constructor(rank: number) {
    this.#rank = rank;
  }

  /**
   * Evaluates the others' reports during a long wait. Called repeatedly, because reports are valid for some time only.
   *
   * @param awaited ranks that this rank waits for
   * @param limitMs time after which the wait warns or fails; a share of it is the validity of reports
   * @param activity operation that this rank is in
   * @param reportsDeadlock true if this rank names itself in a deadlock (ranks that wait for each other in a circle)
   * @returns the report for the others
   */
  look(awaited: readonly Awaited[], limitMs: number, activity?: Activity, reportsDeadlock = false): number[] {
    const freshMs = this.validityMs(limitMs);
    this.#freshMs = freshMs;
    const nowMs = clockMs();
    if (nowMs - this.#lookedMs > freshMs) this.#sinceMs = nowMs;
    this.#lookedMs = nowMs;
    const active = new Set(awaited.filter((other) => this.#hasNews(other, nowMs)).map(({ peer }) => peer));
    for (const { peer } of awaited) if (!active.has(peer)) this.#see(peer, nowMs);
    // Observations of other ranks have had time to arrive.
    const isDeadlock =
      reportsDeadlock && nowMs - this.#sinceMs > 2 * freshMs && this.#fresh(freshMs).every(({ rank }) => rank === this.#rank);
    if (isDeadlock) this.#see(this.#rank, nowMs);
    const isForeign = (observation: Observation): number => Number(observation.witness !== this.#rank);
    const observations = this.#fresh(freshMs)
      .sort((a, b) => isForeign(a) - isForeign(b))
      .flatMap(({ rank, witness, time }) => [rank, witness, time]);
    return [...(activity === undefined ? noActivity : encodeActivity(activity)), ...observations];
  }

  /** Records the operations of ranks that this one does not wait for; called at intervals. The limit is that of look(). */
  readReports(others: readonly Awaited[], limitMs: number): void {
    this.#freshMs = this.validityMs(limitMs);
    for (const other of others) this.#hasNews(other, clockMs());
  }

  /** The ranks at the ends of this rank's wait chains, ascending; without reports, the ranks that it waits for itself. */
  find(awaited: readonly Awaited[], limitMs: number): number[] {
    this.look(awaited, limitMs);
    const found = new Set(this.#fresh(this.validityMs(limitMs)).map(({ rank }) => rank));
    found.delete(this.#rank);
    return [...(found.size > 0 ? found : new Set(awaited.map(({ peer }) => peer)))].sort((a, b) => a - b);
  }

  /** True if a rank that holds this one up was known at the last look. */
  get isSure(): boolean {
    return this.#fresh(this.#freshMs).some(({ rank }) => rank !== this.#rank);
  }

  /** Time for which a report is valid, given the limit. */
  validityMs(limitMs: number): number {
    return limitMs * FRESH_PART;
  }

  /** True if ranks wait for each other in a circle: no silent rank was seen, but a rank has named itself. */
  get isDeadlock(): boolean {
    const fresh = this.#fresh(this.#freshMs);
    return fresh.length > 0 && fresh.every(({ rank, witness }) => rank === witness);
  }

  /**
   * Text of the operation in which an awaited rank waits, if its last report is recent: `waiting in recv of 4 int32 from rank 0`.
   */
  doing(rank: number): string | undefined {
    const words = this.#recentWords(rank);
    return words && describeReport(words);
  }

  /** The operation in which an awaited rank waits, or its last call, if its last report is recent. */
  activityOf(rank: number): Activity | undefined {
    const words = this.#recentWords(rank);
    return words && decodeActivity(words);
  }

  /** True if an awaited rank, by its last report, waits in a call that all ranks make. */
  isInCallOfAll(rank: number): boolean {
    const kind = this.activityOf(rank)?.kind;
    return kind === 'collective' || kind === 'outOfBand';
  }

  #recentWords(rank: number): readonly number[] | undefined {
    const report = this.#activities.get(rank);
    return report === undefined || clockMs() - report.atMs > this.#freshMs ? undefined : report.words;
  }

  /** Reads a rank's report from one source. Returns true if it has reported recently there, or had no need to yet. */
  #hasNews(other: Awaited, nowMs: number): boolean {
    const report = other.waitReport();
    const before = this.#lastReports.get(other);
    let atMs = before?.atMs ?? 0;
    if (report !== undefined && report.count !== before?.count) {
      const waits = isWaitReport(report.words);
      if (waits) atMs = nowMs;
      this.#lastReports.set(other, { count: report.count, atMs });
      // The first report may be of an earlier wait.
      if (before !== undefined) this.#activities.set(other.peer, { words: report.words, atMs: nowMs });
      if (waits) this.#learn(report.words, nowMs);
    }
    return nowMs - Math.max(this.#sinceMs, atMs) <= this.#freshMs;
  }

  #see(rank: number, atMs: number): void {
    this.#observations.set(`${rank} ${this.#rank}`, { rank, witness: this.#rank, time: wallClockMs() | 0, atMs });
  }

  /** Valid observations. Others are kept, so that they do not come back as new. */
  #fresh(freshMs: number): Observation[] {
    return [...this.#observations.values()].filter(({ atMs }) => this.#lookedMs - atMs <= freshMs);
  }

  /** Records another rank's observations, except of this rank and those that this rank has made itself. */
  #learn(words: readonly number[], atMs: number): void {
    for (let i = ACTIVITY_WORDS; i + OBSERVATION_WORDS <= words.length; i += OBSERVATION_WORDS) {
      const [rank = 0, witness = 0, time = 0] = words.slice(i, i + OBSERVATION_WORDS);
      const key = `${rank} ${witness}`;
      const known = this.#observations.get(key);
      const isNew = known === undefined || ((time - known.time) | 0) > 0 || atMs - known.atMs > COMPARED_MS;
      if (isNew && rank !== this.#rank && witness !== this.#rank) this.#observations.set(key, { rank, witness, time, atMs });
    }
  }
}

/** Wait reports that are asked for over the bootstrap network, as a rank's connections may not have been made yet. */
export interface ReportsOnRequest {
  ask(ranks: readonly number[]): void;
  answer(rank: number): WaitReport | undefined;
}

/** The ranks' reports on request as sources. */
export class RequestedReports {
  readonly #sources: readonly Awaited[];
  readonly #reports: ReportsOnRequest | undefined;

  /** @param nRanks number of ranks; peers beyond, such as aggregators, are not asked */
  constructor(nRanks: number, reports?: ReportsOnRequest) {
    this.#reports = reports;
    this.#sources = Array.from({ length: nRanks }, (_, peer) => ({ peer, waitReport: () => reports?.answer(peer) }));
  }

  ask(ranks: readonly number[]): void {
    this.#reports?.ask(ranks.filter((rank) => rank < this.#sources.length));
  }

  of(rank: number): readonly Awaited[] {
    return this.#sources.slice(rank, rank + 1);
  }
}

/** Replies of a rank that does not wait to ranks that report a wait, once for each report. */
export class ReportReplies {
  readonly #replied = new WeakMap<Connection, number>();

  give(connections: readonly Connection[], report: readonly number[]): void {
    for (const connection of connections) {
      const count = connection.waitReport()?.count;
      if (count === undefined || count === this.#replied.get(connection)) continue;
      this.#replied.set(connection, count);
      connection.reportWait(report);
    }
  }
}
