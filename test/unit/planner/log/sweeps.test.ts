import { describe, expect, it } from 'vitest';
import { codes, findingsOf } from './read.js';

describe('a sweep of nccl-tests over pairs of hosts', () => {
  const table = (a: string, b: string, gbps: number) => [
    '# nThread 1 nGpus 1 minBytes 8 maxBytes 1 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0',
    ...[a, b].map(
      (host, rank) => `#  Rank  ${rank} Group  0 Pid 895544 on     ${host} device  0 [0002:00:01] NVIDIA H100 80GB HBM3`,
    ),
    `  1073741824  268435456  float  sum  -1  1000.0  ${gbps}  ${gbps}  0  1001.0  ${gbps}  ${gbps}  0`,
    '# Avg bus bandwidth    : 1',
  ];
  const sweep = (speed: (a: string, b: string) => number) =>
    ['n1', 'n2', 'n3', 'n4'].flatMap((a, index, all) => all.slice(index + 1).flatMap((b) => table(a, b, speed(a, b))));

  it.each(['[1,0]<stdout>:', '0: ', 'n1: ', '(Worker pid=77) ', '[pod/sweep-1/main] ', '2025-11-17T03:12:44.123Z '])(
    'is read behind the prefixes of launchers: %s',
    (prefix) => {
      const lines = sweep((a, b) => (a === 'n2' || b === 'n2' ? 150 : 370)).map((line) => `${prefix}${line}`);
      expect(findingsOf(lines)).toMatchObject([
        { code: 'host-slow', problem: expect.stringContaining('3 of 6 pairs') as string },
      ]);
    },
  );

  it('names the host that is slow with every other, or else the pair', () => {
    expect(codes(findingsOf(sweep(() => 48)))).toEqual([]);
    const [host] = findingsOf(sweep((a, b) => (a === 'n3' || b === 'n3' ? 24 : 48)));
    expect(host).toMatchObject({ code: 'host-slow', problem: expect.stringMatching(/^n3 is slow/) as string });
    expect(findingsOf(sweep((a, b) => (a === 'n1' && b === 'n2' ? 20 : 48)))[0]).toMatchObject({
      code: 'pair-slow',
      problem: expect.stringMatching(/^n1 with n2/) as string,
    });
  });
});
