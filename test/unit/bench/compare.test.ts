import { describe, expect, it } from 'vitest';
import { compare, stateOf, type TimingRecord } from '../../../bench/lib/compare.mjs';
import { ratioTarget } from '../../../bench/lib/targets.mjs';
import { report as hostsReport } from '../../../bench/suites/hosts.mjs';
import { report } from '../../../bench/suites/runtime.mjs';

const timing = (over: Partial<TimingRecord>): TimingRecord => ({
  lib: 'openmpi',
  cfg: 'default',
  coll: 'all_reduce',
  type: 'float',
  ranks: 2,
  bytes: 32768,
  inplace: 0,
  calls: 1,
  link_ns: [60, 60],
  others: [0, 0],
  time_us: 10,
  wrong: 0,
  ...over,
});

describe('the state of the cores', () => {
  it.each<[[number, number], string | undefined]>([
    [[50, 119], 'near'],
    [[120, 300], 'far'],
    [[60, 200], undefined],
    [[0, 0], 'any'],
  ])('%j is %s', (link_ns, state) => {
    expect(stateOf(timing({ link_ns }))).toBe(state);
  });
});

describe('comparison', () => {
  it('takes the lowest median of each tuning and the best tuning of all peers, and separates near from far', () => {
    const comparisons = compare([
      timing({ cfg: 'a', time_us: 12 }),
      timing({ cfg: 'a', time_us: 9 }),
      timing({ cfg: 'b', time_us: 10 }),
      timing({ lib: 'mpich', cfg: 'c', time_us: 11 }),
      timing({ lib: 'tccl', cfg: 'sync', time_us: 3 }),
      timing({ lib: 'tccl', cfg: 'sync', time_us: 4 }),
      timing({ cfg: 'a', time_us: 30, link_ns: [200, 210] }),
    ]);
    expect(
      comparisons.map(({ state, best, ours }) => [state, best?.lib, best?.cfg, best?.us, best?.runs, ours['sync']?.us]),
    ).toEqual([
      ['near', 'openmpi', 'a', 9, 2, 3],
      ['far', 'openmpi', 'a', 30, 1, undefined],
    ]);
  });

  it('ignores records with wrong results, or taken while the cores moved', () => {
    expect(compare([timing({ wrong: 3 }), timing({ link_ns: [60, 200] })])).toEqual([]);
  });

  it('uses records taken beside other processes only without better ones, and marks them', () => {
    const [comparison] = compare([
      timing({ cfg: 'a', time_us: 5, others: [0, 2] }),
      timing({ cfg: 'a', time_us: 9 }),
      timing({ cfg: 'b', time_us: 7, others: [1, 1] }),
    ]);
    expect(comparison?.peers).toEqual([
      { lib: 'openmpi', cfg: 'b', us: 7, runs: 1, noisy: true },
      { lib: 'openmpi', cfg: 'a', us: 9, runs: 1, noisy: false },
    ]);
  });

  it('skips records of other suites', () => {
    expect(compare([{ start: 'tccl run', ms: 4 }, { ceiling: 'add' }, { machine: {} }])).toEqual([]);
  });
});

describe('targets', () => {
  it('hold for two ranks on near cores only, and for single calls', () => {
    const row = { coll: 'all_reduce', type: 'float', ranks: 2, calls: 1, state: 'near', bytes: 32768 };
    expect(ratioTarget(row)).toBe(0.22);
    expect(ratioTarget({ ...row, state: 'far' })).toBeUndefined();
    expect(ratioTarget({ ...row, ranks: 8, state: 'far' })).toBe(0.6);
    expect(ratioTarget({ ...row, calls: 20 })).toBeUndefined();
    expect(ratioTarget({ ...row, bytes: 4096 })).toBeUndefined();
  });
});

it('the table sets each ratio beside its target', () => {
  const text = report([
    timing({ time_us: 10 }),
    timing({ lib: 'tccl', cfg: 'sync', time_us: 2 }),
    timing({ lib: 'tccl', cfg: 'promise', time_us: 3 }),
    timing({ lib: 'tccl', cfg: 'plain', time_us: 5 }),
    timing({ lib: 'tccl', cfg: 'in place', time_us: 1.6 }),
    // For as many threads as this machine has cores for; what was measured in another state, or without reading first,
    // does not count.
    ...[1, 2].flatMap((threads) => [
      limit('c=a+b   avx2', threads, 131.072),
      limit('c=a+b   avx2', threads, 262.144, [200, 200]),
      limit('c=a+b   avx512 nt', threads, 150, [60, 60], 'add nt'),
      limit('a+=b    avx2', threads, 163.84),
      limit('c=a     memcpy', threads, 100, [60, 60], 'copy'),
    ]),
  ]);
  expect(text).toBe(`\
all_reduce float, 2 ranks, cores near: lowest median of the rounds in µs, and ratios

| size   |       best peer |      | sync | sync / best, target | promise | promise / sync, target | plain | plain / best, target |
|:-------|----------------:|-----:|-----:|--------------------:|--------:|-----------------------:|------:|---------------------:|
| 32 KiB | openmpi default | 10.0 | 2.00 |     0.20 ≤ 0.22 met |    3.00 |     1.50 > 1.15 missed |  5.00 |         0.50 ≤ 1 met |

all_reduce float against the machine's own loops with as many threads, in the same state of the cores: GB/s moved

| size                  | out of place | c=a+b | of it | in place |  a+=b | of it |   c=a |
|:----------------------|-------------:|------:|------:|---------:|------:|------:|------:|
| 32 KiB, 2 ranks, near |         65.5 | 131.1 |  50 % |     81.9 | 163.8 |  50 % | 100.0 |`);
});

it('a plain socket between hosts is a limit and no peer', () => {
  const text = hostsReport(
    [
      timing({ time_us: 10 }),
      timing({ lib: 'sockets', cfg: 'plain', time_us: 4 }),
      timing({ lib: 'tccl', cfg: 'sync', time_us: 5 }),
      timing({ lib: 'tccl', cfg: 'promise', time_us: 12 }),
    ].map((record) => ({ hosts: 2, ...record })),
  );
  expect(text).toBe(`\
all_reduce float, 2 hosts of 1: lowest median of the rounds in µs, and ratios

| size   |       best peer |      | sync | sync / best, target | promise | promise / best, target | plain socket in C |
|:-------|----------------:|-----:|-----:|--------------------:|--------:|-----------------------:|------------------:|
| 32 KiB | openmpi default | 10.0 | 5.00 |      0.50 ≤ 0.8 met |    12.0 |        1.20 > 1 missed |              4.00 |`);
});

function limit(
  kernel: string,
  threads: number,
  moved_GBps: number,
  link_ns = [60, 60],
  ceiling = 'add',
): Record<string, unknown> {
  return { ceiling, kernel, bytes: 32768, threads, moved_GBps, link_ns };
}
