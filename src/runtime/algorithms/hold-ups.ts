import type { Connection } from '../transport/transport.js';
import type { WaitReport } from '../device/wait-report.js';
import { DEED_WORDS, describeReport, encodeDeed, tellsOfWait, type Deed } from './deed.js';

/** Another rank that this one waits for, and a way on which it says that it waits itself; it may have several. */
export interface Awaited {
  readonly peer: number;
  /** What it said last, if it has said anything. */
  heardWaits(): WaitReport | undefined;
}

/** A rank that says nothing to one that waits for it, the witness. */
interface Sighting {
  readonly rank: number;
  readonly witness: number;
  /** When it was last seen: milliseconds of the witness's clock, as int32. */
  readonly time: number;
  /** When this rank heard of it. */
  readonly atMs: number;
}

/** What is heard counts for this part of the time that a rank waits for others: enough of it is left to hear more. */
const FRESH_PART = 1 / 4;
/** In a report, behind the deed, a sighting is its rank, witness and time. */
const SIGHTING_WORDS = 3;
/** In place of a deed. */
const noDeed: readonly number[] = new Array<number>(DEED_WORDS).fill(0);
/** Times go around in 50 days, so which of two is later is known only of what was heard not too long ago. */
const COMPARED_MS = 3_600_000;

/**
 * Who holds up a rank that waits. The one that it waits for may wait itself, for another: so who waits for long says so
 * to all that may wait for it, again and again. Who says nothing is stopped, or does something else; that is passed on.
 *
 *      rank 0                      rank 1                     rank 2
 *      waits for 1                 waits for 2                stands still
 *         ◄─── "I wait; 2 is ────────│◄──────── nothing ────────│
 *               silent, I saw it"
 *
 * Ranks may wait for each other in a circle (in a tree for the sum from below and the result from above), and what is passed
 * on goes around in it. So what one rank has seen counts only as long as it sees it anew.
 */
export class HoldUps {
  readonly #rank: number;
  /** The report of each, and when it last said that it waits. */
  readonly #heard = new WeakMap<Awaited, { readonly count: number; readonly atMs: number }>();
  /** By rank and witness. */
  readonly #sightings = new Map<string, Sighting>();
  /** What ranks that wait said they are in, by rank, and when. */
  readonly #deeds = new Map<number, { readonly words: readonly number[]; readonly atMs: number }>();
  #sinceMs = 0;
  #lookedMs = -Infinity;
  #freshMs = 0;

  constructor(rank: number) {
    this.#rank = rank;
  }

  /**
   * Looks what the others say, in a wait that has taken long: again and again, since what they say counts for some time only.
   *
   * @param awaited for whom this rank waits
   * @param limitMs how long it does before it says so, or fails; a part of it is how long what is heard counts
   * @param deed what this rank is in
   * @param confesses whether this rank is the one to name where ranks wait for each other in a circle, and so for ever
   * @returns what to say to others
   */
  look(awaited: readonly Awaited[], limitMs: number, deed?: Deed, confesses = false): number[] {
    const freshMs = limitMs * FRESH_PART;
    this.#freshMs = freshMs;
    const nowMs = performance.now();
    if (nowMs - this.#lookedMs > freshMs) this.#sinceMs = nowMs;
    this.#lookedMs = nowMs;
    const heard = new Set(awaited.filter((other) => this.#hears(other, nowMs)).map(({ peer }) => peer));
    for (const { peer } of awaited) if (!heard.has(peer)) this.#see(peer, nowMs);
    // What others have seen has had time to come.
    const circles =
      confesses && nowMs - this.#sinceMs > 2 * freshMs && this.#fresh(freshMs).every(({ rank }) => rank === this.#rank);
    if (circles) this.#see(this.#rank, nowMs);
    const isForeign = (sighting: Sighting): number => Number(sighting.witness !== this.#rank);
    const sightings = this.#fresh(freshMs)
      .sort((a, b) => isForeign(a) - isForeign(b))
      .flatMap(({ rank, witness, time }) => [rank, witness, time]);
    return [...(deed === undefined ? noDeed : encodeDeed(deed)), ...sightings];
  }

  /** Hears of other ranks what they are in, though this one does not wait for them; from time to time. */
  hear(others: readonly Awaited[]): void {
    for (const other of others) this.#hears(other, performance.now());
  }

  /** Who holds this rank up at last, ascending: those that it waits for, as long as nothing is known of others. */
  find(awaited: readonly Awaited[], limitMs: number): number[] {
    this.look(awaited, limitMs);
    const found = new Set(this.#fresh(limitMs * FRESH_PART).map(({ rank }) => rank));
    found.delete(this.#rank);
    return [...(found.size > 0 ? found : new Set(awaited.map(({ peer }) => peer)))].sort((a, b) => a - b);
  }

  /** Whether ranks wait for each other in a circle: nobody was seen to stand still, but some have confessed. */
  get isCircle(): boolean {
    const fresh = this.#fresh(this.#freshMs);
    return fresh.length > 0 && fresh.every(({ rank, witness }) => rank === witness);
  }

  /** What a rank that was waited for waits in itself, if it has just said so: `waiting in recv of 4 int32 from rank 0`. */
  doing(rank: number): string | undefined {
    const said = this.#deeds.get(rank);
    return said === undefined || performance.now() - said.atMs > this.#freshMs ? undefined : describeReport(said.words);
  }

  /** Takes what a rank says on one way. Returns whether it has said lately, on that way, that it waits, or need not have yet. */
  #hears(other: Awaited, nowMs: number): boolean {
    const report = other.heardWaits();
    const before = this.#heard.get(other);
    let atMs = before?.atMs ?? 0;
    if (report !== undefined && report.count !== before?.count) {
      const waits = tellsOfWait(report.words);
      if (waits) atMs = nowMs;
      this.#heard.set(other, { count: report.count, atMs });
      // The first may be of a wait that is over.
      if (before !== undefined) this.#deeds.set(other.peer, { words: report.words, atMs: nowMs });
      if (waits) this.#learn(report.words, nowMs);
    }
    return nowMs - Math.max(this.#sinceMs, atMs) <= this.#freshMs;
  }

  #see(rank: number, atMs: number): void {
    this.#sightings.set(`${rank} ${this.#rank}`, { rank, witness: this.#rank, time: Date.now() | 0, atMs });
  }

  /** Those that are not too old. The others stay known, so that they do not come back as new. */
  #fresh(freshMs: number): Sighting[] {
    return [...this.#sightings.values()].filter(({ atMs }) => this.#lookedMs - atMs <= freshMs);
  }

  /** Takes what another rank has said; what this rank is said to have done, or has seen itself, it knows better. */
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

/** Answers of a rank that does not wait itself to those that say that they wait, each time that they say so. */
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
