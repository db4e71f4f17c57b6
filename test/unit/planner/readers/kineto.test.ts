import { describe, expect, it } from 'vitest';
import { isKinetoTrace, readKineto } from '../../../../src/planner/readers/kineto.js';
import { ofKineto } from '../../../../src/planner/replay/trace.js';

const kernel = (name: string, ts: number, dur: number, args: object = {}) => ({
  ...{ ph: 'X', cat: 'kernel', name, pid: 0, tid: 7, ts, dur },
  args: { stream: 7, ...args },
});
const asked = (name: string, size: number, input: number, output: number, more: object = {}) => ({
  ...{ 'Collective name': name, 'In msg nelems': input, 'Out msg nelems': output, 'Group size': size, dtype: 'BFloat16' },
  ...{ 'Process Group Name': '5', 'Process Group Ranks': `[${Array.from({ length: size }, (_, rank) => rank).join(', ')}]` },
  ...more,
});
const profile = (events: readonly object[], job: object = { backend: 'nccl', rank: 3, world_size: 8, nccl_version: '2.21.5' }) =>
  readKineto({ distributedInfo: job, deviceProperties: [{ name: 'NVIDIA H100' }], traceEvents: events });

describe('a profile of PyTorch', () => {
  it('has calls with the data that the program asked for', () => {
    const read = profile([
      kernel(
        'ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)',
        200,
        30,
        asked('allreduce', 8, 1000, 1000),
      ),
      kernel('ncclDevKernel_AllGather_RING_LL(...)', 100, 20, asked('_allgather_base', 8, 10, 80, { 'Comms Id': '77' })),
    ]);
    expect(read).toMatchObject({ rank: 3, nRanks: 8, nccl: '2.21.5', gpu: 'NVIDIA H100', compute: [] });
    expect(read.calls.map(({ operation, startUs, durationUs }) => [operation, startUs, durationUs])).toEqual([
      ['_allgather_base', 100, 20],
      ['allreduce', 200, 30],
    ]);
    const [gather, reduce] = ofKineto(read, 'a.json', 0).calls;
    expect(gather).toMatchObject({ collective: 'AllGather', bytes: 160, type: 'bfloat16', size: 8, sequence: '77', stream: '7' });
    expect(gather?.members).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(reduce).toMatchObject({ collective: 'AllReduce', bytes: 2000, sequence: undefined });
  });

  it('has times of other kernels and copies, merged', () => {
    const { compute } = profile([
      kernel('gemm', 0, 10),
      kernel('softmax', 5, 10),
      { ...kernel('Memcpy DtoH', 30, 5), cat: 'gpu_memcpy' },
      { ...kernel('aten::mm', 100, 5), cat: 'cpu_op' },
    ]);
    expect(compute).toEqual([
      [0, 15],
      [30, 35],
    ]);
  });

  it.each([
    ['reduce_scatter_tensor_coalesced', 'ReduceScatter', 80, 10, 160],
    ['_reduce_scatter_base', 'ReduceScatter', 0, 10, 160],
    ['all_gather_into_tensor_coalesced', 'AllGather', 10, 0, 160],
    ['all_to_allv', 'AllToAll', 10, 10, 20],
    ['all_to_all', 'AllToAll', 80, 80, 160],
    ['barrier', 'AllReduce', 1, 1, 2],
    ['send', undefined, 10, 10, 20],
  ])('%s is %s', (name, collective, input, output, bytes) => {
    const [call] = ofKineto(profile([kernel('ncclKernel_X', 0, 1, asked(name, 8, input, output))]), '', 0).calls;
    expect(call).toMatchObject({ operation: name, bytes });
    expect(call?.collective).toBe(collective);
  });

  it('takes what older versions say at the operator, and ranks that a text cuts', () => {
    const cut = {
      ...asked('allreduce', 4, 100, 100),
      'Process Group Ranks': '[2, 4, ...]',
      'Global rank start': 2,
      'Global rank stride': 2,
    };
    const { calls } = profile([
      { ph: 'X', cat: 'cpu_op', name: 'record_param_comms', ts: 0, dur: 1, args: { ...cut, 'External id': 9 } },
      kernel('ncclKernel_AllReduce_RING_LL_Sum_float(...)', 5, 7, { 'External id': 9 }),
      kernel('ncclKernel_Broadcast_RING_LL_Sum_int8_t(...)', 15, 7, {}),
    ]);
    expect(calls).toMatchObject([
      { operation: 'allreduce', ranks: [2, 4, 6, 8], stream: '7' },
      { operation: 'Broadcast', size: 0, inputElements: 0 },
    ]);
  });

  it('takes the marks of PyTorch before 2.3 on the thread that launched the kernel', () => {
    const mark = (name: string, ts: number, tid: number, dims: unknown, type: string) => ({
      ...{ ph: 'X', cat: 'user_annotation', name, pid: 1, tid, ts, dur: 50 },
      args: { 'Input Dims': dims, 'Input type': [type] },
    });
    const launch = (correlation: number, ts: number, tid: number) => ({
      ...{ ph: 'X', cat: 'cuda_runtime', name: 'cudaLaunchKernel', pid: 1, tid, ts, dur: 5, args: { correlation } },
    });
    const read = profile([
      mark('nccl:all_reduce', 0, 1, [[4, 8]], 'c10::Half'),
      mark('nccl:all_to_all', 10, 2, [[6]], 'long int'),
      mark('nccl:all_gather', 100, 1, [[6]], 'float'),
      ...[launch(7, 20, 1), launch(8, 20, 2), launch(9, 120, 1), launch(10, 400, 1)],
      ...[7, 8, 9, 10].map((correlation, place) => kernel('ncclKernel_SendRecv_RING', 1000 + place, 1, { correlation })),
    ]);
    expect(ofKineto(read, '', 0).calls.map(({ operation, bytes, type }) => [operation, bytes, type])).toEqual([
      ['all_reduce', 64, 'float16'],
      ['all_to_all', 48, 'int64'],
      // The part of one rank of eight.
      ['all_gather', 192, 'float32'],
      ['SendRecv', 0, undefined],
    ]);
  });

  it('may lack everything', () => {
    expect(isKinetoTrace({ entries: [] })).toBe(false);
    expect(readKineto({ traceEvents: [null, 3, {}, { ph: 'X', cat: 'kernel' }] })).toMatchObject({
      calls: [],
      compute: [],
      rank: undefined,
    });
  });
});
