import type { Environment } from '../../simulate/environment.js';
import type { Simulator } from '../../simulate/simulate.js';
import { choose, chooseWay } from '../../tuning/choose.js';
import { flips, type Way } from '../../tuning/flips.js';
import { type Collective, collectives } from '../../tuning/names.js';
import { predict } from '../../tuning/predict.js';
import type { Tuning } from '../../tuning/tune.js';
import type { TunerRow } from './row.js';

/** Result for one size. */
export interface TunedSize {
  readonly bytes: number;
  readonly way: Way;
  readonly timeUs: number;
  /** NCCL's choice. */
  readonly own: Way;
  readonly ownUs: number;
}

/** A row and its reason. */
export interface MadeRow extends TunerRow {
  /** The sizes in its range that were tried, ascending. */
  readonly tried: readonly TunedSize[];
}

/** Options of a table. */
interface MakeOptions {
  readonly environment?: Environment;
  /**
   * Relative gain in time from which a row differs from NCCL's choice. Default: a tenth, and more where predictions are less
   * certain.
   */
  readonly gain?: number;
  readonly onProgress?: (collective: Collective, bytes: number) => void;
}

/** The smallest and the largest size that is tried; the first and the last row include all sizes beyond. */
const LEAST_BYTES = 2 ** 10;
const MOST_BYTES = 2 ** 33;
const STEP = 4;
/** Candidates that NCCL believes to be this many times slower are not tried. */
const HOPELESS = 6;
const LEAST_GAIN = 0.1;

/**
 * A row for every size of every collective, because a call without a row runs on one channel: NCCL's own choice, or a candidate
 * that is predicted to be faster by `gain`.
 *
 *     makeTunerTable(simulatorOf(prepared, parameters, plan, tuning), tuning)
 */
export function makeTunerTable(simulator: Simulator, tuning: Tuning, options: MakeOptions = {}): MadeRow[] {
  return collectives.flatMap((collective) => rowsOf(collective, simulator, tuning, options));
}

function rowsOf(
  collective: Collective,
  simulator: Simulator,
  tuning: Tuning,
  { environment, gain, onProgress }: MakeOptions,
): MadeRow[] {
  const call = environment === undefined ? {} : { environment };
  const rows: MadeRow[] = [];
  const starts = startsOf(collective, tuning);
  for (const [index, start] of starts.entries()) {
    const bytes = Math.max(start, LEAST_BYTES);
    onProgress?.(collective, bytes);
    const own = choose(tuning, collective, bytes);
    if (own === undefined) continue;
    const ownUs = simulator.simulate(collective, bytes, { ...call, choice: own })?.timeUs;
    if (ownUs === undefined) continue;
    const needed = gain ?? certainGain(collective, bytes, simulator);
    let way: Way = own;
    let least = ownUs;
    for (const { algorithm, protocol, timeUs } of predict(tuning, collective, bytes)) {
      if (timeUs === null || timeUs > HOPELESS * own.timeUs) continue;
      if (algorithm === own.algorithm && protocol === own.protocol) continue;
      const choice = chooseWay(tuning, collective, bytes, { algorithm, protocol });
      if (choice === undefined) continue;
      const tried = simulator.simulate(collective, bytes, { ...call, choice })?.timeUs ?? Infinity;
      if (tried >= least || tried > ownUs * (1 - needed)) continue;
      way = { algorithm, protocol };
      least = tried;
    }
    const next = starts[index + 1];
    const maxBytes = next === undefined ? Infinity : next - 1;
    const tried: TunedSize = {
      bytes,
      way: { algorithm: way.algorithm, protocol: way.protocol },
      timeUs: least,
      own: { algorithm: own.algorithm, protocol: own.protocol },
      ownUs,
    };
    const last = rows.at(-1);
    if (last !== undefined && isSame(last, way)) rows[rows.length - 1] = { ...last, maxBytes, tried: [...last.tried, tried] };
    else rows.push({ ...rowFor(collective, way, tuning), minBytes: start, maxBytes, tried: [tried] });
  }
  return rows;
}

/** Larger than the difference of measurements and predictions: two predictions for one machine partly have the same error. */
function certainGain(collective: Collective, bytes: number, simulator: Simulator): number {
  const { least, most } = simulator.interval(collective, bytes);
  return Math.max(LEAST_GAIN, (most - least) / 2);
}

/** Starts of the ranges of sizes with one row each: the sizes that are tried, and those at which NCCL's choice changes. */
function startsOf(collective: Collective, tuning: Tuning): number[] {
  const tried: number[] = [];
  for (let bytes = LEAST_BYTES * STEP; bytes <= MOST_BYTES; bytes *= STEP) tried.push(bytes);
  const own = flips(tuning, collective, LEAST_BYTES, MOST_BYTES).map(({ bytes }) => bytes);
  return [...new Set([0, ...tried, ...own])].sort((a, b) => a - b);
}

function rowFor(
  collective: Collective,
  { algorithm, protocol }: Way,
  { input }: Tuning,
): Omit<TunerRow, 'minBytes' | 'maxBytes'> {
  return {
    collective,
    algorithm,
    protocol,
    nChannels: 0,
    nNodes: input.nNodes,
    nRanks: input.nRanks,
    nOperations: -1,
    registered: -1,
  };
}

function isSame(a: Way, b: Way): boolean {
  return a.algorithm === b.algorithm && a.protocol === b.protocol;
}

/** True if the row of a tried size differs from NCCL's choice. */
export function isChanged({ way, own }: TunedSize): boolean {
  return !isSame(way, own);
}
