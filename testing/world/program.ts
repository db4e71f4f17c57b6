import type { Random } from './random.js';

/** Calls that ranks make; each has its way in calls.ts. */
export const kinds = [
  'allReduce',
  'broadcast',
  'allGather',
  'reduceScatter',
  'allToAll',
  'barrier',
  'ring',
  'group',
  'objects',
  'window',
  'split',
] as const;

export type Kind = (typeof kinds)[number];

/** A call that all ranks make. */
export interface Call {
  readonly kind: Kind;
  readonly count: number;
  /** Ranks wait before it, each for up to this time of the world. */
  readonly pauseMs: number;
}

/** A fault of a job, and its time. */
export type Fault =
  | { readonly kind: 'crash'; readonly rank: number; readonly atMs: number }
  | { readonly kind: 'stop'; readonly rank: number; readonly atMs: number; readonly forMs: number }
  | { readonly kind: 'slow'; readonly rank: number; readonly atMs: number; readonly factor: number }
  | { readonly kind: 'late'; readonly rank: number; readonly byMs: number }
  /** The rank makes another call, of a kind; without one, an allReduce of another length and type. */
  | { readonly kind: 'odd call'; readonly rank: number; readonly call: number; readonly makes?: Kind | undefined }
  | {
      readonly kind: 'partition';
      readonly from: number;
      readonly to: number;
      readonly bothWays: boolean;
      readonly atMs: number;
      readonly forMs: number;
    }
  | { readonly kind: 'reset'; readonly atMs: number }
  | { readonly kind: 'stranger'; readonly atMs: number; readonly bytes: number; readonly stays: boolean };

/** All that a seed decides of a job before it runs. */
export interface Job {
  readonly seed: number;
  readonly nRanks: number;
  /** Number of hosts, 1 if left out. Ranks of one host exchange data through its loopback interface. */
  readonly hosts?: number | undefined;
  readonly calls: readonly Call[];
  readonly faults: readonly Fault[];
  /** After a failure: recover() in place of shrink(). */
  readonly recovers: boolean;
}

/** Draws a job; `ranks` and `faults` can be given. */
export function drawJob(random: Random, seed: number, ranks?: number, faults?: readonly Fault[]): Job {
  const nRanks = ranks ?? random.integer(2, 6);
  const calls = Array.from({ length: random.integer(1, 20) }, () => ({
    kind: random.of(kinds),
    count: random.of([1, 7, 100, 1000, random.chance(0.1) ? 40_000 : 20]),
    pauseMs: random.chance(0.3) ? random.integer(0, 200) : 0,
  }));
  const recovers = random.chance(0.5);
  const drawn = faults ?? drawFaults(random, nRanks, calls.length);
  return { seed, nRanks, hosts: random.of([1, 2, nRanks]), calls, faults: drawn, recovers };
}

/** The host of a rank. Ranks are on consecutive hosts in blocks. */
export function hostOf({ hosts = 1, nRanks }: Pick<Job, 'hosts' | 'nRanks'>, rank: number): number {
  return Math.floor((rank * Math.min(hosts, nRanks)) / nRanks);
}

/** Pairs of ranks whose way a partition closes: those of two hosts, or two ranks of one host that have their own addresses. */
export function waysOf(job: Job, { from, to }: Extract<Fault, { readonly kind: 'partition' }>): (readonly [number, number])[] {
  if (hostOf(job, from) === hostOf(job, to)) return [[from, to]];
  const ranks = Array.from({ length: job.nRanks }, (_, rank) => rank);
  const along = (one: number): number[] => ranks.filter((rank) => hostOf(job, rank) === hostOf(job, one));
  return along(from).flatMap((one) => along(to).map((other) => [one, other] as const));
}

function drawFaults(random: Random, nRanks: number, calls: number): Fault[] {
  const faults: Fault[] = [];
  while (faults.length < 3 && random.chance(faults.length === 0 ? 0.8 : 0.3)) {
    const rank = random.integer(0, nRanks);
    const to = (rank + random.integer(1, nRanks)) % nRanks;
    const atMs = random.integer(100, 900);
    faults.push(
      random.of<Fault>([
        { kind: 'crash', rank, atMs },
        { kind: 'stop', rank, atMs, forMs: random.of([50, 2000, 15_000, 60_000]) },
        { kind: 'slow', rank, atMs, factor: random.of([10, 1000]) },
        { kind: 'late', rank, byMs: random.of([500, 5000, 60_000]) },
        { kind: 'odd call', rank, call: random.integer(0, calls), makes: random.of([undefined, ...kinds]) },
        { kind: 'partition', from: rank, to, bothWays: random.chance(0.7), atMs, forMs: random.of([100, 1000, 1e9]) },
        { kind: 'reset', atMs },
        { kind: 'stranger', atMs, bytes: random.of([0, 3, 500]), stays: random.chance(0.5) },
      ]),
    );
  }
  return faults;
}
