import { InputError } from '../../errors.js';
import { JsonReader } from '../json-reader.js';
import { collectivesOfTests, type ScheduledCollective } from '../schedule/schedule.js';
import type { DataTypeName } from '../tuning/names.js';
import { type ResultRow, type Results, typesByName } from './measured.js';
import { plainName } from './torch-results.js';

/** Types by the names of PARAM's traces in lower case, and their bytes. */
const types: Readonly<Record<string, readonly [DataTypeName, number]>> = {
  byte: ['uint8', 1],
  uint8: ['uint8', 1],
  char: ['int8', 1],
  int8: ['int8', 1],
  half: ['float16', 2],
  float16: ['float16', 2],
  bfloat16: ['bfloat16', 2],
  int: ['int32', 4],
  int32: ['int32', 4],
  float: ['float32', 4],
  float32: ['float32', 4],
  long: ['int64', 8],
  int64: ['int64', 8],
  double: ['float64', 8],
  float64: ['float64', 8],
};

/**
 * Reads the records of a rank that PARAM's replay of a recorded program writes (`replayedCommsPerf.rank0.json`): a list of calls
 * with elements, type and time. Calls of one kind, size and group are a row with their median time.
 *
 * @throws InputError where no call is one of a simulated collective
 */
export function readReplay(calls: JsonReader, named: ScheduledCollective | undefined): Results[] {
  const groups = new Map<string, { readonly table: string; readonly row: Omit<ResultRow, 'timeUs'>; readonly times: number[] }>();
  const tables = new Map<string, Pick<Results, 'collective' | 'nRanks'>>();
  for (const [index, call] of calls.items().entries()) {
    const name = call.optional('comms')?.text().toLowerCase() ?? '';
    const [type, width] = types[(call.optional('dtype')?.text() ?? '').toLowerCase().replace(/^.*[:.]/, '')] ?? [];
    const collective = Object.hasOwn(collectivesOfTests, plainName(name)) ? collectivesOfTests[plainName(name)] : undefined;
    const elements = Math.max(call.optional('in_msg_size')?.number() ?? 0, call.optional('out_msg_size')?.number() ?? 0);
    const timeUs = call.optional('latency_us')?.number() ?? 0;
    if (collective === undefined || (named !== undefined && named !== collective)) continue;
    if (type === undefined || width === undefined || !(elements > 0) || !(timeUs > 0)) continue;
    const nRanks = call.optional('world_size')?.integer(1);
    const table = `${collective} ${nRanks ?? ''}`;
    tables.set(table, { collective, nRanks });
    const bytes = elements * width;
    const key = `${table} ${bytes} ${type}`;
    const group = groups.get(key) ?? { table, row: { bytes, type: typesByName[type] ?? type, place: `[${index}]` }, times: [] };
    groups.set(key, group);
    group.times.push(timeUs);
  }
  if (tables.size === 0)
    throw new InputError(
      'CONTENT',
      'a list of calls is read if PARAM has replayed them (replayedCommsPerf.rank0.json), with comms, in_msg_size, dtype and latency_us',
    );
  return [...tables].map(([table, { collective, nRanks }]): Results => {
    const run = { nccl: undefined, nProcesses: nRanks ?? 0, gpusPerThread: 1, gpus: [], isGraph: false, isCpuTime: false };
    const rows = [...groups.values()]
      .filter((group) => group.table === table)
      .map(({ row, times }) => ({ ...row, timeUs: median(times) }));
    return { collective, nRanks, hosts: [], run, variables: {}, shortestUs: SHORTEST_US, rows };
  });
}

/** Time below which waiting for other ranks and the launch by PyTorch are a part of what it measures. */
const SHORTEST_US = 200;

function median(times: readonly number[]): number {
  const sorted = [...times].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? (sorted[half] ?? 0) : ((sorted[half - 1] ?? 0) + (sorted[half] ?? 0)) / 2;
}
