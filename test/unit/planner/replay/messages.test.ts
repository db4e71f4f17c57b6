import { describe, expect, it } from 'vitest';
import { defaultParameters } from '../../../../src/planner/parameters.js';
import { readFlightRecording } from '../../../../src/planner/readers/flight.js';
import { readKineto } from '../../../../src/planner/readers/kineto.js';
import { measureJob, replayJob } from '../../../../src/planner/replay/replay.js';
import { ofFlight, ofKineto, type RankCall, type RankMessage, type RankTrace } from '../../../../src/planner/replay/trace.js';
import { machine } from '../../../../src/planner/topology/catalogue/machines.js';
import { rankCall } from './traces.js';

const MiB = 2 ** 20;
const dgx = {
  title: 'dgx-h100',
  cluster: { hosts: [{ machine: machine('dgx-h100'), count: 1 }] },
  parameters: defaultParameters,
};

const send = (peer: number, bytes = MiB): RankMessage => ({ isSend: true, peer, bytes });
const receive = (peer: number, bytes = MiB): RankMessage => ({ isSend: false, peer, bytes });
/** A kernel with sends and receives, from `startUs` to `endUs`. */
const kernel = (startUs: number, endUs: number, ...messages: readonly RankMessage[]): RankCall =>
  rankCall({ startUs, durationUs: endUs - startUs, operation: 'x', collective: undefined, messages, members: [0, 1, 2, 3] });
const trace = (rank: number, ...calls: readonly RankCall[]): RankTrace => ({
  ...{ rank, file: `rank${rank}`, nRanks: 4, calls, compute: undefined, clock: 'gpu' },
});
const callsOf = (traces: readonly RankTrace[]) => {
  const { calls, notes } = measureJob(traces);
  return {
    calls: calls.map(({ call: { operation, size, parts, bytes } }) => [
      operation,
      size,
      [...parts.keys()].sort((a, b) => a - b).join(),
      bytes / MiB,
    ]),
    notes: notes.filter((note) => !/no trace of/.test(note)),
  };
};

describe('sends and receives of a job', () => {
  it('are joined in the order of each pair of ranks', () => {
    const { calls, notes } = callsOf([
      trace(0, kernel(0, 50, send(1)), kernel(60, 90, send(1, 2 * MiB))),
      trace(1, kernel(20, 50, receive(0)), kernel(60, 90, receive(0, 2 * MiB)), kernel(95, 99, send(2))),
      trace(2, kernel(95, 99, receive(1))),
    ]);
    expect(calls).toEqual([
      ['send', 2, '0,1', 1],
      ['send', 2, '0,1', 2],
      ['send', 2, '1,2', 1],
    ]);
    expect(notes).toEqual([]);
  });

  it('of one kernel are one call with all ranks that it joins', () => {
    const around = (rank: number) => trace(rank, kernel(0, 50, send((rank + 1) % 4), receive((rank + 3) % 4)));
    expect(callsOf([0, 1, 2, 3].map(around)).calls).toEqual([['sends and receives', 4, '0,1,2,3', 1]]);
  });

  it('stay two calls where a rank has two kernels for what another one does in one', () => {
    const { calls } = callsOf([
      trace(0, kernel(0, 50, send(1)), kernel(60, 90, receive(1))),
      trace(1, kernel(0, 90, receive(0), send(0))),
    ]);
    expect(calls.map(([, , ranks]) => ranks)).toEqual(['0,1', '0']);
  });

  it('are joined where a list begins later, and one-sided ones are counted', () => {
    const { calls, notes } = callsOf([
      trace(0, kernel(0, 10, send(1, MiB)), kernel(20, 30, send(1, 2 * MiB)), kernel(40, 50, send(1, 4 * MiB))),
      trace(1, kernel(20, 30, receive(0, 2 * MiB)), kernel(40, 50, receive(0, 4 * MiB))),
    ]);
    expect(calls.map(([, , ranks, size]) => [ranks, size])).toEqual([
      ['0', 1],
      ['0,1', 2],
      ['0,1', 4],
    ]);
    expect(notes).toEqual(['1 message that only one of the two ranks recorded: they begin when this rank comes']);
  });

  it('are predicted and timed from the rank that came last', () => {
    const job = measureJob([trace(0, kernel(0, 90, send(1, 64 * MiB))), trace(1, kernel(30, 90, receive(0, 64 * MiB)))]);
    const [call] = replayJob(job, dgx).calls;
    expect(call?.measured).toMatchObject({ transferUs: 60, lastRank: 1, waitUs: 30 });
    // 64 MiB over NVLink at 150 GB/s, which the thread blocks of a message carry.
    expect(call?.predicted?.timeUs).toBeGreaterThan(200);
    expect(call?.predicted?.timeUs).toBeLessThan(600);
    expect((call?.replayed?.endUs ?? 0) - (call?.replayed?.beginUs ?? 0)).toBeCloseTo(call?.predicted?.timeUs ?? 0);
  });

  it('align clocks of two ranks that have nothing else in common', () => {
    const { calls } = measureJob([trace(0, kernel(100, 150, send(1))), trace(1, kernel(5120, 5150, receive(0)))]);
    expect([...(calls[0]?.times ?? [])]).toEqual([
      [0, [0, 50]],
      [1, [20, 50]],
    ]);
  });

  it('are read from profiles of PyTorch, one by one or as a batch', () => {
    const asked = (name: string, given: object) => ({
      ...{ 'Collective name': name, 'In msg nelems': 512, 'Out msg nelems': 512, 'Group size': 2, dtype: 'Float' },
      ...{ 'Process Group Name': 'pp', 'Process Group Ranks': '[4, 6]', ...given },
    });
    const recorded = (ts: number, args: object) => ({
      ...{ ph: 'X', cat: 'cpu_op', name: 'record_param_comms', pid: 9, tid: 9, ts, dur: 1, args },
    });
    const launch = (ts: number, correlation: number) => ({
      ...{ ph: 'X', cat: 'cuda_runtime', name: 'cudaLaunchKernelExC', pid: 9, tid: 9, ts, dur: 1, args: { correlation } },
    });
    const run = (ts: number, args: object) => ({ ph: 'X', cat: 'kernel', name: 'ncclDevKernel_SendRecv', ts, dur: 10, args });
    const profile = readKineto({
      distributedInfo: { rank: 4, world_size: 8 },
      traceEvents: [
        ...[run(100, { correlation: 1, ...asked('send', { 'Dst Rank': 6 }) }), run(200, { correlation: 2, stream: 3 })],
        ...[launch(1, 1), recorded(2, asked('send', { 'Dst Rank': 6 })), recorded(3, asked('recv', { 'Src Rank': 6 }))],
        ...[launch(4, 2), recorded(5, asked('recv', { 'Src Rank': 6 }))],
      ],
    });
    const [one, batch] = ofKineto(profile, '', 0).calls;
    expect(one).toMatchObject({ operation: 'send', bytes: 2048, messages: [{ isSend: true, peer: 6, bytes: 2048 }] });
    expect(batch).toMatchObject({ operation: 'sends and receives', groupName: 'pp', members: [4, 6], stream: '3', bytes: 2048 });
    expect(batch?.messages).toEqual([send(6, 2048), receive(6, 2048)]);
  });

  it('are read from flight recordings, whose batch has one time', () => {
    const entry = (name: string, given: object = {}) => ({
      ...{ pg_id: 0, process_group: ['0', 'pp'], is_p2p: true, p2p_seq_id: 7, profiling_name: `nccl:${name}` },
      ...{ time_created_ns: 5e6, input_sizes: [[256]], output_sizes: [[256]], input_dtypes: ['Half'], state: 'completed' },
      ...given,
    });
    const recording = readFlightRecording(
      {
        version: '2.10',
        pg_config: { 0: { ranks: '[4, 6]' } },
        entries: [
          entry('send 0->1'),
          entry('recv 0<-1'),
          entry('coalesced', { duration_ms: 0.25 }),
          entry('send 0->1', { duration_ms: 1 }),
        ],
      },
      'trace_4.json',
      { file: 0, line: 1 },
    );
    const [batch, one] = ofFlight(recording, '').calls;
    expect(batch).toMatchObject({ operation: 'sends and receives', durationUs: 250, bytes: 512 });
    expect(batch?.messages).toEqual([send(6, 512), receive(6, 512)]);
    expect(one).toMatchObject({ operation: 'send', durationUs: 1000, messages: [{ isSend: true, peer: 6, bytes: 512 }] });
  });
});

describe('all-to-alls whose parts differ', () => {
  const profile = (rank: number, input: string, output: string) =>
    ofKineto(
      readKineto({
        distributedInfo: { rank, world_size: 4 },
        traceEvents: [
          {
            ...{ ph: 'X', cat: 'kernel', name: 'ncclDevKernel_SendRecv', ts: 0, dur: 100 },
            args: {
              ...{ 'Collective name': 'all_to_allv', 'In msg nelems': 16 * MiB, 'Out msg nelems': 16 * MiB, dtype: 'Float' },
              ...{ 'Group size': 4, 'Process Group Name': 'ep', 'Process Group Ranks': '[0, 1, 2, 3]' },
              ...{ 'In split size': input, 'Out split size': output },
            },
          },
        ],
      }),
      '',
      rank,
    );

  it('have the parts that each rank sends, in rows of its tensor', () => {
    const [call] = profile(1, '[8, 4, 2, 2]', '[]').calls;
    expect(call).toMatchObject({ collective: 'AllToAll', bytes: 64 * MiB });
    expect(call?.messages?.filter(({ isSend }) => isSend).map(({ bytes }) => bytes / MiB)).toEqual([32, 16, 8, 8]);
    expect(profile(1, '[4, 4, 4, 4]', '[]').calls[0]?.messages).toBeUndefined();
    expect(profile(1, '[4, 4, ...]', '[]').calls[0]?.messages).toBeUndefined();
  });

  it('take longer than equal ones of the same bytes', () => {
    const replay = (input: string, output: (rank: number) => string) =>
      replayJob(measureJob([0, 1, 2, 3].map((rank) => profile(rank, input, output(rank)))), dgx).calls[0]?.predicted?.timeUs ?? 0;
    const equal = replay('[]', () => '[]');
    // All ranks send three quarters to rank 0.
    const uneven = replay('[12, 2, 1, 1]', (rank) => `[${Array(4).fill([12, 2, 1, 1][rank]).join()}]`);
    expect(uneven / equal).toBeGreaterThan(2);
    expect(uneven / equal).toBeLessThan(4);
  });

  it('of ranks without a trace are known by what others receive', () => {
    const job = measureJob([profile(0, '[12, 2, 1, 1]', '[12, 2, 1, 1]')]);
    const { messages = [] } = job.calls[0]?.call ?? {};
    expect(messages.find(({ from, to }) => from === 1 && to === 0)?.bytes).toBe(8 * MiB);
    expect(messages.filter(({ from }) => from === 0)).toHaveLength(4);
  });
});
