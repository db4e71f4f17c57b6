import { InvalidArgumentError, InvalidUsageError } from '../../errors.js';
import { collectives } from '../collectives.js';
import { type PerfOptions, perfOptions, type RawOptions } from '../options.js';
import { type ElementType, elementTypes } from '../types.js';
import { type Benchmark, benchmarks, defaultSizes } from './benchmarks.js';

/** Options of one benchmark. */
export interface MpiOptions extends Pick<PerfOptions, 'sizes' | 'iterations' | 'warmup' | 'api' | 'memory'> {
  readonly benchmark: Benchmark;
  readonly type: ElementType;
  readonly operator: PerfOptions['operators'][number];
}

/** Flags of nccl-tests that these benchmarks lack, by their names among the options. */
const ncclFlags: Readonly<Record<string, string>> = {
  agg_iters: '--agg_iters',
  check: '--check',
  root: '--root',
  average: '--average',
  blocking: '--blocking',
  program: '--program',
};

/** The benchmark of a name, in any case; undefined for other names, and for those of nccl-tests, such as `reduce`. */
export function benchmarkOf(name: string): Benchmark | undefined {
  if (collectives.some((one) => one.name === name)) return undefined;
  return benchmarks.find((one) => one.name.toLowerCase() === name.toLowerCase());
}

/**
 * Parses the command line.
 *
 * @param isGiven says whether the command line has an option, by its name
 * @throws InvalidArgumentError `UNKNOWN_NAME` or `ARGUMENT_RANGE`; InvalidUsageError `UNSUPPORTED` for flags of nccl-tests alone
 */
export function mpiOptions(benchmark: Benchmark, raw: RawOptions, isGiven: (option: string) => boolean): MpiOptions {
  for (const [option, flag] of Object.entries(ncclFlags))
    if (isGiven(option))
      throw new InvalidUsageError('UNSUPPORTED', `${benchmark.name} takes no ${flag}: that is of the benchmarks of nccl-tests`);
  const isSized = isGiven('minbytes') || isGiven('maxbytes');
  const stepfactor = isGiven('stepfactor') || isGiven('stepbytes') ? raw.stepfactor : '2';
  const datatype = isGiven('datatype') || benchmark.reduces ? raw.datatype : 'int8';
  const type = elementTypes.find(({ name }) => name === datatype);
  // The names of nccl-tests' table have the same checks.
  const common = perfOptions('all_reduce', {
    ...raw,
    datatype,
    stepfactor,
    ...(isSized ? {} : { minbytes: '4', maxbytes: '4' }),
    ...(isSized && !isGiven('minbytes') ? { minbytes: String(type?.bytes ?? 1) } : {}),
    ...(isSized && !isGiven('maxbytes') ? { maxbytes: String(benchmark.largest) } : {}),
  });
  const [operator] = common.operators;
  if (type === undefined || common.operators.length > 1)
    throw new InvalidArgumentError('ARGUMENT_RANGE', `${benchmark.name} measures one type and one operator, not all`);
  const { iterations, warmup, api, memory } = common;
  if (benchmark.overlaps && isGiven('api') && api === 'sync')
    throw new InvalidUsageError(
      'UNSUPPORTED',
      `${benchmark.name} computes while its calls run: blocking calls cannot (--api promise)`,
    );
  const sizes = isSized && benchmark.largest > 0 ? common.sizes : defaultSizes(benchmark, type.bytes);
  return { benchmark, type, operator, sizes, iterations, warmup, memory, api: benchmark.overlaps ? 'promise' : api };
}

/** @throws InvalidUsageError `RANK_COUNT_MISMATCH` where the benchmark is of another number of ranks */
export function checkRankCount({ name, ranks }: Benchmark, nRanks: number): void {
  if (ranks === 'two' && nRanks !== 2)
    throw new InvalidUsageError('RANK_COUNT_MISMATCH', `${name} is between two ranks, not ${nRanks}: --ranks 2`);
  if (ranks === 'even' && nRanks % 2 !== 0)
    throw new InvalidUsageError('RANK_COUNT_MISMATCH', `${name} is between pairs of ranks, and ${nRanks} is odd`);
}
