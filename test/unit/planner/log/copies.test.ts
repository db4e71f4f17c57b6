import { describe, expect, it } from 'vitest';
import { NcclLogReader } from '../../../../src/planner/log/job/read-log.js';
import { measuredPairs } from '../../../../src/view/pairs/pairs.js';
import { findingsOf } from './read.js';

const found = (text: string) => findingsOf(text.split('\n')).map(({ code, problem }) => `${code}: ${problem}`);

function devices(product: string, count: number): string[] {
  return [
    'nvbandwidth Version: v0.7',
    ...Array.from({ length: count }, (_, gpu) => `Device ${gpu}: ${product} (00000000:${gpu + 1}0:00)`),
    '',
  ];
}

function pairs(count: number, rate: (from: number, to: number) => number, test = 'device_to_device_memcpy_write_ce'): string[] {
  const gpus = Array.from({ length: count }, (_, gpu) => gpu);
  return [
    `Running ${test}.`,
    'memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)',
    `          ${gpus.join('         ')}`,
    ...gpus.map((from) => `${from} ${gpus.map((to) => (from === to ? 'N/A' : rate(from, to).toFixed(2))).join('    ')}`),
    '',
    `SUM ${test} 1.00`,
  ];
}

describe('nvbandwidth', () => {
  // NVIDIA/nvbandwidth#50: six RTX A6000, which an expert of the thread calls good.
  it('has no finding where pairs differ by their path only', () => {
    const a6000 = `nvbandwidth Version: v0.8
Driver Version: 580.95.05

...

memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
           0         1         2         3         4         5
 0       N/A     26.34     26.35     21.95     22.64     21.80
 1     26.34       N/A     26.34     21.86     22.62     22.63
 2     26.34     26.35       N/A     22.36     21.87     22.17
 3     21.82     21.82     22.26       N/A     26.34     26.35
 4     22.64     22.64     21.81     26.35       N/A     26.34
 5     21.86     22.67     22.01     26.34     26.35       N/A

SUM device_to_device_memcpy_read_ce 715.53`;
    expect(found(a6000)).toEqual([]);
    const reader = new NcclLogReader();
    reader.openFile('nvbandwidth.txt');
    for (const line of a6000.split('\n')) reader.readLine(line);
    const [map] = measuredPairs(reader.finish());
    expect(map).toMatchObject({ title: 'device_to_device_memcpy_read_ce, between GPUs', names: ['0', '1', '2', '3', '4', '5'] });
    expect(map?.pairs.get('3 0')).toMatchObject({ gbps: 21.82, isSlow: false });
  });

  it('names a GPU whose copies to the host are slow', () => {
    // NVIDIA/nvbandwidth#6
    const text = [
      'Running host_to_device_memcpy_ce.',
      'memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)',
      ' 0 1 2 3',
      ' 0 14.2 57.06 56.68 57.07',
    ];
    expect(found(text.join('\n'))).toEqual([
      'pcie-slow: GPU 0 reaches 14.2 GB/s to its host, others 57.1 (host_to_device_memcpy_ce)',
    ]);
    // NVIDIA/nvbandwidth#24, quoted in a thread: kernels copy with less, all the same.
    expect(
      found(
        '> Running host_to_device_memcpy_sm.\nmemcpy SM CPU(row) -> GPU(column) bandwidth (GB/s)\n0         1         2         3         4         5         6         7\n0     35.19     35.25     35.30     35.03     35.25     35.32     35.39     35.06',
      ),
    ).toEqual([]);
  });

  it('names data that came back wrong', () => {
    // NVIDIA/nvbandwidth#34
    const text = [
      ...devices('NVIDIA A100-SXM4-80GB', 8),
      'Running device_to_device_memcpy_read_ce.',
      ' Invalid value when checking the pattern at 0x70a640000000',
      ' Current offset : 11136 ',
    ];
    expect(found(text.join('\n'))).toEqual([
      'result-wrong: nvbandwidth read back other data than it had written (device_to_device_memcpy_read_ce)',
    ]);
  });

  it('says that GPUs have no P2P where a test of pairs was left out', () => {
    // NVIDIA/nvbandwidth#13
    const waived = (count: number) =>
      [...devices('NVIDIA GeForce RTX 2080 Ti', count), 'Waiving device_to_device_memcpy_write_ce.'].join('\n');
    expect(found(waived(2))[0]).toContain('p2p-unsupported: no pair of the 2 GPUs has P2P');
    expect(found(waived(1))).toEqual([]);
  });

  it('compares pairs with NVLinks where all go to switches', () => {
    const h100 = (rate: (from: number, to: number) => number) =>
      found([...devices('NVIDIA H100 80GB HBM3', 8), ...pairs(8, rate)].join('\n'));
    expect(h100(() => 389)).toEqual([]);
    expect(h100(() => 38)).toEqual([
      'nvlink-degraded: copies between GPUs reach 38.0 GB/s, 18 NVLinks carry about 371 (device_to_device_memcpy_write_ce)',
    ]);
    expect(h100((from, to) => (from === 5 || to === 5 ? 190 : 389))).toEqual([
      'nvlink-degraded: GPU 0 and 5 reach 190.0 GB/s, the usual pair 389.0 (device_to_device_memcpy_write_ce; 14 slow cells, all with GPU 5)',
    ]);
    // Both directions share a link: the rate of one is no measure of it.
    const both = pairs(8, () => 150, 'device_to_device_bidirectional_memcpy_write_ce');
    expect(found([...devices('NVIDIA H100 80GB HBM3', 8), ...both].join('\n'))).toEqual([]);
  });

  it('is read as JSON', () => {
    const reader = new NcclLogReader();
    reader.openFile('nvbandwidth.json');
    const json = {
      nvbandwidth: {
        'CUDA Runtime Version': 12060,
        'GPU Device list': [
          '0: NVIDIA H100 80GB HBM3 (00000000:19:00): (gpu1)',
          '1: NVIDIA H100 80GB HBM3 (00000000:3b:00): (gpu1)',
        ],
        testcases: [
          {
            name: 'host_to_device_memcpy_ce',
            status: 'Passed',
            bandwidth_description: 'memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)',
            bandwidth_matrix: [['14.2', '57.06', '56.68']],
            sum: 127.94,
          },
          { name: 'device_to_device_memcpy_read_ce', status: 'Waived' },
        ],
      },
    };
    expect(reader.readWhole('json', Buffer.from(JSON.stringify(json)))).toBe('results of nvbandwidth');
    expect(reader.finish().tools).toMatchObject([
      { tool: 'nvbandwidth', facts: { cases: [{ kind: 'host', columns: ['0', '1', '2'] }, { isWaived: true }] } },
    ]);
  });
});

describe('nvloom_cli', () => {
  it('has tables separated by tabs, with racks and notes', () => {
    const processes = [0, 1, 2, 3].map(
      (rank) => `Process ${rank} (gpu${rank >> 1}): device ${rank % 2}: NVIDIA GB200 (00000008:01:00); rackGuid: 3f`,
    );
    const rows = [0, 1, 2, 3].map(
      (from) =>
        `${from}\t${[0, 1, 2, 3].map((to) => (from === to ? 'N/A' : from === 2 || to === 2 ? '391.10' : '782.33')).join('\t')}\t`,
    );
    const text = [
      'nvloom_cli 1.4.0',
      ...processes,
      '',
      'Running device_to_device_unidir_write_ce',
      '\t0\t1\t2\t3\t',
      ...rows,
      '',
      'Min device_to_device_unidir_write_ce 391.10 GB/s',
    ];
    expect(found(text.join('\n'))).toEqual([
      'nvlink-degraded: GPU 0 and 2 reach 391.1 GB/s, the usual pair 782.3 (device_to_device_unidir_write_ce; 6 slow cells, all with GPU 2)',
    ]);
  });
});
