/** A GPU as `nvidia-smi --query-gpu` shows it; a value is undefined where the GPU or the driver has none. */
export interface GpuFields {
  /** Number in NVML's order. */
  readonly index: number;
  readonly uuid: string;
  readonly busyPercent: number | undefined;
  readonly usedMiB: number | undefined;
  readonly totalMiB: number | undefined;
  readonly powerW: number | undefined;
  readonly celsius: number | undefined;
  /** Uncorrected memory errors since the driver was loaded. */
  readonly eccErrors: number | undefined;
  /** Reasons for slow clocks that NVML documents as trouble. */
  readonly slowedBy: readonly string[];
  /** Processes that use it, by the numbers that the host gives them. */
  readonly pids: readonly number[];
}

const QUERY =
  'index,uuid,utilization.gpu,memory.used,memory.total,power.draw,temperature.gpu,ecc.errors.uncorrected.volatile.total';

/**
 * Command whose output {@link readGpus} reads. Drivers have two names for the reasons of slow clocks, and some refuse a query
 * with a name that they do not know.
 */
export const GPU_COMMAND = `${[`${QUERY},clocks_event_reasons.active`, `${QUERY},clocks_throttle_reasons.active`, QUERY]
  .map((query) => `nvidia-smi --query-gpu=${query} --format=csv`)
  .join(' || ')} && nvidia-smi --query-compute-apps=pid,gpu_uuid --format=csv`;

/** Bits of the reasons for slow clocks, as NVML documents them. */
const slowdowns: readonly (readonly [bit: number, name: string])[] = [
  [0x08, 'hardware slowdown'],
  [0x20, 'heat (software)'],
  [0x40, 'heat (hardware)'],
  [0x80, 'power brake'],
];

/** The GPUs in the output of {@link GPU_COMMAND}; empty where it has none. */
export function readGpus(text: string): GpuFields[] {
  const [gpus, processes] = [rowsOf(text, 'index'), rowsOf(text, 'pid')];
  return gpus.map((row) => {
    const number = (name: string) => {
      const value = row.get(name) ?? '';
      return /^\d/.test(value) ? Number.parseFloat(value) : undefined;
    };
    const reasons = Number(row.get('clocks_event_reasons.active') ?? row.get('clocks_throttle_reasons.active') ?? 0) & 0xff;
    const uuid = row.get('uuid') ?? '';
    return {
      index: number('index') ?? 0,
      uuid,
      busyPercent: number('utilization.gpu'),
      usedMiB: number('memory.used'),
      totalMiB: number('memory.total'),
      powerW: number('power.draw'),
      celsius: number('temperature.gpu'),
      eccErrors: number('ecc.errors.uncorrected.volatile.total'),
      slowedBy: slowdowns.filter(([bit]) => (reasons & bit) !== 0).map(([, name]) => name),
      pids: processes.filter((process) => process.get('gpu_uuid') === uuid).map((process) => Number(process.get('pid'))),
    };
  });
}

/** Rows of the table whose first column has this name. */
function rowsOf(text: string, first: string): Map<string, string>[] {
  const lines = text.split(/\r?\n/).map((line) => line.split(',').map((cell) => cell.trim()));
  const at = lines.findIndex(([name, ...more]) => name === first && more.length > 0);
  const names = (lines[at] ?? []).map((name) => name.replace(/ \[.*$/, ''));
  const rows = at < 0 ? [] : lines.slice(at + 1);
  const end = rows.findIndex((cells) => cells.length !== names.length);
  return rows
    .slice(0, end < 0 ? undefined : end)
    .map((cells) => new Map(names.map((name, column) => [name, cells[column] ?? ''])));
}

/** `100 % busy, 71234 of 81559 MiB, 118 W, 41 °C`. */
export function gpuText({ busyPercent, usedMiB, totalMiB, powerW, celsius, eccErrors = 0, slowedBy }: GpuFields): string {
  return [
    busyPercent === undefined ? [] : `${busyPercent} % busy`,
    usedMiB === undefined ? [] : `${usedMiB}${totalMiB === undefined ? '' : ` of ${totalMiB}`} MiB`,
    powerW === undefined ? [] : `${Math.round(powerW)} W`,
    celsius === undefined ? [] : `${celsius} °C`,
    eccErrors === 0 ? [] : `${eccErrors} uncorrected memory errors`,
    slowedBy.length === 0 ? [] : `slowed by ${slowedBy.join(', ')}`,
  ]
    .flat()
    .join(', ');
}
