import { InvalidUsageError, TimeoutError } from '../../errors.js';
import type { TcclError } from '../../errors.js';
import { parseAddress } from './address.js';
import { firstHosts, formatRanks, nameRanks } from './rank-list.js';
import { defined } from '../../defined.js';
import { addTo } from '../../add-to.js';

/** A rank's message to the root when it checks in. */
export interface CheckIn {
  readonly rank: number;
  readonly nRanks: number;
  readonly version: string;
  /** Random, one for each call of connect, so that a check-in repeated after a broken connection is recognised. */
  readonly instance: string;
  /** Address at which the rank waits for the root's answer. */
  readonly answerAddress: string;
  /** Address at which the rank accepts connections of other ranks. */
  readonly peerAddress: string;
  readonly hostname: string;
  readonly pid: number;
  /** See PeerInfo. */
  readonly processHash: string;
  /** Remaining time that the rank waits. */
  readonly remainingMs: number;
}

/** A check-in as the root received it. */
export interface Arrival extends CheckIn {
  /** IP address that it came from. */
  readonly source: string;
}

/** The ranks that have checked in, and whether they match. */
export class RollCall {
  readonly #checkIns = new Map<string, Arrival>();
  readonly #ranks = new Set<number>();
  readonly #counts = new Set<number>();
  readonly #versions = new Set<string>();
  /** Ranks that were lost after their check-in, with their processes. */
  readonly #lost = new Map<number, string>();

  /** Adds a check-in. Returns false if it is known already. */
  add(checkIn: Arrival): boolean {
    if (this.#checkIns.has(checkIn.instance)) return false;
    this.#checkIns.set(checkIn.instance, checkIn);
    this.#ranks.add(checkIn.rank);
    this.#counts.add(checkIn.nRanks);
    this.#versions.add(checkIn.version);
    this.#lost.delete(checkIn.rank);
    return true;
  }

  /** Removes a rank that was lost before all had arrived: another process may take its place. */
  remove(instance: string): void {
    const gone = this.#checkIns.get(instance);
    if (gone === undefined) return;
    this.#checkIns.delete(instance);
    for (const set of [this.#ranks, this.#counts, this.#versions]) set.clear();
    for (const { rank, nRanks, version } of this.#checkIns.values()) {
      this.#ranks.add(rank);
      this.#counts.add(nRanks);
      this.#versions.add(version);
    }
    if (!this.#ranks.has(gone.rank)) this.#lost.set(gone.rank, `process ${gone.pid} on ${gone.hostname}`);
  }

  /** In the order of their arrival. */
  get checkIns(): Arrival[] {
    return [...this.#checkIns.values()];
  }

  /** True if as many ranks have arrived as any of them expects. */
  get isFull(): boolean {
    return this.#checkIns.size > 0 && this.#checkIns.size >= this.#nRanks;
  }

  get #nRanks(): number {
    return Math.max(0, ...this.#counts);
  }

  /** True if {@link conflict} returns an error. */
  get hasConflict(): boolean {
    return this.#counts.size > 1 || this.#versions.size > 1 || this.#ranks.size < this.#checkIns.size;
  }

  /** Error if the ranks so far cannot form a communicator, whoever else arrives; the same for all of them. */
  conflict(): TcclError | undefined {
    return this.#differentCounts() ?? this.#differentVersions() ?? this.#repeatedRank();
  }

  /** Ranks that have not arrived. */
  get #missing(): number[] {
    return Array.from({ length: this.#nRanks }, (_, rank) => rank).filter((rank) => !this.#ranks.has(rank));
  }

  /** Ranks that were lost, in words, behind others; empty if there are none. */
  get #losses(): string {
    return [...this.#lost].map(([rank, place]) => `; rank ${rank} checked in, but ended (${place})`).join('');
  }

  /**
   * Error if the time is over before the roll is full.
   *
   * @param root where the ranks meet, in words
   * @param refusals whom the root refused, in words
   */
  missing(root: string, refusals = ''): TimeoutError {
    const came = this.#ranks;
    const ranks = this.#missing;
    // A refusal names the cause.
    const advice =
      refusals === '' ? `; were all started, with the same id, and can they reach the root at ${root}?` : `; the root is ${root}`;
    return new TimeoutError(
      'RANK_MISSING',
      `${nameRanks(ranks)} of ${this.#nRanks} did not join in time (${came.size} did: ${formatRanks(came)})${this.#losses}${refusals}${advice}`,
      { ranks },
    );
  }

  /** Ranks that are waited for, and those that have arrived, in words. */
  describe(): string {
    const came = this.#ranks;
    return `${nameRanks(this.#missing)} of ${this.#nRanks} (${came.size} checked in: ${formatRanks(came)})${this.#losses}`;
  }

  #differentCounts(): InvalidUsageError | undefined {
    const groups = groupBy(this.checkIns, ({ nRanks }) => nRanks);
    if (groups.size < 2) return undefined;
    const hasHosts = hostsOf(this.checkIns).length > 1;
    const parts = [...groups].map(([nRanks, ranks]) => {
      const hosts = hostsOf(this.checkIns.filter((checkIn) => checkIn.nRanks === nRanks));
      return `${nameRanks(ranks)} with ${nRanks}${hasHosts ? ` on ${firstHosts(hosts, MOST_HOSTS).join(' and ')}` : ''}`;
    });
    return new InvalidUsageError(
      'RANK_COUNT_MISMATCH',
      `the ranks were started with different rank counts: ${parts.join(', ')}; all must have the same count: compare -n and --nnodes of each tccl run, or the settings of your launcher`,
      { ranks: minorities(groups) },
    );
  }

  #differentVersions(): InvalidUsageError | undefined {
    const groups = groupBy(this.checkIns, ({ version }) => version);
    if (groups.size < 2) return undefined;
    const parts = [...groups].map(([version, ranks]) => `${version} at ${nameRanks(ranks)}`);
    return new InvalidUsageError(
      'VERSION_MISMATCH',
      `the ranks have different versions of tccl: ${parts.join(', ')}; install the same everywhere`,
      { ranks: minorities(groups) },
    );
  }

  #repeatedRank(): InvalidUsageError | undefined {
    const groups = new Map<number, Arrival[]>();
    for (const checkIn of this.checkIns) addTo(groups, checkIn.rank, checkIn);
    const repeated = [...groups].filter(([, checkIns]) => checkIns.length > 1).sort(([a], [b]) => a - b);
    if (repeated.length === 0) return undefined;
    const parts = repeated.map(([rank, checkIns]) => {
      const places = checkIns.map(({ pid, hostname }) => `process ${pid} on ${hostname}`);
      return `rank ${rank} checked in ${checkIns.length} times (${places.join(', ')})`;
    });
    const areProcesses = repeated.some(([, checkIns]) => new Set(checkIns.map(({ processHash }) => processHash)).size > 1);
    const advice = areProcesses
      ? '; with --nnodes, each node needs a --node-rank of its own; jobs that meet at one address need an id each (--job-id)'
      : '';
    return new InvalidUsageError('RANK_DUPLICATE', `${parts.join('; ')}; each rank must be started once${advice}`, {
      ranks: repeated.map(([rank]) => rank),
    });
  }
}

/** Most hosts that a message names for one count of ranks. */
const MOST_HOSTS = 3;

/** Hosts of these ranks, each with its address: `host7 (10.0.0.7)`. */
function hostsOf(checkIns: readonly Arrival[]): string[] {
  return [...new Set(checkIns.map(({ hostname, peerAddress }) => `${hostname} (${parseAddress(peerAddress).host})`))];
}

/** Ascending ranks by a property, largest group first. */
function groupBy<T extends number | string>(checkIns: readonly Arrival[], property: (checkIn: Arrival) => T): Map<T, number[]> {
  const groups = new Map<T, number[]>();
  for (const checkIn of checkIns) addTo(groups, property(checkIn), checkIn.rank);
  const sorted = [...groups].map(([key, ranks]): [T, number[]] => [key, ranks.sort((a, b) => a - b)]);
  return new Map(sorted.sort(([, a], [, b]) => b.length - a.length || defined(a[0]) - defined(b[0])));
}

/** Ranks outside the largest group: most likely the wrong ones. */
function minorities(groups: ReadonlyMap<unknown, readonly number[]>): number[] {
  return [...groups.values()]
    .slice(1)
    .flat()
    .sort((a, b) => a - b);
}
