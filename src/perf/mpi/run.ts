import type { Reports } from '../report.js';
import { Buffers, gather } from '../measure.js';
import { scalarOf } from '../types.js';
import type { PairedCommunicator, Repetition, Times } from './benchmarks.js';
import { checkRankCount, type MpiOptions } from './options.js';

/** One row: the columns' values in their order. */
export interface MpiRow {
  readonly bytes: number;
  readonly repetitions: number;
  readonly values: readonly number[];
}

/** Receiver of the rows on rank 0. */
export type MpiReporter = Reports<[nRanks: number], number, MpiRow, []>;

/** Repetitions of the first size before the clock starts: V8 compiles what all sizes share, milliseconds. */
const FIRST_WARM_UP_MS = 400;
const WARM_UP_MS = 30;
/** Least time of the timed repetitions, and their number at most. */
const TIMED_MS = 100;
const MOST_REPETITIONS = 100_000;
const LEAST_REPETITIONS = 10;

/**
 * Measures a benchmark. All ranks call it with the same options.
 *
 * @throws InvalidUsageError `RANK_COUNT_MISMATCH`
 */
export async function runMpi(comm: PairedCommunicator, options: MpiOptions, reporter: MpiReporter): Promise<void> {
  const { benchmark, sizes, type, operator } = options;
  checkRankCount(benchmark, comm.nRanks);
  const countsOf = (bytes: number) => benchmark.counts(Math.floor(bytes / type.bytes), comm.nRanks);
  const most = Math.max(...sizes.map((bytes) => Math.max(countsOf(bytes).send, countsOf(bytes).recv))) * type.bytes;
  const combined = operator === 'mulsum' ? { premulSum: scalarOf(comm.rank) } : (operator ?? 'sum');
  const how = { type: type.type };
  const buffers = new Buffers(comm, options.memory, most);
  reporter.start(comm.nRanks);
  for (const [index, bytes] of sizes.entries()) {
    reporter.progress(index, sizes.length, bytes);
    const { send: sendCount, recv: recvCount } = countsOf(bytes);
    const { send, recv } = buffers.views(type, { count: sendCount, sendCount, recvCount, sendOffset: 0, recvOffset: 0 }, false);
    const part = recvCount / benchmark.atATime;
    const repetition: Repetition = {
      comm,
      send,
      recv,
      parts: Array.from({ length: benchmark.atATime }, (_, i) => recv.subarray(i * part, (i + 1) * part)),
      call: { send, recv, operator: combined, root: 0, options: how },
      type: how,
      answer: new Int32Array(1),
    };
    const { times, repetitions } = await measure(repetition, options, index === 0 ? FIRST_WARM_UP_MS : WARM_UP_MS);
    reporter.row({ bytes, repetitions, values: benchmark.columns.map((column) => column.value(times, bytes, comm.nRanks)) });
  }
  buffers.free();
  reporter.end();
}

async function measure(
  repetition: Repetition,
  options: MpiOptions,
  warmUpMs: number,
): Promise<{ readonly times: Times; readonly repetitions: number }> {
  const usualUs = await warmUp(repetition, options, warmUpMs);
  const byTime = Math.min(MOST_REPETITIONS, Math.max(LEAST_REPETITIONS, Math.ceil((TIMED_MS * 1e3) / usualUs)));
  const repetitions = options.iterations ?? byTime;
  const pure = await gathered(repetition, await timed(repetition, options, repetitions, 0));
  if (!options.benchmark.overlaps) return { times: { ...pure, pureUs: pure.meanUs, computeUs: 0 }, repetitions };
  const computeUs = pure.meanUs;
  const together = await gathered(repetition, await timed(repetition, options, repetitions, computeUs));
  return { times: { ...together, pureUs: pure.meanUs, computeUs }, repetitions };
}

/** Repeats for some time; rank 0's time of a repetition, microseconds, by which all ranks decide. */
async function warmUp(repetition: Repetition, options: MpiOptions, leastMs: number): Promise<number> {
  let repetitions = options.warmup ?? LEAST_REPETITIONS;
  if (repetitions === 0) return Infinity;
  for (let pastMs = 0; ;) {
    const [us = 0] = await gather(repetition.comm, await timed(repetition, options, repetitions, 0));
    pastMs += (us * repetitions) / 1e3;
    if (pastMs >= leastMs || options.warmup !== undefined) return us;
    repetitions = Math.min(MOST_REPETITIONS, Math.max(1, Math.ceil((leastMs / 4) * (1e3 / us))));
  }
}

/** Time of one of consecutive repetitions at this rank, microseconds. Ranks begin together, behind a barrier. */
async function timed(
  repetition: Repetition,
  { benchmark, api }: MpiOptions,
  repetitions: number,
  computeUs: number,
): Promise<number> {
  const { comm } = repetition;
  if (api === 'sync') comm.barrierSync();
  else await comm.barrier();
  const begin = performance.now();
  if (api === 'sync') for (let i = 0; i < repetitions; i++) benchmark.runSync(repetition);
  else
    for (let i = 0; i < repetitions; i++) {
      const call = benchmark.run(repetition);
      if (computeUs > 0) compute(computeUs);
      await call;
    }
  return ((performance.now() - begin) * 1e3) / repetitions;
}

function compute(us: number): void {
  const end = performance.now() + us / 1e3;
  while (performance.now() < end);
}

async function gathered(repetition: Repetition, us: number): Promise<Omit<Times, 'pureUs' | 'computeUs'>> {
  const all = await gather(repetition.comm, us);
  return { meanUs: all.reduce((sum, each) => sum + each, 0) / all.length, minUs: Math.min(...all), maxUs: Math.max(...all) };
}
