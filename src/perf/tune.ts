import { availableParallelism } from 'node:os';
import type { CallKind } from '../runtime/algorithms/call.js';
import { carriesOut } from '../runtime/algorithms/traits.js';
import { defaultTable, rangesText } from '../runtime/algorithms/choose-algorithm.js';
import { machineName, tableOf, type Profile, type Times } from '../runtime/algorithms/profile.js';
import { timedCells, type TimingOptions, type AlgorithmTime } from './algorithm-times.js';
import { launchTiming } from './algorithm-times-launch.js';
import { sweep } from './sizes.js';

interface TuneOptions {
  readonly ranks: readonly number[];
  /** Largest size, bytes; at least SMALLEST_BYTES. */
  readonly maxBytes: number;
  /** Called after each collective and size. */
  readonly onProgress: (done: number, total: number, last: AlgorithmTime) => void;
}

/** Smallest measured size; smaller calls take as long. */
export const SMALLEST_BYTES = 8;
/** Long enough for stable medians, short enough for two minutes in all. */
const ROUNDS = 4;
const TURN_MS = 6;
/** Number of repetitions of each comparison, against disturbances of some seconds and placements of ranks. */
const PASSES = 2;

/**
 * Measures all algorithms for all collectives on this host, in comparisons among each number of ranks, of which the lowest times
 * count.
 */
export async function tune({ ranks, maxBytes, onProgress }: TuneOptions): Promise<Profile> {
  const options: TimingOptions = { sizes: tunedSizes(maxBytes), rounds: ROUNDS, turnMs: TURN_MS, withChoice: false };
  const total = PASSES * ranks.reduce((sum, count) => sum + timedCells(count, options.sizes).length, 0);
  const results: AlgorithmTime[] = [];
  const cells = new Set<string>();
  for (let pass = 0; pass < PASSES; pass++) {
    for (const count of ranks) {
      await launchTiming(count, options, (result) => {
        results.push(result);
        cells.add(JSON.stringify([pass, result.kind, result.ranks, result.size]));
        onProgress(cells.size, total, result);
      });
    }
  }
  return {
    format: 'tccl profile',
    formatVersion: 1,
    machine: machineName(),
    cores: availableParallelism(),
    times: timesOf(results),
  };
}

/** Sizes that are measured, bytes: from the smallest on in steps of eight, and the largest, whether a step ends there or not. */
export function tunedSizes(maxBytes: number): number[] {
  const sizes = sweep(SMALLEST_BYTES, maxBytes, { kind: 'factor', factor: 8 });
  return sizes.at(-1) === maxBytes ? sizes : [...sizes, maxBytes];
}

/** By number of ranks, kind and algorithm: the lowest times of several passes, in each of which results ascend in size. */
export function timesOf(results: readonly AlgorithmTime[]): Record<string, Times> {
  const times: Record<string, Times> = {};
  for (const { ranks, kind, algorithm, bytes, us: exact } of results) {
    const us = Number(exact.toPrecision(4));
    const byKind = times[ranks];
    const points = byKind?.[kind]?.[algorithm] ?? [];
    const before = points.find(([size]) => size === bytes);
    const now =
      before === undefined
        ? [...points, [bytes, us] as const]
        : points.map((point) => (point === before ? ([bytes, Math.min(us, before[1])] as const) : point));
    times[ranks] = { ...byKind, [kind]: { ...byKind?.[kind], [algorithm]: now } };
  }
  return times;
}

/** Choices that a profile changes, a line for each collective and number of ranks. */
export function changesBy({ times }: Profile): string[] {
  return Object.entries(times).flatMap(([ranks, measured]) => {
    const nRanks = Number(ranks);
    const usual = defaultTable({ nRanks, oneSegment: true, forced: undefined });
    const table = tableOf(measured, usual, (algorithm, kind) => carriesOut(algorithm, kind, nRanks));
    return (Object.keys(table) as CallKind[])
      .map((kind) => [kind, rangesText(table[kind]), rangesText(usual[kind])])
      .flatMap(([kind, now, before]) => (now === before ? [] : [`${kind} of ${ranks} ranks: ${now}`]));
  });
}

/**
 * Warning about other programs that used the machine during the measurement: their effect is in the profile, too.
 *
 * @param load programs that ran on average in the last minute
 */
export function busyNote(load: number, cores: number): string | undefined {
  if (load < cores / 2) return undefined;
  return `in the minute before ${load.toFixed(1)} programs ran on average, on ${cores} ${cores === 1 ? 'core' : 'cores'}: their load distorts the profile; measure again when the machine is quiet`;
}
