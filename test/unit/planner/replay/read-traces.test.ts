import { describe, expect, it } from 'vitest';
import { TraceReader } from '../../../../src/planner/replay/read-traces.js';

function read(...files: readonly (readonly [name: string, text: string])[]) {
  const reader = new TraceReader();
  for (const [name, text] of files) {
    const bytes = new TextEncoder().encode(text);
    reader.read(bytes, name);
  }
  return reader.finish();
}

const entry = (sequence: number, createdMs: number, durationMs: number | undefined) => ({
  ...{ record_id: sequence, pg_id: 0, process_group: ['0', 'default_pg'], collective_seq_id: sequence, is_p2p: false },
  ...{ profiling_name: 'nccl:_all_gather_base', time_created_ns: createdMs * 1e6, state: 'completed' },
  ...{ input_sizes: [[2, 8]], output_sizes: [[8, 8]], input_dtypes: ['Half'], output_dtypes: ['Half'] },
  ...(durationMs === undefined ? {} : { duration_ms: durationMs }),
});
const flight = (entries: readonly object[]) =>
  JSON.stringify({ version: '2.4', pg_config: { 0: { name: '0', ranks: '[0, 1, 2, 3]' } }, entries });

const inspected = (rank: number, sequence: number, us: number, ends?: readonly number[]) =>
  JSON.stringify({
    header: { id: '0x7f', rank, n_ranks: 4, nnodes: 1 },
    metadata: { hostname: 'a', dump_timestamp_us: 1 },
    coll_perf: {
      ...{ coll: 'ReduceScatter', coll_sn: sequence, coll_msg_size_bytes: 1000, coll_exec_time_us: us },
      ...(ends === undefined ? {} : { event_trace_ts: { kernel_events: ends.map((kernel_stop_ts) => ({ kernel_stop_ts })) } }),
    },
  });

describe('traces of a replay', () => {
  it('are flight recordings, whose calls of a group run one after the other', () => {
    const [trace] = read(['trace_2.json', flight([entry(1, 10, 5), entry(2, 12, 5), entry(3, 30, undefined)])]);
    expect(trace).toMatchObject({ rank: 2, nRanks: 4, clock: 'cpu', compute: undefined });
    expect(trace?.calls.map(({ sequence, startUs, durationUs }) => [sequence, startUs, durationUs])).toEqual([
      ['1', 10_000, 5000],
      ['2', 15_000, 5000],
      ['3', 30_000, undefined],
    ]);
    expect(trace?.calls[0]).toMatchObject({ collective: 'AllGather', bytes: 128, type: 'float16', members: [0, 1, 2, 3] });
  });

  it('are records of NCCL Inspector, with times or without', () => {
    const lines = (ends: boolean) =>
      [0, 1].flatMap((rank) =>
        [0, 1].map((place) => inspected(rank, place, 100, ends ? [500 * place + 1, 500 * place + 200] : undefined)),
      );
    const traces = read(['a.log', `${lines(true).slice(0, 2).join('\n')}\n`], ['b.log', `${lines(true).slice(2).join('\n')}\n`]);
    expect(traces.map(({ rank, clock, calls }) => [rank, clock, calls.map(({ startUs }) => startUs)])).toEqual([
      [0, 'gpu', [100, 600]],
      [1, 'gpu', [100, 600]],
    ]);
    // NCCL counts the part of one rank.
    expect(traces[0]?.calls[1]).toMatchObject({ collective: 'ReduceScatter', bytes: 4000, sequence: 'ReduceScatter 1', size: 4 });
    const [without] = read(['c.log', lines(false).join('\n')]);
    expect([without?.clock, without?.calls.map(({ startUs }) => startUs)]).toEqual(['none', [0, 100]]);
  });

  it('of PyTorch without a rank are numbered by their names', () => {
    const profile = JSON.stringify({
      traceEvents: [{ ph: 'X', cat: 'kernel', name: 'ncclDevKernel_X', ts: 1, dur: 2, args: {} }],
    });
    expect(read(['run/rank12.pt.trace.json', profile], ['b.json', profile]).map(({ rank }) => rank)).toEqual([12, 1]);
  });

  it.each([
    ['other JSON', '{"a": 1}', /JSON of a kind that is not replayed/],
    [
      'a database',
      `SQLite format 3\0${'\x01\x02'.repeat(50)}`,
      /a database, as Nsight Systems exports it: give readDatabase a connection/,
    ],
    ["PyTorch's graph", '{"schema": "1.0.2-chakra.0.0.4", "nodes": []}', /PyTorch's execution graph, which has no times/],
    ['a log', 'node1:1:1 [0] NCCL INFO x', /no trace: replayed are profiles of PyTorch/],
    ['a profile without NCCL', '{"traceEvents": []}', /a profile without a kernel of NCCL/],
    [
      'a recording without times',
      flight([{ profiling_name: 'nccl:all_reduce', pg_id: 0, collective_seq_id: 1 }]),
      /without times/,
    ],
    ['events of the example profiler', '[{"name": "x", "ph": "b"}]', /has no sizes of calls/],
  ])('are not %s', (_, text, message) => {
    expect(() => read(['x', text])).toThrow(message);
  });
});
