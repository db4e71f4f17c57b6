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
export interface Reports<Start extends unknown[], Head, Row, End extends unknown[]> {
  start(...start: Start): void;
  progress(done: number, total: number, head: Head): void;
  row(row: Row): void;
  end(...end: End): void;
}

/** Receiver of the results of nccl-tests' benchmarks. */
export type Reporter = Reports<[nRanks: number, devices: readonly string[]], RowHead, Row, [summary: Summary]>;

/** Reporter of nothing, of any kind. */
export const silent = { start: () => undefined, progress: () => undefined, row: () => undefined, end: () => undefined };

/** Reports to several reporters. */
export function all<Start extends unknown[], Head, Row, End extends unknown[]>(
  reporters: readonly Reports<Start, Head, Row, End>[],
): Reports<Start, Head, Row, End> {
  return {
    start: (...start) => reporters.forEach((reporter) => reporter.start(...start)),
    progress: (...progress) => reporters.forEach((reporter) => reporter.progress(...progress)),
    row: (row) => reporters.forEach((reporter) => reporter.row(row)),
    end: (...end) => reporters.forEach((reporter) => reporter.end(...end)),
  };
}

/** nccl-tests' table. */
export function tableReporter(options: PerfOptions, version: string, write: (text: string) => void): Reporter {
  return {
    ...silent,
    start: (nRanks, devices) => write(formatHeader(options, version, nRanks, devices)),
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
    ...silent,
    start: (nRanks) => {
      ranks = nRanks;
    },
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

/** Shows the current measurement on a progress line. @param textOf describes it */
export function progressOn<Head>(
  line: { update(text: string): void; done(): void },
  textOf: (head: Head) => string,
): Reports<[], Head, unknown, []> {
  return {
    start: () => line.done(),
    progress: (done, total, head) => line.update(`${done}/${total} measuring ${textOf(head)} …`),
    row: () => line.done(),
    end: () => line.done(),
  };
}

/** Text for a size of a benchmark of nccl-tests. */
export const describeHead = ({ bytes, type, operator }: RowHead): string =>
  `${formatSize(bytes)} ${type}${operator === 'none' ? '' : ` ${operator}`}`;

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
