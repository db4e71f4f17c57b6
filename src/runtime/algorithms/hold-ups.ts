import type { Connection } from '../transport/transport.js';
import type { WaitReport } from '../device/wait-report.js';
import { DEED_WORDS, describeReport, encodeDeed, tellsOfWait, type Deed } from './deed.js';

/** A remote rank that this one waits for, with one channel on which it reports its own waits; a rank may have several. */
export interface Awaited {
  readonly peer: number;
  /** Its last report, if there is one. */
  heardWaits(): WaitReport | undefined;
}

/** A silent rank, as seen by a rank that waits for it (the witness). */
interface Sighting {
  readonly rank: number;
  readonly witness: number;
  /** Time of the last observation: milliseconds of the witness's clock, as int32. */
  readonly time: number;
  /** Time at which this rank heard of it. */
  readonly atMs: number;
}

/** A report is valid for this share of a rank's time limit, so that there is time to hear new ones. */
const FRESH_PART = 1 / 4;
/** In a report, after the deed, each sighting has three words: rank, witness and time. */
const SIGHTING_WORDS = 3;
/** Replaces a missing deed. */
const noDeed: readonly number[] = new Array<number>(DEED_WORDS).fill(0);
/** Times wrap around after 50 days, so two times are compared only if both are recent. */
const COMPARED_MS = 3_600_000;

/**
 * Finds the ranks that hold up a waiting rank. The rank that it waits for may wait for another one itself, so a rank that
 * waits for long reports this repeatedly to all that may wait for it. A rank without reports is stopped or does something
 * else; its witnesses pass that on.
 *      rank 0                      rank 1                     rank 2
 *      waits for 1                 waits for 2                stands still
 *         ◄─── "I wait; 2 is ────────│◄──────── nothing ────────│
 *               silent, I saw it"
 *
 * Ranks may wait for each other in a circle (in a tree for the sum from below and the result from above), and reports go
 * around in it. So an observation is valid only while its witness renews it.
 */
export class HoldUps {
  readonly #rank: number;
  /** Number and time of each rank's last report of a wait. */
  readonly #heard = new WeakMap<Awaited, { readonly count: number; readonly atMs: number }>();
  /** Sightings by rank and witness. */
  readonly #sightings = new Map<string, Sighting>();
  /** Operations that waiting ranks reported, by rank, with the time. */
  readonly #deeds = new Map<number, { readonly words: readonly number[]; readonly atMs: number }>();
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
   * @param deed operation that this rank is in
   * @param confesses true if this rank is the one to name when ranks wait for each other in a circle, which never ends
   * @returns the report for the others
   */
  look(awaited: readonly Awaited[], limitMs: number, deed?: Deed, confesses = false): number[] {
    const freshMs = limitMs * FRESH_PART;
    this.#freshMs = freshMs;
    const nowMs = performance.now();
    if (nowMs - this.#lookedMs > freshMs) this.#sinceMs = nowMs;
    this.#lookedMs = nowMs;
    const heard = new Set(awaited.filter((other) => this.#hears(other, nowMs)).map(({ peer }) => peer));
    for (const { peer } of awaited) if (!heard.has(peer)) this.#see(peer, nowMs);
    // Observations of other ranks have had time to arrive.
    const circles =
      confesses && nowMs - this.#sinceMs > 2 * freshMs && this.#fresh(freshMs).every(({ rank }) => rank === this.#rank);
    if (circles) this.#see(this.#rank, nowMs);
    const isForeign = (sighting: Sighting): number => Number(sighting.witness !== this.#rank);
    const sightings = this.#fresh(freshMs)
      .sort((a, b) => isForeign(a) - isForeign(b))
      .flatMap(({ rank, witness, time }) => [rank, witness, time]);
    return [...(deed === undefined ? noDeed : encodeDeed(deed)), ...sightings];
  }

  /** Records the operations of ranks that this one does not wait for; called at intervals. */
  hear(others: readonly Awaited[]): void {
    for (const other of others) this.#hears(other, performance.now());
  }

  /** The ranks at the ends of this rank's wait chains, ascending; without reports, the ranks that it waits for itself. */
  find(awaited: readonly Awaited[], limitMs: number): number[] {
    this.look(awaited, limitMs);
    const found = new Set(this.#fresh(limitMs * FRESH_PART).map(({ rank }) => rank));
    found.delete(this.#rank);
    return [...(found.size > 0 ? found : new Set(awaited.map(({ peer }) => peer)))].sort((a, b) => a - b);
  }

  /** True if ranks wait for each other in a circle: no silent rank was seen, but a rank has confessed. */
  get isCircle(): boolean {
    const fresh = this.#fresh(this.#freshMs);
    return fresh.length > 0 && fresh.every(({ rank, witness }) => rank === witness);
  }

  /** Text of what an awaited rank waits in, if its last report is recent: `waiting in recv of 4 int32 from rank 0`. */
  doing(rank: number): string | undefined {
    const said = this.#deeds.get(rank);
    return said === undefined || performance.now() - said.atMs > this.#freshMs ? undefined : describeReport(said.words);
  }

  /** Reads a rank's report on one channel. Returns true if the rank has reported recently there, or had no need to yet. */
  #hears(other: Awaited, nowMs: number): boolean {
    const report = other.heardWaits();
    const before = this.#heard.get(other);
    let atMs = before?.atMs ?? 0;
    if (report !== undefined && report.count !== before?.count) {
      const waits = tellsOfWait(report.words);
      if (waits) atMs = nowMs;
      this.#heard.set(other, { count: report.count, atMs });
      // The first report may be of an earlier wait.
      if (before !== undefined) this.#deeds.set(other.peer, { words: report.words, atMs: nowMs });
      if (waits) this.#learn(report.words, nowMs);
    }
    return nowMs - Math.max(this.#sinceMs, atMs) <= this.#freshMs;
  }

  #see(rank: number, atMs: number): void {
    this.#sightings.set(`${rank} ${this.#rank}`, { rank, witness: this.#rank, time: Date.now() | 0, atMs });
  }

  /** Valid sightings. Others are kept, so that they do not come back as new. */
  #fresh(freshMs: number): Sighting[] {
    return [...this.#sightings.values()].filter(({ atMs }) => this.#lookedMs - atMs <= freshMs);
  }

  /** Records another rank's sightings, except of this rank and those that this rank has made itself. */
  #learn(words: readonly number[], atMs: number): void {
    for (let i = DEED_WORDS; i + SIGHTING_WORDS <= words.length; i += SIGHTING_WORDS) {
      const [rank = 0, witness = 0, time = 0] = words.slice(i, i + SIGHTING_WORDS);
      const key = `${rank} ${witness}`;
      const known = this.#sightings.get(key);
      const isNew = known === undefined || ((time - known.time) | 0) > 0 || atMs - known.atMs > COMPARED_MS;
      if (isNew && rank !== this.#rank && witness !== this.#rank) this.#sightings.set(key, { rank, witness, time, atMs });
    }
  }
}

/** Answers of a rank that does not wait to ranks that report a wait, once for each report. */
export class WaitAnswers {
  readonly #answered = new WeakMap<Connection, number>();

  give(connections: readonly Connection[], report: readonly number[]): void {
    for (const connection of connections) {
      const count = connection.heardWaits()?.count;
      if (count === undefined || count === this.#answered.get(connection)) continue;
      this.#answered.set(connection, count);
      connection.sayWaits(report);
    }
  }
}
