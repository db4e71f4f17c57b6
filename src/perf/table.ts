import { averages, type PerfOptions } from './options.js';

/**
 * nccl-tests' table (its src/util.cu), column by column, for scripts that read nccl-tests. All functions return whole lines with
 * their line ends, except the halves of a row.
 */

/** One timed case: out of place is a row's left half, in place its right half. */
export interface Measurement {
  readonly iterations: number;
  readonly timeUs: number;
  /** The mean of the fastest tenth of the calls. */
  readonly shortestUs: number;
  readonly algbwGBps: number;
  readonly busbwGBps: number;
  /** Of all ranks; undefined if nothing was checked. */
  readonly wrong: number | undefined;
}

export interface RowHead {
  readonly bytes: number;
  readonly count: number;
  readonly type: string;
  readonly operator: string;
  readonly root: number;
}

/** @param devices one line a rank, without its `#` */
export function formatHeader(options: PerfOptions, version: string, nRanks: number, devices: readonly string[]): string {
  const { sizes, step } = options;
  const stepText = step.kind === 'factor' ? `${step.factor}(factor)` : `${step.bytes}(bytes)`;
  const lines = [
    `# tccl perf version ${version}`,
    `# Collective test starting: ${options.collective.name}_perf`,
    `# nRanks ${nRanks} minBytes ${sizes[0] ?? 0} maxBytes ${sizes.at(-1) ?? 0} step: ${stepText}` +
      ` warmup iters: ${options.warmup ?? 'by time'} iters: ${options.iterations ?? 'by time'} agg iters: ${options.aggregate}` +
      ` validation: ${options.checks} time of: ${averages.indexOf(options.average)}(${options.average})` +
      ` api: ${options.api} arrays: ${options.memory === 'shared' ? 'alloc' : 'plain'}`,
    ...(options.blocking === 1 ? ['# Blocking Enabled: barrier after each call'] : []),
    ...(options.blocking === 2 ? ['# Blocking Enabled: wait after each call'] : []),
    ...(options.blocking === 3 ? ['# Blocking Enabled: barrier after each iteration (-n); time excludes barrier'] : []),
    '#',
    '# Using devices',
    ...devices.map((line) => `#  ${line}`),
    '#',
    columns(['', '', '', '', ''], '         out-of-place                       in-place             out-of-p  in-place'),
    columns(['size', 'count', 'type', 'redop', 'root'], `${titles('time', 'algbw', 'busbw', '#wrong')}       min      min`),
    columns(['(B)', '(elements)', '', '', ''], `${titles('(us)', '(GB/s)', '(GB/s)', '')}      (us)     (us)`),
  ];
  return `${lines.join('\n')}\n`;
}

/** The five columns that name the case. */
export function formatRowHead({ bytes, count, type, operator, root }: RowHead): string {
  return `${String(bytes).padStart(12)}  ${String(count).padStart(12)}  ${type.padStart(8)}  ${operator.padStart(6)}  ${String(root).padStart(6)}`;
}

/** The four columns of one half, or nccl-tests' text for a missing half. */
export function formatRowHalf(measured: Measurement | undefined): string {
  if (measured === undefined) return `  ${'N/A'.padStart(7)}  ${'N/A'.padStart(6)}  ${'N/A'.padStart(6)}  ${'N/A'.padStart(5)}`;
  const { timeUs, algbwGBps, busbwGBps, wrong } = measured;
  // One column short, as in nccl-tests.
  const wrongText = wrong === undefined ? '  N/A' : formatG(wrong).padStart(6);
  return `  ${fit(timeUs, 7)}  ${fit(algbwGBps, 6)}  ${fit(busbwGBps, 6)}  ${wrongText}`;
}

/** Two columns behind nccl-tests': the shortest time of each half. */
export function formatShortest(outOfPlace: Measurement, inPlace: Measurement | undefined): string {
  return `   ${fit(outOfPlace.shortestUs, 7)}  ${inPlace === undefined ? '    N/A' : fit(inPlace.shortestUs, 7)}`;
}

/** @param errors the number of halves with a wrong element */
export function formatFooter(collective: string, errors: number, averageBusbwGBps: number): string {
  return [
    `# time: mean of the calls in a row, which follow each other without a barrier; min: of their fastest tenth`,
    `# Out of bounds values : ${errors} ${errors > 0 ? 'FAILED' : 'OK'}`,
    `# Avg bus bandwidth    : ${formatG(averageBusbwGBps)} `,
    '#',
    `# Collective test concluded: ${collective}_perf`,
    '#',
    '',
  ].join('\n');
}

function columns(head: readonly [string, string, string, string, string], rest: string): string {
  const [size, count, type, operator, root] = head;
  return `# ${size.padStart(10)}  ${count.padStart(12)}  ${type.padStart(8)}  ${operator.padStart(6)}  ${root.padStart(6)}  ${rest}`;
}

function titles(...names: readonly [string, string, string, string]): string {
  const [time, algbw, busbw, wrong] = names;
  const half = `${time.padStart(7)}  ${algbw.padStart(6)}  ${busbw.padStart(6)}  ${wrong.padStart(6)}`;
  return `${half}  ${half} `;
}

/** A number in `width` columns with up to two decimals, otherwise with an exponent. */
function fit(value: number, width: number): string {
  for (const decimals of [2, 1, 0]) {
    const text = value.toFixed(decimals);
    if (text.length <= width) return text.padStart(width);
  }
  return exponential(value, width >= 7 ? 1 : 0).padStart(width);
}

/** C's `%g`: six significant digits, no trailing zeros, an exponent of at least two digits. */
export function formatG(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf';
  const exponent = value === 0 ? 0 : Number(value.toExponential(5).split('e')[1]);
  if (exponent >= -4 && exponent < 6) return String(Number(value.toPrecision(6)));
  const [digits = '', power = ''] = exponential(value, 5).split('e');
  return `${Number(digits)}e${power}`;
}

/** C's `%e` with `decimals`. */
function exponential(value: number, decimals: number): string {
  return value.toExponential(decimals).replace(/e([+-])(\d)$/, 'e$10$2');
}
