import { describe, expect, it } from 'vitest';
import { readResults } from '../../../../src/planner/expect/results.js';

const head = `# nccl-tests version 2.17.8 nccl-headers=22902 nccl-library=22902
# Collective test starting: all_gather_perf
# nThread 1 nGpus 1 minBytes 33554432 maxBytes 68719476736 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid 2614280 on node1 device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid 3856435 on node2 device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
`;
const row =
  '    67108864        838860    double    none      -1  1329.46   50.48   45.43       0  1317.94   50.92   45.83     N/A';

describe('results of nccl-tests', () => {
  it('text gives collective, ranks, hosts, version, launch, and the better time of each size', () => {
    const [results, ...others] = readResults(`node1: starting\n${head}${row}\n# Avg bus bandwidth    : 45.6\n`);
    expect(others).toEqual([]);
    expect(results).toMatchObject({ collective: 'AllGather', nRanks: 2, hosts: ['node1', 'node2'], variables: {} });
    expect(results?.run).toEqual({
      nccl: '2.29.2',
      nProcesses: 2,
      gpusPerThread: 1,
      gpus: ['NVIDIA H100 80GB HBM3'],
      isGraph: false,
      isCpuTime: false,
    });
    expect(results?.rows).toEqual([{ bytes: 67108864, type: 'float64', timeUs: 1317.94, place: 'line 13' }]);
  });

  it('rows with columns of single iterations and a time of day are read', () => {
    const wide = `1048576 262144 float sum -1  45.2 23.20 43.50 0 44.1 47.0 46.9 1.2  44.0 23.83 44.68 0 43.0 46.0 45.9 1.1 2026-02-03 10:11:12`;
    expect(readResults(`${head}${wide}`)[0]?.rows).toMatchObject([{ bytes: 1048576, type: 'float32', timeUs: 44 }]);
  });

  it('a table of an old program is an all-reduce if busbw exceeds algbw; otherwise the caller names the collective', () => {
    const reduce = '1048576 262144 float sum 45.2 23.20 43.50 0 44.0 23.83 44.68 0';
    const gather = '1048576 262144 float none 45.2 23.20 20.30 0 44.0 23.83 20.85 0';
    expect(readResults(reduce)[0]?.collective).toBe('AllReduce');
    expect(() => readResults(gather)).toThrow(/does not say what was measured: add --collective/);
    expect(readResults(gather, 'all_gather')[0]?.collective).toBe('AllGather');
  });

  it('a table with one measurement a row is read, by its head or without one', () => {
    const one = head.replace(/(#wrong) {5}time.*/, '$1');
    const alone = '  1073741824     268435456     float     sum      -1   4000.0  268.44  469.76      0';
    expect(readResults(`${one}${alone}`, 'all_reduce')[0]?.rows).toMatchObject([{ bytes: 2 ** 30, timeUs: 4000 }]);
    expect(readResults(alone)[0]).toMatchObject({ collective: 'AllReduce', rows: [{ bytes: 2 ** 30, timeUs: 4000 }] });
    // A row whose second half is missing is none.
    expect(() => readResults(`${head}${alone}`)).toThrow(/row is not whole/);
  });

  it('columns that only RCCL has are passed over, by the head', () => {
    const row = '  1048576 262144 float sum -1 31.10 33.71 33.71 0 30.94 33.89 33.89 0 RING LL128 32';
    const wide = head.replace(/#wrong\s*$/m, '#wrong  algo  proto  nchannels');
    expect(readResults(`${wide}${row}`, 'all_reduce')[0]?.rows).toMatchObject([{ bytes: 2 ** 20, timeUs: 30.94 }]);
  });

  it('copies between pairs are named and refused', () => {
    const nvbandwidth = [
      'nvbandwidth Version: v0.4',
      'Running device_to_device_memcpy_read_ce.',
      'memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)',
      '          0         1',
      '0       N/A    370.90',
      '1    370.90       N/A',
    ].join('\n');
    expect(() => readResults(nvbandwidth)).toThrow(/output of nvbandwidth, which measures copies/);
  });

  it.each([
    ['a row without its last columns', `${head}67108864 838860 double none -1 1329.46 50.48`, 12, /row is not whole/],
    ['a row that another one follows', `${head}67108864 838860 double none -1 1329.46\n${row}`, 12, /row is not whole/],
    ['columns of numbers alone', `${head}67108864 1329.46 50.48 45.43`, 12, /row is not whole/],
    ['times of a CPU', `${head.replace('    time ', ' cputime ')}${row}`, 12, /run without -C/],
  ])('%s is refused with its line', (_, text, line, message) => {
    expect(() => readResults(text)).toThrow(message);
    expect(() => readResults(text)).toThrow(expect.objectContaining({ code: 'CONTENT', line }) as Error);
  });

  it.each([
    ['no table', 'hello\n', undefined, /no table of nccl-tests/],
    [
      'a program that is not simulated',
      head.replace('all_gather_perf', 'hypercube_perf') + row,
      undefined,
      /hypercube is no coll/,
    ],
    ['a collective that there is not', head + row, 'all_reduces', /did you mean all_reduce\?/],
    ['JSON that breaks off', '{"version":3,', undefined, /JSON is not whole/],
    ['JSON without results', '{"version":3,"args":["all_reduce_perf"]}', undefined, /results\.results is missing/],
  ])('%s is refused', (_, text, collective, message) => {
    expect(() => readResults(text, collective)).toThrow(message);
  });
});

describe('JSON of nccl-tests', () => {
  const json = (changes: object = {}) =>
    JSON.stringify({
      version: 3,
      args: ['./build/all_reduce_perf', '-g', '4'],
      env: ['HOME=/root', 'NCCL_ALGO=Ring', 'NCCL_PROTO='],
      nccl_version: 22902,
      config: {
        nthreads: 1,
        ngpus: 4,
        graph: 2,
        devices: [
          { rank: 0, pid: 1, hostname: 'a', device: 0, device_info: 'NVIDIA B200' },
          { rank: 4, pid: 1, hostname: 'b', device: 0, device_info: 'NVIDIA B200' },
        ],
      },
      results: [
        { size: 0, count: 0, type: 'float', out_of_place: { time: 5 }, in_place: { time: 5 } },
        { size: 1024, count: 256, type: 'float', out_of_place: { time: 21.5 }, in_place: { time: 20.25 } },
        { size: 2048, count: 512, type: 'bfloat16', out_of_place: null, in_place: { time: 22 } },
      ],
      ...changes,
    });

  it('is read: variables of NCCL, ranks of all processes, graph launches', () => {
    expect(readResults(json())).toEqual([
      {
        collective: 'AllReduce',
        nRanks: 8,
        hosts: ['a', 'b'],
        run: { nccl: '2.29.2', nProcesses: 2, gpusPerThread: 4, gpus: ['NVIDIA B200'], isGraph: true, isCpuTime: false },
        variables: { NCCL_ALGO: 'Ring', NCCL_PROTO: '' },
        rows: [
          { bytes: 1024, type: 'float32', timeUs: 20.25, place: 'results[1]' },
          { bytes: 2048, type: 'bfloat16', timeUs: 22, place: 'results[2]' },
        ],
      },
    ]);
  });

  it.each([
    [{ results: [{ size: 1024, type: 'float' }] }, /results\.results\[0\]\.out_of_place is missing/],
    [{ results: [{ size: 1024, type: 'float', out_of_place: { cpu_time: 3 } }] }, /run without -C/],
    [{ results: [{ size: '1K', type: 'float' }] }, /results\[0\]\.size is "1K"; it has to be a number/],
  ])('%j is refused with its field', (changes, message) => {
    expect(() => readResults(json(changes))).toThrow(message);
  });
});
