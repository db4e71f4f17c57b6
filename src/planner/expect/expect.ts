import { TcclError } from '../../errors.js';
import { type ChangeableCluster, changedCluster } from '../plan/changed-cluster.js';
import { prepareCluster } from '../plan/cluster.js';
import { scheduledBusFactor, simulatorOf } from '../plan/prediction.js';
import type { ScheduledCollective } from '../schedule/schedule.js';
import { defaultEnvironment, type Environment } from '../simulate/environment.js';
import { sizeClasses, sizeClassOf } from '../simulate/measured-calls.js';
import type { Simulator } from '../simulate/simulate.js';
import type { Hypothesis } from './hypotheses.js';
import type { ResultRow, Results } from './measured.js';

/** Place of a time in its bounds; `undecided` within them, but above those where calls like this one were measured. */
export type Verdict = 'expected' | 'slow' | 'fast' | 'undecided';

/** A measured time beside the expected one. */
export interface ExpectedRow extends ResultRow {
  readonly expectedUs: number;
  /** Bounds between which eight of ten measurements lie. */
  readonly leastUs: number;
  readonly mostUs: number;
  /** The bounds where calls like this one were measured. */
  readonly usualLeastUs: number;
  readonly usualMostUs: number;
  /** True if calls like this one were measured. */
  readonly isMeasured: boolean;
  readonly verdict: Verdict;
  /** Bus bandwidths, GB/s. */
  readonly busGBps: number;
  readonly expectedGBps: number;
}

/** A table of results beside the expected times. */
export interface ExpectedTable {
  readonly collective: ScheduledCollective;
  readonly environment: Environment;
  readonly rows: readonly ExpectedRow[];
  /** Properties of the calls and the cluster that no measurement had, for which the bounds are wider. */
  readonly unmeasured: readonly string[];
  /**
   * True if most rows of small, middle or large sizes are surely slow, as one healthy cluster in forty is, or if three rows
   * in succession take twice the longest expected time. A single slow row may be an outlier.
   */
  readonly isSlow: boolean;
  /** True if it is not, though most rows of such a class are slow, or would be if calls like these had been measured. */
  readonly isUndecided: boolean;
}

/**
 * Distance, as a power of the factor for one in ten, beyond which one measurement in forty lies (normal distribution). The rows
 * of a table deviate together, so many slow rows are no surer than one.
 */
const SURELY = 1.5;

/** The environment with the launch mode of the run. */
export function environmentOf({ run }: Results, given: Environment = defaultEnvironment): Environment {
  return { ...given, launch: run.isGraph ? 'graph' : given.launch, gpusPerThread: run.gpusPerThread };
}

/** Simulates every row of a table. */
export function expectTable(results: Results, simulator: Simulator, environment = environmentOf(results)): ExpectedTable {
  const { collective } = results;
  const unmeasured = new Set<string>();
  const rows = results.rows.flatMap((row): ExpectedRow[] => {
    const simulated = simulator.simulate(collective, row.bytes, { environment, dataType: row.type, onWindows: true });
    if (simulated === undefined) return [];
    const { timeUs: expectedUs, kernel } = simulated;
    const interval = simulator.interval(collective, row.bytes, environment, kernel !== undefined);
    const { least, most, usual } = interval;
    for (const each of interval.unmeasured) unmeasured.add(each);
    const gbps = (timeUs: number) => (row.bytes / timeUs / 1000) * scheduledBusFactor(collective, simulator.nRanks);
    const bounds = { leastUs: expectedUs * least, mostUs: expectedUs * most, usualMostUs: expectedUs * usual.most };
    return [
      {
        ...row,
        expectedUs,
        ...bounds,
        usualLeastUs: expectedUs * usual.least,
        isMeasured: interval.unmeasured.length === 0,
        verdict: verdictOf(row.timeUs, bounds),
        busGBps: gbps(row.timeUs),
        expectedGBps: gbps(expectedUs),
      },
    ];
  });
  const isSlow = isMostly(rows, isSurelySlow) || inSuccession(rows, isFarSlower) >= FAR_SLOWER_ROWS;
  const isUndecided = !isSlow && isMostly(rows, isLate);
  return { collective, environment, rows, unmeasured: [...unmeasured], isSlow, isUndecided };
}

/** The verdict on one time. */
export function verdictOf(
  timeUs: number,
  { leastUs, mostUs, usualMostUs }: Pick<ExpectedRow, 'leastUs' | 'mostUs' | 'usualMostUs'>,
): Verdict {
  return timeUs > mostUs ? 'slow' : timeUs > usualMostUs ? 'undecided' : timeUs < leastUs ? 'fast' : 'expected';
}

function isSurelySlow({ timeUs, expectedUs, mostUs }: ExpectedRow): boolean {
  return timeUs > expectedUs * (mostUs / expectedUs) ** SURELY;
}

/** Multiple of the longest expected time that no error of the prediction explains, and rows of it that are no outliers. */
const FAR_SLOWER = 2;
const FAR_SLOWER_ROWS = 3;

function isFarSlower({ timeUs, mostUs }: ExpectedRow): boolean {
  return timeUs > FAR_SLOWER * mostUs;
}

/** @returns the most rows in succession for which it holds */
function inSuccession(rows: readonly ExpectedRow[], holds: (row: ExpectedRow) => boolean): number {
  let most = 0;
  let count = 0;
  for (const row of rows) {
    count = holds(row) ? count + 1 : 0;
    most = Math.max(most, count);
  }
  return most;
}

/** @returns whether a row is slow, or would be if calls like it had been measured */
export function isLate({ verdict }: Pick<ExpectedRow, 'verdict'>): boolean {
  return verdict === 'slow' || verdict === 'undecided';
}

/** Part of the shortest expected time below which a measurement cannot be of the cluster as it is described. */
const TOO_FAST = 2 / 3;

/** @returns whether a row is too fast for the cluster, not only faster than the simulation has it */
export function isTooFast({ timeUs, leastUs }: ExpectedRow): boolean {
  return timeUs < TOO_FAST * leastUs;
}

/** @returns whether most rows of small, middle or large sizes are too fast: then the results are of another cluster */
export function isOfAnother({ rows }: ExpectedTable): boolean {
  return isMostly(rows, isTooFast);
}

/** @returns whether it holds for most rows of small, middle or large sizes */
function isMostly(rows: readonly ExpectedRow[], holds: (row: ExpectedRow) => boolean): boolean {
  return sizeClasses.some((size) => {
    const some = rows.filter(({ bytes }) => sizeClassOf(bytes) === size);
    return 2 * some.filter(holds).length > some.length;
  });
}

/** A hypothesis, simulated. */
export interface TriedHypothesis {
  readonly hypothesis: Hypothesis;
  /** Deviation of the measurements from it: mean of the logarithms' absolute values. */
  readonly error: number;
  /** Their mean distance from its intervals, counted in the same way; these are those where calls like them were measured. */
  readonly outside: number;
  /** Slow and undecided rows that match it. */
  readonly explained: number;
  /** True if it takes clearly longer than was measured, at most sizes of a class or at the highest bandwidth. */
  readonly isContradicted: boolean;
  /** Times of the compared rows under it, by table. */
  readonly timesUs: readonly (readonly number[])[];
  /** Reason why it cannot be simulated. */
  readonly refused: string | undefined;
}

/** Number of rows of a table that hypotheses are compared by, evenly spread. */
const MOST_COMPARED = 12;

/** The rows of a table by which hypotheses are compared. */
export function comparedRows({ rows }: ExpectedTable): readonly ExpectedRow[] {
  if (rows.length <= MOST_COMPARED) return rows;
  const wanted = new Set(
    Array.from({ length: MOST_COMPARED }, (_, index) => Math.round((index * (rows.length - 1)) / (MOST_COMPARED - 1))),
  );
  return rows.filter((_, index) => wanted.has(index));
}

/** Deviation of the tables' rows without a hypothesis, counted as {@link TriedHypothesis.error}. */
export function errorOf(tables: readonly ExpectedTable[]): number {
  return meanOf(tables.flatMap((table) => comparedRows(table).map((row) => Math.abs(Math.log(row.timeUs / row.expectedUs)))));
}

/** A mean of logarithms as a percentage. */
export function percent(error: number): string {
  return `${(100 * Math.expm1(error)).toFixed(0)} %`;
}

/** Plans and simulates the cluster under one hypothesis. */
export function tryHypothesis(
  input: ChangeableCluster,
  tables: readonly ExpectedTable[],
  hypothesis: Hypothesis,
): TriedHypothesis {
  try {
    const { cluster, parameters } = changedCluster(input, hypothesis);
    const { graphFile } = input;
    const prepared = prepareCluster(cluster, parameters, graphFile === undefined ? {} : { graphFile });
    const simulator = simulatorOf(prepared, parameters);
    let explained = 0;
    const errors: number[] = [];
    const outside: number[] = [];
    let isContradicted = false;
    const timesUs = tables.map((table) => {
      const environment = { ...table.environment, ...hypothesis.simulated };
      const impossible = new Set<ExpectedRow>();
      const rows = comparedRows(table);
      const times = rows.map((row) => {
        const { bytes, type, timeUs } = row;
        const simulated = simulator.simulate(table.collective, bytes, { environment, dataType: type, onWindows: true });
        const then = simulated?.timeUs ?? Infinity;
        errors.push(Math.abs(Math.log(timeUs / then)));
        const isOnWindows = simulated?.kernel !== undefined;
        const { least, most } = simulator.interval(table.collective, bytes, environment, isOnWindows).usual;
        const beyond = Math.max(0, Math.log(timeUs / then / most), Math.log((then * least) / timeUs));
        outside.push(beyond);
        if (isLate(row) && beyond === 0) explained++;
        if (timeUs < then * least) impossible.add(row);
        return then;
      });
      const fastest = rows.reduce<ExpectedRow | undefined>(
        (a, b) => (a !== undefined && a.busGBps > b.busGBps ? a : b),
        undefined,
      );
      isContradicted ||= isMostly(rows, (row) => impossible.has(row)) || (fastest !== undefined && impossible.has(fastest));
      return times;
    });
    return {
      hypothesis,
      error: meanOf(errors),
      outside: meanOf(outside),
      explained,
      isContradicted,
      timesUs,
      refused: undefined,
    };
  } catch (error) {
    if (!(error instanceof TcclError)) throw error;
    return {
      hypothesis,
      error: Infinity,
      outside: Infinity,
      explained: 0,
      isContradicted: true,
      timesUs: [],
      refused: error.message,
    };
  }
}

/** Least part of the error that an explanation removes. */
const LEAST_GAIN = 0.25;
/** Among hypotheses that put the rows into the intervals, the error decides. */
const ERROR_WEIGHT = 0.25;

/**
 * The hypotheses that explain the results and do not contradict them, the best first; of each family the best.
 *
 * @param error without any of them
 */
export function ranked(tried: readonly TriedHypothesis[], error: number): TriedHypothesis[] {
  return bestFirst(tried.filter((each) => !each.isContradicted && each.error < (1 - LEAST_GAIN) * error));
}

/** Hypotheses by how well they explain the results, the best first; of each family the best. */
export function bestFirst(tried: readonly TriedHypothesis[]): TriedHypothesis[] {
  const families = new Set<string>();
  return [...tried]
    .sort((a, b) => a.outside + ERROR_WEIGHT * a.error - b.outside - ERROR_WEIGHT * b.error)
    .filter(({ hypothesis: { family } }) => !families.has(family) && families.add(family));
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}
