import { InvalidArgumentError } from '../errors.js';
import { didYouMean } from '../suggest.js';
import { type Collective, collectives } from './collectives.js';
import { benchmarks } from './mpi/benchmarks.js';
import { parseSize, type Step, sweep } from './sizes.js';
import { type ElementType, elementTypes, type PerfOperator, perfOperators } from './types.js';

/** Ranks whose time is reported; nccl-tests' numbers 0 to 3. */
export const averages = ['rank0', 'avg', 'min', 'max'] as const;
export type Average = (typeof averages)[number];

/** Options of one run of perf. */
export interface PerfOptions {
  readonly collective: Collective;
  readonly sizes: readonly number[];
  readonly step: Step;
  readonly types: readonly ElementType[];
  /** `undefined` where the collective doesn't reduce. */
  readonly operators: readonly (PerfOperator | undefined)[];
  /** A rank, or -1 for each in turn. */
  readonly root: number;
  /** Timed iterations of each half of a row; undefined: by time, at least {@link leastIterations}. */
  readonly iterations: number | undefined;
  /** Iterations before the clock starts; undefined: by time, in rounds of {@link defaultWarmup}. */
  readonly warmup: number | undefined;
  /** Calls that are started together in each iteration. */
  readonly aggregate: number;
  /** Verified calls a row. */
  readonly checks: number;
  readonly average: Average;
  /**
   * nccl-tests' -z. 0: the calls of an iteration do not wait for each other (blocking calls always do); 1: a barrier after each
   * call, in the time; 3: a barrier after each iteration, not in the time.
   */
  readonly blocking: number;
  readonly api: 'sync' | 'promise';
  readonly memory: 'shared' | 'plain';
}

/** The options as the command line gives them: text where a value follows. */
export interface RawOptions {
  readonly minbytes: string;
  readonly maxbytes: string;
  readonly stepbytes: string;
  readonly stepfactor: string;
  readonly iters?: string;
  readonly warmup_iters?: string;
  readonly agg_iters: string;
  readonly check: string;
  readonly op: string;
  readonly datatype: string;
  readonly root: string;
  readonly average: string;
  readonly blocking: string;
  readonly api: string;
  readonly memory: string;
}

/**
 * Parses the command line.
 *
 * @throws InvalidArgumentError `UNKNOWN_NAME` or `ARGUMENT_RANGE`
 */
export function perfOptions(collectiveName: string, raw: RawOptions): PerfOptions {
  const collective = collectives.find(({ name }) => name === collectiveName) ?? unknownBenchmark(collectiveName);
  const factor = wholeNumber('--stepfactor', raw.stepfactor, 1);
  const step =
    factor > 1
      ? ({ kind: 'factor', factor } as const)
      : ({ kind: 'bytes', bytes: parseSize(raw.stepbytes, '--stepbytes') } as const);
  return {
    collective,
    sizes: sweep(parseSize(raw.minbytes, '--minbytes'), parseSize(raw.maxbytes, '--maxbytes'), step),
    step,
    types: raw.datatype === 'all' ? elementTypes : [named('datatype', raw.datatype, elementTypes)],
    operators: !collective.reduces
      ? [undefined]
      : raw.op === 'all'
        ? perfOperators
        : [oneOf('operator', raw.op, perfOperators, ['all'])],
    root: wholeNumber('--root', raw.root, -1),
    iterations: raw.iters === undefined ? undefined : wholeNumber('--iters', raw.iters, 1),
    warmup: raw.warmup_iters === undefined ? undefined : wholeNumber('--warmup_iters', raw.warmup_iters, 0),
    aggregate: wholeNumber('--agg_iters', raw.agg_iters, 1),
    checks: wholeNumber('--check', raw.check, 0),
    average: averages[wholeNumber('--average', raw.average, 0, 3)] ?? 'avg',
    blocking: wholeNumber('--blocking', raw.blocking, 0, 3),
    api: oneOf('--api', raw.api, ['sync', 'promise'] as const),
    memory: oneOf('--memory', raw.memory, ['shared', 'plain'] as const),
  };
}

/** @throws InvalidArgumentError `ROOT_RANGE` if the root is no rank */
export function checkRoot({ root }: PerfOptions, nRanks: number): void {
  if (root < nRanks) return;
  throw new InvalidArgumentError(
    'ROOT_RANGE',
    `--root ${root} is not a rank: there are ${nRanks}, from 0 to ${nRanks - 1} (-1 for each in turn)`,
  );
}

/** The number of calls that move 16 MiB, between 20 and 1000: small sizes need many calls because of the clock's resolution. */
export const leastIterations = (bytes: number): number => callsMoving16MiB(bytes, 20);

/** As {@link leastIterations}, at least 2: V8 compiles a path when it has been called some hundred times. */
export const defaultWarmup = (bytes: number): number => callsMoving16MiB(bytes, 2);

function callsMoving16MiB(bytes: number, atLeast: number): number {
  return Math.max(atLeast, Math.min(1000, Math.floor(2 ** 24 / Math.max(1, bytes))));
}

/** A whole number as an option's value. @throws InvalidArgumentError `ARGUMENT_RANGE` */
export function wholeNumber(flag: string, text: string, min: number, max = Number.MAX_SAFE_INTEGER): number {
  const value = /^[+-]?\d+$/.test(text.trim()) ? Number(text) : NaN;
  if (value >= min && value <= max) return value;
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  throw new InvalidArgumentError('ARGUMENT_RANGE', `${flag} '${text}' must be a whole number ${range}`);
}

function named<Item extends { readonly name: string }>(kind: string, name: string, items: readonly Item[]): Item {
  const item = items.find((one) => one.name === name);
  if (item !== undefined) return item;
  return unknownName(
    kind,
    name,
    items.map((one) => one.name),
    kind === 'datatype' ? ['all'] : [],
  );
}

function unknownBenchmark(name: string): never {
  const all = collectives.map((one) => one.name);
  const hint =
    didYouMean(name, [...all, ...benchmarks.map((one) => one.name)]) ||
    `; there are ${all.join(', ')}, and benchmarks of OSU and IMB, such as osu_latency and PingPong`;
  throw new InvalidArgumentError('UNKNOWN_NAME', `unknown collective '${name}'${hint}`);
}

function oneOf<Name extends string>(kind: string, name: string, names: readonly Name[], also: readonly string[] = []): Name {
  return names.find((one) => one === name) ?? unknownName(kind, name, names, also);
}

/** Usual names of things that have another name here. */
const meanings: Readonly<Record<string, string>> = { mean: 'avg', premulsum: 'mulsum', premulSum: 'mulsum' };

function unknownName(kind: string, name: string, names: readonly string[], also: readonly string[]): never {
  const all = [...names, ...also];
  const hint = didYouMean(meanings[name] ?? name, all) || `; there are ${all.join(', ')}`;
  throw new InvalidArgumentError('UNKNOWN_NAME', `unknown ${kind} '${name}'${hint}`);
}
