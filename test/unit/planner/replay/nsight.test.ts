import { describe, expect, it } from 'vitest';
import type { Database } from '../../../../src/planner/readers/nsight.js';
import { TraceReader } from '../../../../src/planner/replay/read-traces.js';
import { measureJob } from '../../../../src/planner/replay/replay.js';

const COMM = 0xabcdef0123456789n;
const schemas = {
  init: ['NCCL communicator ID', 'No. of ranks', 'Rank', 'CUDA device'],
  call: ['NCCL communicator ID', 'Message size [bytes]'],
  message: ['NCCL communicator ID', 'Message size [bytes]', 'Peer rank'],
};
/** Types of NVTX: 18 and 22 have eight bytes, 5 has four. */
const typeOf = (name: string) => (name.startsWith('NCCL') ? 18 : name.startsWith('Message') ? 22 : 5);
const schemaNames = Object.keys(schemas) as (keyof typeof schemas)[];

/** A payload as Nsight Systems exports it: domain, schema, length, place, then the fields. */
function blob(schema: keyof typeof schemas, ...values: readonly (number | bigint)[]): Uint8Array {
  const bytes = new Uint8Array(32 + 32);
  const view = new DataView(bytes.buffer);
  [1n, BigInt(100 + schemaNames.indexOf(schema)), 32n, 32n].forEach((value, place) => view.setBigUint64(8 * place, value, true));
  let at = 32;
  schemas[schema].forEach((name, place) => {
    if (typeOf(name) === 5) view.setInt32(at, Number(values[place]), true);
    else view.setBigUint64(at, BigInt(values[place] ?? 0), true);
    at += typeOf(name) === 5 ? 4 : 8;
  });
  return bytes;
}

interface Ranges {
  readonly thread: number;
  readonly start: number;
  readonly name: string;
  readonly binaryData?: Uint8Array;
}
interface Launched {
  readonly process: number;
  readonly correlation: number;
  readonly name: string;
  readonly start: number;
  readonly end: number;
  readonly launchedAt: number;
  readonly deviceId?: number;
}

/** Answers the reader's queries from rows. */
function database(ranges: readonly Ranges[], kernels: readonly Launched[], withPayloads = true): Database {
  const step = 0x1000000;
  const tables: Record<string, readonly string[]> = {
    StringIds: ['id', 'value'],
    META_DATA_EXPORT: ['name', 'value'],
    CUPTI_ACTIVITY_KIND_KERNEL: ['start'],
    CUPTI_ACTIVITY_KIND_RUNTIME: ['start'],
    NVTX_EVENTS: ['start', ...(withPayloads ? ['binaryData'] : [])],
    NVTX_PAYLOAD_SCHEMA_ENTRIES: ['domainId'],
  };
  return {
    columns: (table) => tables[table] ?? [],
    rows: (query) => {
      if (/FROM NVTX_PAYLOAD_SCHEMA_ENTRIES/.test(query))
        return schemaNames.flatMap((schema, place) => {
          let at = 0;
          return schemas[schema].map((name) => {
            const offset = at;
            at += typeOf(name) === 5 ? 4 : 8;
            return { domainId: 1, schemaId: 100 + place, type: typeOf(name), name, offset: offset === 0 ? null : offset };
          });
        });
      if (/FROM NVTX_EVENTS/.test(query))
        return ranges.map(({ thread, start, name, binaryData }) => ({
          ...{ globalTid: thread * step + 7, start, name },
          ...(withPayloads && binaryData !== undefined ? { binaryData } : {}),
        }));
      if (/FROM CUPTI_ACTIVITY_KIND_RUNTIME/.test(query))
        return kernels
          .filter(({ name }) => name.startsWith('nccl'))
          .map(({ process, correlation, launchedAt }) => ({
            ...{ start: launchedAt, globalTid: process * step + 7, correlationId: correlation },
          }));
      return kernels.map(({ process, correlation, name, start, end, deviceId = 0 }) => ({
        ...{ start, end, deviceId, streamId: 20, correlationId: correlation, globalPid: process * step, name },
      }));
    },
  };
}

const init = (process: number, rank: number): Ranges => ({
  ...{ thread: process, start: 1, name: 'ncclCommInitRankConfig', binaryData: blob('init', COMM, 2, rank, 0) },
});
/** A host whose two processes gather, then swap messages. Ranks are not in the order of processes. */
const whole = database(
  [
    ...[init(10, 1), init(11, 0)],
    ...[10, 11].flatMap((process): Ranges[] => [
      { thread: process, start: 100, name: 'ncclAllGather', binaryData: blob('call', COMM, 4096) },
      { thread: process, start: 200, name: 'ncclGroupStart' },
      { thread: process, start: 210, name: 'ncclSend', binaryData: blob('message', COMM, 1024, process === 10 ? 0 : 1) },
      { thread: process, start: 220, name: 'ncclRecv', binaryData: blob('message', COMM, 512, process === 10 ? 0 : 1) },
    ]),
  ],
  [10, 11].flatMap((process): Launched[] => [
    { process, correlation: 1, name: 'ncclDevKernel_AllGather_RING_LL', start: 5000, end: 9000, launchedAt: 110 },
    { process, correlation: 2, name: 'gemm', start: 9000, end: 20_000, launchedAt: 150 },
    { process, correlation: 3, name: 'ncclDevKernel_SendRecv', start: 20_000, end: 25_000, launchedAt: 230 },
  ]),
);
const read = (...databases: readonly Database[]) => {
  const reader = new TraceReader();
  databases.forEach((each, place) => {
    reader.readDatabase(each, `host${place}.sqlite`);
  });
  return reader.finish();
};

describe('an export of Nsight Systems', () => {
  it('has a rank for each GPU, by the largest communicator, with the sizes of NVTX', () => {
    const traces = read(whole);
    expect(traces.map(({ rank, nRanks, clock, compute }) => [rank, nRanks, clock, compute])).toEqual([
      [1, 2, 'gpu', [[9, 20]]],
      [0, 2, 'gpu', [[9, 20]]],
    ]);
    const [gather, swap] = traces[0]?.calls ?? [];
    // NCCL counts the part of one rank.
    expect(gather).toMatchObject({ collective: 'AllGather', bytes: 8192, size: 2, members: [0, 1], startUs: 5, durationUs: 4 });
    expect(gather?.groupName).toBe('0xabcdef0123456789');
    expect(swap).toMatchObject({ operation: 'sends and receives', bytes: 1024, stream: '20' });
    expect(swap?.messages).toEqual([
      { isSend: true, peer: 0, bytes: 1024 },
      { isSend: false, peer: 0, bytes: 512 },
    ]);
    expect(measureJob(traces).calls.map(({ call }) => [call.operation, call.parts.size])).toEqual([
      ['AllGather', 2],
      ['sends and receives', 2],
    ]);
  });

  it('without payloads has kernels and times, and says how to export sizes', () => {
    const bare = database(
      [{ thread: 10, start: 100, name: 'ncclAllReduce' }],
      [{ process: 10, correlation: 1, name: 'ncclDevKernel_AllReduce_Sum_f32_RING_LL', start: 1000, end: 2000, launchedAt: 110 }],
      false,
    );
    const [trace] = read(bare);
    expect(trace?.calls).toMatchObject([{ operation: 'AllReduce', collective: 'AllReduce', bytes: 0, durationUs: 1 }]);
    expect(measureJob(read(bare)).notes.join()).toMatch(/rank 0: the export has no sizes of calls.*--include-blobs=true/);
  });

  it('gives several kernels of a group their operations in order', () => {
    const grouped = database(
      [
        init(10, 0),
        ...[1000, 2000].map((bytes, place): Ranges => ({
          ...{ thread: 10, start: 100 + place, name: 'ncclAllReduce', binaryData: blob('call', COMM, bytes) },
        })),
      ],
      [1, 2].map((correlation) => ({
        ...{ process: 10, correlation, name: 'ncclDevKernel_AllReduce_Sum_f32_RING_LL', launchedAt: 200 + correlation },
        ...{ start: 1000 * correlation, end: 1000 * correlation + 500 },
      })),
    );
    expect(read(grouped)[0]?.calls.map(({ bytes }) => bytes)).toEqual([1000, 2000]);
  });

  it('is refused where it is none, or has no kernel of NCCL', () => {
    expect(() => read({ columns: () => [], rows: () => [] })).toThrow('a database that Nsight Systems did not export');
    expect(() => read(database([], []))).toThrow('a database without a kernel of NCCL');
  });
});
