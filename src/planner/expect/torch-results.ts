import { InputError } from '../../errors.js';
import { collectivesOfTests, type ScheduledCollective } from '../schedule/schedule.js';
import type { DataTypeName } from '../tuning/names.js';
import { type ResultRow, type Results, typesByName } from './measured.js';

/** One row of a table, in the words of the tool that printed it. */
interface Measured {
  /** The tool's name: `all_gather_base`. */
  readonly name: string;
  readonly nRanks: number | undefined;
  readonly nccl: string | undefined;
  readonly gpu: string | undefined;
  readonly type: string;
  /** Size as nccl-tests counts it. */
  readonly bytes: number;
  readonly timeUs: number;
  /** Number of the line, from 1. */
  readonly line: number;
  /** Default: {@link LAUNCH_US}. */
  readonly shortestUs?: number;
}

/** Time below which the launch by PyTorch, tens of µs, is a part of what it measures. */
const LAUNCH_US = 200;

/** Reads the rows of one tool; none where the text is of another. */
type TableReader = (lines: readonly string[]) => Measured[];

const readers: readonly TableReader[] = [readParam, readDeepSpeed, readPerfTable, readPayloads];

/**
 * Reads tables of benchmarks of PyTorch: PARAM's `comms.py`, DeepSpeed's `ds_bench`, `all_reduce_bench.py`, and `nccl_perf.txt`.
 *
 * @throws InputError with the line: a collective that is not simulated, rows without sizes
 */
export function readTorchResults(text: string, named: ScheduledCollective | undefined): Results[] {
  const lines = text.split(/\r?\n/);
  const measured = readers.flatMap((read) => read(lines));
  if (measured.length === 0) refuseReplay(lines);
  const tables = new Map<string, { results: Results; rows: ResultRow[] }>();
  for (const each of measured) {
    const { nRanks, nccl, gpu, type, bytes, timeUs, line, shortestUs = LAUNCH_US } = each;
    const collective = named ?? collectiveOf(each);
    const key = [collective, nRanks, nccl, gpu].join(' ');
    let table = tables.get(key);
    if (table === undefined) {
      const rows: ResultRow[] = [];
      const gpus = gpu === undefined ? [] : [gpu];
      const run = { nccl, nProcesses: nRanks ?? 0, gpusPerThread: 1, gpus, isGraph: false, isCpuTime: false };
      const results = { collective, nRanks, hosts: [], run, variables: {}, shortestUs, rows };
      table = { results, rows };
      tables.set(key, table);
    }
    table.rows.push({ bytes, type: typesByName[type] ?? (type as DataTypeName), timeUs, place: `line ${line}` });
  }
  return [...tables.values()].map(({ results }) => results);
}

/** Types by their bytes, where a table has only these: NCCL's time depends on the size, hardly on the type. */
const typesOfWidth: Readonly<Record<string, DataTypeName>> = { '1': 'int8', '2': 'float16', '4': 'float32', '8': 'float64' };
const widths: Readonly<Record<string, number>> = { half: 2, float16: 2, bfloat16: 2, float: 4, float32: 4, int8: 1, double: 8 };

/** The name without forms of the buffers: all_gather_base, reduce_scatter_tensor, all_to_all_single. */
export function plainName(name: string): string {
  return name.replace(/_(?:base|single|into_tensor|tensor|coalesced)$/, '').replace('all_to_all', 'alltoall');
}

/** @throws InputError for one that is not simulated, such as messages between two ranks */
function collectiveOf({ name, line }: Measured): ScheduledCollective {
  const plain = plainName(name);
  const found = Object.hasOwn(collectivesOfTests, plain) ? collectivesOfTests[plain] : undefined;
  if (found !== undefined) return found;
  throw new InputError('CONTENT', `${name} is no collective that is simulated`, { line });
}

/** `COMMS-RES-all_reduce-float32 SIZE ELEMENTS P50 P75 P95 MIN MAX ALGBW BUSBW`, or, as people cut it, `SIZE ALGBW BUSBW`. */
function readParam(lines: readonly string[]): Measured[] {
  let groupSize: number | undefined;
  return lines.flatMap((text, index): Measured[] => {
    const [, size] = / element_size: \d+ .*groupSize (\d+)/.exec(text) ?? [];
    if (size !== undefined) groupSize = Number(size);
    const [, name = '', type = '', rest = ''] = /COMMS-RES-([a-z]\w*)-([a-z]+\d*)\S*\s+([\d.\s]+)$/.exec(text) ?? [];
    const numbers = rest.trim().split(/\s+/).map(Number);
    const bytes = numbers[0] ?? 0;
    const timeUs = timeOfParam(numbers);
    if (name === '' || !(bytes > 0) || timeUs === undefined) return [];
    const line = index + 1;
    const nRanks = groupSize ?? ranksOfParts(name, type, numbers, line);
    return [{ name, nRanks, nccl: undefined, gpu: undefined, type, bytes, timeUs, line }];
  });
}

/** The median time, which is the one that belongs to the bandwidth five columns after it; else the time by the bandwidth. */
function timeOfParam(numbers: readonly number[]): number | undefined {
  const [bytes = 0] = numbers;
  for (const at of [2, 3]) {
    const [timeUs = 0, gbps = 0] = [numbers[at], numbers[at + 5]];
    if (timeUs > 0 && Math.abs(bytes / timeUs / 1000 - gbps) <= 0.01 * gbps + 0.001) return timeUs;
  }
  const [, gbps = 0] = numbers;
  return numbers.length === 3 && gbps > 0 ? bytes / gbps / 1000 : undefined;
}

/** Ranks by the elements of one: only in collectives whose buffer has the parts of all ranks. */
function ranksOfParts(name: string, type: string, numbers: readonly number[], line: number): number | undefined {
  const width = widths[type];
  const [bytes = 0, elements = 0] = numbers;
  if (!/^(?:all_gather|reduce_scatter|all_to_all)/.test(name) || width === undefined || numbers.length < 9) return undefined;
  const nRanks = bytes / (elements * width);
  if (nRanks >= 2 && Number.isInteger(nRanks)) return nRanks;
  if (nRanks === 1)
    throw new InputError(
      'CONTENT',
      `the size of ${name} is of one rank's part, and the output does not say how many ranks there are`,
      { line },
    );
  return undefined;
}

/** `---- Performance of all_reduce on 8 devices`, then `SIZE ELEMENTSxWIDTH DURATION THROUGHPUT BUSBW`. */
function readDeepSpeed(lines: readonly string[]): Measured[] {
  let name = '';
  let nRanks = 0;
  return lines.flatMap((text, index): Measured[] => {
    const [, of, on] = /---- Performance of (\w+) on (\d+) devices/.exec(text) ?? [];
    if (of !== undefined) [name, nRanks] = [of, Number(on)];
    const [, elements, width = '', duration, unit] =
      /\s(\d+)x([1248])\s+(\d+(?:\.\d+)?)(?: (us|ms))?\s+\d+(?:\.\d+)?\s+\d+(?:\.\d+)?\s*$/.exec(text) ?? [];
    // Messages between two of the ranks are no collective.
    if (elements === undefined || name === '' || name === 'pt2pt') return [];
    // It counts the buffer that is given to the call.
    const bytes = Number(elements) * Number(width) * (name === 'all_gather' ? nRanks : 1);
    const timeUs = Number(duration) * (unit === 'ms' ? 1000 : 1);
    const type = typesOfWidth[width] ?? '';
    return [{ name, nRanks, nccl: undefined, gpu: undefined, type, bytes, timeUs, line: index + 1 }];
  });
}

/** `nccl_perf.txt` of performance databases: comma-separated values, sizes in elements, milliseconds. */
function readPerfTable(lines: readonly string[]): Measured[] {
  const heading = lines.findIndex((text) => /^(?:\w+,)*op_name,(?:\w+,)*nccl_dtype,num_gpus,message_size,latency\b/.test(text));
  const columns = lines[heading]?.trim().split(',');
  if (columns === undefined) return [];
  return lines.slice(heading + 1).flatMap((text, index): Measured[] => {
    const fields = text.trim().split(',');
    const line = heading + index + 2;
    if (fields.length !== columns.length) {
      if (text.trim() === '' || heading > 0) return [];
      throw new InputError('CONTENT', `the row has ${fields.length} values, the heading ${columns.length}`, { line });
    }
    const value = (name: string) => fields[columns.indexOf(name)] ?? '';
    const type = value('nccl_dtype');
    const bytes = Number(value('message_size')) * (widths[type] ?? NaN);
    const timeUs = Number(value('latency')) * 1000;
    if (!(bytes > 0) || !(timeUs > 0))
      throw new InputError('CONTENT', `${type} ${value('message_size')} ${value('latency')} is no type, size and latency`, {
        line,
      });
    const nccl = /^\d+\.\d+\.\d+$/.exec(value('version'))?.[0];
    const gpu = value('device') === '' ? undefined : value('device');
    return [{ name: value('op_name'), nRanks: Number(value('num_gpus')), nccl, gpu, type, bytes, timeUs, line, shortestUs: 0 }];
  });
}

const unitBytes: Readonly<Record<string, number>> = { K: 2 ** 10, M: 2 ** 20, G: 2 ** 30, T: 2 ** 40 };
/** Below, two digits after the point say too little about a time. */
const LEAST_GBPS = 0.5;

/** `all_reduce_bench.py`: `| 64MiB | 346.51GBps | 198.01GBps |`; older versions print one payload and `algbw: 87.1 GBps`. */
function readPayloads(lines: readonly string[]): Measured[] {
  let nRanks: number | undefined;
  let nccl: string | undefined;
  let gpu: string | undefined;
  let payload = 0;
  let isTable = false;
  return lines.flatMap((text, index): Measured[] => {
    nccl = /\bnccl=\((\d+), (\d+), (\d+)\)/.exec(text)?.slice(1).join('.') ?? nccl;
    gpu = /DeviceProperties\(name='([^']{1,80})'/.exec(text)?.[1] ?? gpu;
    nRanks = Number(/bandwidth of all_reduce over (\d+) ranks/.exec(text)?.[1] ?? nRanks ?? NaN) || undefined;
    const [, gigabytes, ranks] = /bandwidth of all_reduce with a ([\d.]+)GB payload \(.*?(\d+) ranks\)/.exec(text) ?? [];
    if (gigabytes !== undefined) [payload, nRanks] = [Number(gigabytes) * 1e9, Number(ranks)];
    if (/^\W*\|\s*payload\s*\|\s*busbw\s*\|\s*algbw\s*\|/.test(text)) isTable = true;
    const of = (bytes: number, gbps: number): Measured[] =>
      gbps < LEAST_GBPS
        ? []
        : [{ name: 'all_reduce', nRanks, nccl, gpu, type: 'float32', bytes, timeUs: bytes / gbps / 1000, line: index + 1 }];
    const [, alone] = /^\W*algbw: ([\d.]+) GBps/.exec(text) ?? [];
    if (alone !== undefined && payload > 0) return of(payload, Number(alone));
    const [, size, unit = '', gbps] = /\|\s*(\d+)([KMGT])iB\s*\|\s*[\d.]+GBps\s*\|\s*([\d.]+)GBps\s*\|/.exec(text) ?? [];
    return size === undefined || !isTable ? [] : of(Number(size) * (unitBytes[unit] ?? 0), Number(gbps));
  });
}

/** @throws InputError for the replay of a recorded program, which sums up times of all sizes */
function refuseReplay(lines: readonly string[]): void {
  const line = lines.findIndex((text) => /=== Performance of replayed comms ===/.test(text)) + 1;
  if (line > 0)
    throw new InputError(
      'CONTENT',
      'a replay by PARAM prints times of each collective over all its sizes, which cannot be compared: give the replayedCommsPerf.rank0.json that it writes (--blocking --output-path), or measure single sizes with its comms.py or nccl-tests',
      { line },
    );
}
