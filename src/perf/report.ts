import { closeSync, openSync, writeSync } from 'node:fs';
import { describeError, SystemError } from '../errors.js';
import type { PerfOptions } from './options.js';
import { formatSize } from './sizes.js';
import {
  formatFooter,
  formatHeader,
  formatRowHalf,
  formatRowHead,
  formatShortest,
  type Measurement,
  type RowHead,
} from './table.js';

/** One measured row. */
interface Row extends RowHead {
  readonly outOfPlace: Measurement;
  /** Undefined if the collective has no in-place form. */
  readonly inPlace: Measurement | undefined;
}

export interface Summary {
  /** Halves with a wrong element. */
  readonly errors: number;
  readonly averageBusbwGBps: number;
}

/** Receiver of the results on rank 0. The other ranks report nothing. */
export interface Reporter {
  start(nRanks: number, devices: readonly string[]): void;
  progress(done: number, total: number, head: RowHead): void;
  row(row: Row): void;
  end(summary: Summary): void;
}

export const silent: Reporter = { start: () => undefined, progress: () => undefined, row: () => undefined, end: () => undefined };

/** Reports to several reporters. */
export function all(reporters: readonly Reporter[]): Reporter {
  return {
    start: (nRanks, devices) => reporters.forEach((reporter) => reporter.start(nRanks, devices)),
    progress: (done, total, head) => reporters.forEach((reporter) => reporter.progress(done, total, head)),
    row: (row) => reporters.forEach((reporter) => reporter.row(row)),
    end: (summary) => reporters.forEach((reporter) => reporter.end(summary)),
  };
}

/** nccl-tests' table. */
export function tableReporter(options: PerfOptions, version: string, write: (text: string) => void): Reporter {
  return {
    start: (nRanks, devices) => write(formatHeader(options, version, nRanks, devices)),
    progress: () => undefined,
    row: (row) =>
      write(
        `${formatRowHead(row)}${formatRowHalf(row.outOfPlace)}${formatRowHalf(row.inPlace)}${formatShortest(row.outOfPlace, row.inPlace)}\n`,
      ),
    end: ({ errors, averageBusbwGBps }) => write(formatFooter(options.collective.name, errors, averageBusbwGBps)),
  };
}

/**
 * JSON lines: one object a half of a row, with the names that the bench's programs use, and a last one with the
 * summary. docs/reference/perf.md describes the fields.
 */
export function jsonReporter(options: PerfOptions, write: (text: string) => void): Reporter {
  let ranks = 0;
  const line = (row: Row, inplace: 0 | 1, half: Measurement) =>
    write(
      `${JSON.stringify({
        lib: 'tccl',
        coll: options.collective.name,
        type: row.type,
        op: row.operator,
        root: row.root,
        ranks,
        bytes: row.bytes,
        count: row.count,
        inplace,
        calls: half.iterations,
        api: options.api,
        memory: options.memory,
        time_us: rounded(half.timeUs),
        min_us: rounded(half.shortestUs),
        algbw_GBps: rounded(half.algbwGBps),
        busbw_GBps: rounded(half.busbwGBps),
        wrong: half.wrong ?? null,
      })}\n`,
    );
  return {
    start: (nRanks) => {
      ranks = nRanks;
    },
    progress: () => undefined,
    row: (row) => {
      line(row, 0, row.outOfPlace);
      if (row.inPlace !== undefined) line(row, 1, row.inPlace);
    },
    end: ({ errors, averageBusbwGBps }) =>
      write(
        `${JSON.stringify({ summary: options.collective.name, ranks, errors, avg_busbw_GBps: rounded(averageBusbwGBps) })}\n`,
      ),
  };
}

/** Shows the current measurement on a progress line. */
export function progressReporter(line: { update(text: string): void; done(): void }): Reporter {
  return {
    start: () => line.done(),
    progress: (done, total, { bytes, type, operator }) =>
      line.update(`${done}/${total} measuring ${formatSize(bytes)} ${type}${operator === 'none' ? '' : ` ${operator}`} …`),
    row: () => line.done(),
    end: () => line.done(),
  };
}

/**
 * A function that appends to a new file, and closes it with the process. Both throw SystemError `FILE` where that cannot be
 * written.
 */
export function fileWriter(path: string): (text: string) => void {
  const orFail = <T>(write: () => T): T => {
    try {
      return write();
    } catch (cause) {
      throw new SystemError('FILE', `the results cannot be written here: ${describeError(cause)}`, { file: path, cause });
    }
  };
  const file = orFail(() => openSync(path, 'w'));
  process.once('exit', () => closeSync(file));
  return (text) => orFail(() => writeSync(file, text));
}

/** Six significant digits exceed the precision of any timing. */
const rounded = (value: number): number => Number(value.toPrecision(6));
