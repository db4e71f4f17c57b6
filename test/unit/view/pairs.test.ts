import { describe, expect, it } from 'vitest';
import { NcclLogReader } from '../../../src/planner/log/job/read-log.js';
import { measuredPairs } from '../../../src/view/pairs/pairs.js';
import { pairsPicture } from '../../../src/view/pairs/picture.js';
import { drawList } from './draw-list.js';

/** Pairs of hosts that a sweep of nccl-tests measured at these speeds; undefined for pairs that were not run. */
function sweepOf(hosts: readonly string[], speed: (a: string, b: string) => number | undefined) {
  const reader = new NcclLogReader();
  reader.openFile('sweep.log');
  hosts.forEach((a, index) =>
    hosts.slice(index + 1).forEach((b) => {
      const gbps = speed(a, b);
      if (gbps === undefined) return;
      const lines = [
        '# nThread 1 nGpus 1 minBytes 8 maxBytes 1 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0',
        ...[a, b].map(
          (host, rank) => `#  Rank  ${rank} Group  0 Pid 8955 on     ${host} device  0 [0002:00:01] NVIDIA H100 80GB HBM3`,
        ),
        `  1073741824  268435456  float  sum  -1  1000.0  ${gbps}  ${gbps}  0  1001.0  ${gbps}  ${gbps}  0`,
        '# Avg bus bandwidth    : 1',
      ];
      for (const line of lines) reader.readLine(line);
    }),
  );
  return measuredPairs(reader.finish());
}

const names = (count: number) => Array.from({ length: count }, (_, index) => `n${index + 1}`);

describe('the heat map of measured pairs', () => {
  it('frames and lists the pair that is slow', async () => {
    const [pairs] = sweepOf(names(4), (a, b) => (a === 'n2' && b === 'n4' ? 151.25 : b === 'n3' && a === 'n1' ? undefined : 370));
    await expect(drawList(pairsPicture(pairs!))).toMatchFileSnapshot('golden/pairs-4.txt');
  });

  it('orders hosts by their numbers, and frames nothing where all pairs are alike', () => {
    const [pairs] = sweepOf(names(12), () => 48);
    expect(pairs?.names).toEqual(names(12));
    const { marks, title } = pairsPicture(pairs!);
    expect(title).toContain('no pair stands out');
    expect(marks.filter(({ look }) => look === 'frame')).toEqual([]);
  });

  it('has small cells without numbers for many hosts', () => {
    const [pairs] = sweepOf(names(40), (a, b) => (a === 'n7' || b === 'n7' ? 20 : 48));
    const { marks } = pairsPicture(pairs!);
    expect(marks.filter(({ look }) => look === 'onband' || look === 'onfull')).toEqual([]);
    expect(marks.filter(({ look }) => look === 'frame')).toHaveLength(2 * 39);
    expect(marks.filter(({ look }) => look === 'text')).toHaveLength(12);
  });

  it('shows pairs of GPUs as p2pBandwidthLatencyTest measured them', () => {
    const reader = new NcclLogReader();
    reader.openFile('p2p.txt');
    const table = (head: string, rows: readonly string[]) => [head, '   D\\D     0      1      2', ...rows];
    for (const line of [
      '[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]',
      ...table('P2P Connectivity Matrix', ['     0     1     1     1', '     1     1     1     1', '     2     1     1     1']),
      ...table('Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)', [
        '     0  900.0  20.0  20.0',
        '     1  20.0  900.0  20.0',
        '     2  20.0  20.0  900.0',
      ]),
      ...table('Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)', [
        '     0  900.0  250.0  250.0',
        '     1  250.0  900.0  90.0',
        '     2  250.0  90.0  900.0',
      ]),
    ])
      reader.readLine(line);
    const [pairs] = measuredPairs(reader.finish());
    expect(pairs?.names).toEqual(['0', '1', '2']);
    expect(pairs?.pairs.get('1 2')).toEqual({ gbps: 90, nRuns: 1, isSlow: true });
  });

  it('is not drawn for one pair', () => {
    expect(sweepOf(names(2), () => 48)).toEqual([]);
  });
});
