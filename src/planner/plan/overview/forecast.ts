import { busFactor, type Choice, choose } from '../../tuning/choose.js';
import { type Flip, flips } from '../../tuning/flips.js';
import type { Collective } from '../../tuning/names.js';
import type { Tuning } from '../../tuning/tune.js';

/** NCCL's choice and time for a collective, by size. */
export interface Forecast {
  readonly collective: Collective;
  /** Bus bandwidth by algorithm bandwidth. */
  readonly busFactor: number;
  readonly rows: readonly ForecastRow[];
  /** The sizes between the first and the last at which the choice changes. */
  readonly flips: readonly Flip[];
}

/** NCCL's choice for a call of `bytes` bytes. */
export interface ForecastRow {
  readonly bytes: number;
  /** Undefined where NCCL has no candidate and fails the call. */
  readonly choice: Choice | undefined;
}

/** The most frequently used ones first. */
const mostWantedFirst: readonly Collective[] = ['AllReduce', 'AllGather', 'ReduceScatter', 'Broadcast', 'Reduce'];

/** For all collectives that NCCL has a model for. @param sizes ascending */
export function forecast(tuning: Tuning, sizes: readonly number[]): Forecast[] {
  const [least = 1, most = least] = [sizes[0], sizes.at(-1)];
  return mostWantedFirst.map((collective) => ({
    collective,
    busFactor: busFactor(collective, tuning.input.nRanks),
    rows: sizes.map((bytes) => ({ bytes, choice: choose(tuning, collective, bytes) })),
    flips: flips(tuning, collective, least, most),
  }));
}

/** Default sizes of a table: 1 KiB to 16 GiB by eight. */
export const usualSizes: readonly number[] = powers(2 ** 10, 2 ** 34, 8);

/** Sizes close enough for a curve between two. */
export function curveSizes(least: number, most: number): number[] {
  return powers(least, most, Math.SQRT2).map(Math.round);
}

function powers(least: number, most: number, factor: number): number[] {
  const count = Math.floor(Math.log(most / least) / Math.log(factor) + 1e-9);
  const sizes = Array.from({ length: count + 1 }, (_, step) => least * factor ** step);
  return sizes.at(-1) === most ? sizes : [...sizes, most];
}
