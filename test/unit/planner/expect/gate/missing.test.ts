import { describe, expect, it } from 'vitest';
import { missingParts } from '../../../../../src/planner/expect/gate/missing.js';
import { needsOf } from '../../../../../src/planner/expect/gate/needs.js';
import { NcclLogReader } from '../../../../../src/planner/log/job/read-log.js';
import { machine } from '../../../../../src/planner/topology/catalogue/machines.js';

const needs = needsOf(machine('dgx-h100'));

function shownBy(text: string, nHosts = 1) {
  const reader = new NcclLogReader();
  reader.openFile('host.txt');
  for (const line of text.split('\n')) reader.readLine(line);
  return missingParts(reader.finish(), needs, nHosts);
}
const problems = (text: string, nHosts = 1) => shownBy(text, nHosts).missing.map(({ part, problem }) => `${part}: ${problem}`);

function matrix(count: number, cell: (a: number, b: number) => string = () => 'NV18'): string {
  const gpus = Array.from({ length: count }, (_, index) => `GPU${index}`);
  const rows = gpus.map((gpu, a) => [gpu, ...gpus.map((_, b) => (a === b ? ' X ' : cell(a, b))), '0-55', '0'].join('\t'));
  return ['', ...[`\t${gpus.join('\t')}\tCPU Affinity\tNUMA Affinity`, ...rows], ''].join('\n');
}

function table(hosts: readonly (readonly [name: string, nRanks: number])[], wrong = 0): string {
  const ranks = hosts.flatMap(([name, nRanks]) => Array.from({ length: nRanks }, () => name));
  return [
    '# Collective test starting: all_reduce_perf',
    '# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0',
    ...ranks.map(
      (name, rank) => `#  Rank ${rank} Group  0 Pid ${100 + rank} on ${name} device  ${rank % 8} [0x10] NVIDIA H100 80GB HBM3`,
    ),
    '#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong',
    `1073741824 268435456 float sum -1 4000 268 470 ${wrong} 4000 268 470 0`,
    '# Avg bus bandwidth    : 470',
  ].join('\n');
}

describe('parts of a machine', () => {
  it('are counted from its topology', () => {
    expect(needs).toEqual({
      gpus: 8,
      nets: 8,
      netGbps: 400,
      gpuLink: { gtps: 32, lanes: 16 },
      nicLink: { gtps: 32, lanes: 16 },
      nvlinks: 18,
      nvlinkGBps: 371,
      hasNvSwitch: true,
    });
    expect(needsOf(machine('gb200-nvl72'))).toMatchObject({ gpus: 4, nets: 4, nvlinks: 18 });
  });
});

describe('missing parts', () => {
  it('a list of GPUs shows no NVLinks, so that none is missing', () => {
    const list = Array.from(
      { length: 8 },
      (_, gpu) => `GPU ${gpu}: NVIDIA H100 80GB HBM3 (UUID: GPU-${gpu}0000000-0000-0000-0000-000000000000)`,
    );
    expect(problems(list.join('\n'))).toEqual([]);
    const links = [...list.slice(0, 7).map((head) => `${head}\n${'\t Link 0: 26.562 GB/s\n'.repeat(18)}`), list[7]];
    expect(problems(links.join('\n'))).toEqual(['nvlinks: GPU 7 has 0 of 18 NVLinks']);
  });

  it('whole hosts miss nothing', () => {
    expect(problems(matrix(8))).toEqual([]);
    expect(
      problems(
        table([
          ['a', 8],
          ['b', 8],
        ]),
        2,
      ),
    ).toEqual([]);
  });

  it('a GPU comes before its bandwidth', () => {
    expect(problems(matrix(7))).toEqual(['gpus: 7 of 8 GPUs']);
    expect(
      problems(
        table(
          [
            ['a', 8],
            ['b', 7],
          ],
          3,
        ),
        2,
      ),
    ).toEqual(['gpus: 7 of 8 ranks', 'data: 3 wrong elements in results of all_reduce']);
  });

  it('a host comes before GPUs', () => {
    expect(problems(table([['a', 7]]), 2)).toEqual(['hosts: 1 host of 2 (a)', 'gpus: 7 of 8 ranks']);
  });

  it('NVLinks of a GPU are counted by the matrix and by nvidia-smi nvlink', () => {
    expect(problems(matrix(8, (a, b) => (a === 3 || b === 3 ? 'NV17' : 'NV18')))[3]).toBe('nvlinks: GPU3 has 17 of 18 NVLinks');
    expect(shownBy(matrix(8)).shown).toContain('nvlinks');
  });

  it('a NIC that is down and one that trained down are missing', () => {
    const port = (index: number, state: string, rate: number) =>
      `CA 'mlx5_${index}'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: ${state}\n\t\tPhysical state: ${state === 'Active' ? 'LinkUp' : 'Disabled'}\n\t\tRate: ${rate}\n\t\tLink layer: InfiniBand`;
    const ports = Array.from({ length: 8 }, (_, index) => port(index, index === 5 ? 'Down' : 'Active', index === 2 ? 200 : 400));
    expect(problems(ports.join('\n'))).toEqual([
      'nics: 7 of 8 NICs (mlx5_5 is down)',
      'nic-rate: mlx5_2 runs at 200 of 400 Gb/s',
    ]);
  });

  it('a NIC that one host lacks is named by those of the others', () => {
    const host = (name: string, ports: readonly number[]) =>
      [
        `# tccl: host ${name}, command ibstat`,
        ...ports.map(
          (index) =>
            `CA 'mlx5_${index}'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 400\n\t\tLink layer: InfiniBand`,
        ),
      ].join('\n');
    const text = `${host('a', [0, 1, 2, 3, 4, 5, 6, 7])}\n${host('b', [0, 1, 2, 3, 5, 6, 7])}`;
    expect(shownBy(text, 2).missing).toMatchObject([{ part: 'nics', host: 'b', problem: '7 of 8 NICs (mlx5_4 is not there)' }]);
  });

  it('a PCIe generation below the machine’s is read from nvidia-smi -q', () => {
    const gpus = Array.from({ length: 8 }, (_, gpu) => [
      `GPU 00000000:${gpu + 1}9:00.0`,
      '    Product Name                          : NVIDIA H100 80GB HBM3',
      '    PCI',
      '        GPU Link Info',
      '            PCIe Generation',
      '                Max                       : 5',
      `                Current                   : ${gpu === 6 ? 4 : 5}`,
      '            Link Width',
      '                Max                       : 16x',
      '                Current                   : 16x',
    ]);
    const log = ['==============NVSMI LOG==============', '', 'Attached GPUs                             : 8', ...gpus.flat()];
    expect(problems(log.join('\n'))).toEqual([
      'pcie: the PCIe link of GPU 00000000:79:00.0 has 16 lanes of 16 GT/s, not 16 of 32',
    ]);
  });

  it('a PCIe link of less lanes or speed is missing; a GPU without work may be at 2.5 GT/s', () => {
    const device = (bus: string, name: string, speed: string, width: number) =>
      `${bus}:00.0 ${name}\n\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported\n\t\tLnkSta:\tSpeed ${speed}, Width x${width}`;
    const gpu = '3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)';
    expect(problems(device('1b', gpu, '16GT/s (downgraded)', 16))).toEqual([
      'pcie: the PCIe link of GPU 1b:00.0 has 16 lanes of 16 GT/s, not 16 of 32',
    ]);
    expect(problems(device('1b', gpu, '32GT/s', 8))[0]).toContain('has 8 lanes of 32 GT/s');
    expect(problems(device('1b', gpu, '2.5GT/s (downgraded)', 16))).toEqual([]);
  });

  it('sockets between hosts miss the NICs', () => {
    const log = [
      'gpu1:3591:3591 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>',
      'gpu1:3591:3591 [0] NCCL INFO NCCL version 2.27.7+cuda12.8',
      'gpu1:3591:3600 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>',
      'gpu1:3591:3600 [0] NCCL INFO Using network Socket',
    ].join('\n');
    expect(problems(log, 2)).toEqual(['nics: NCCL uses sockets in place of the NICs’ own plugin']);
    expect(problems(log, 1)).toEqual([]);
    const ib = log
      .replaceAll(
        'NET/Socket : Using [0]eth0:10.0.0.1<0>',
        'NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>',
      )
      .replace('network Socket', 'network IB');
    expect(problems(ib, 2)).toEqual(['nics: 2 of 8 NICs']);
  });

  // NVIDIA/nvbandwidth#6: copies to one of four GPUs reach a quarter of the others.
  it('copies that nvbandwidth measured show a slow link and NVLinks that carry less', () => {
    const toHost = (rates: readonly number[]) =>
      [
        'Running host_to_device_memcpy_ce.',
        'memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)',
        ' 0 1 2 3',
        ` 0 ${rates.join(' ')}`,
      ].join('\n');
    expect(problems(toHost([14.2, 57.06, 56.68, 57.07]))).toEqual([
      'pcie: copies between GPU 0 and its host reach 14.2 GB/s, 16 lanes of 32 GT/s carry 64',
    ]);
    expect(problems(toHost([57.1, 57.06, 56.68, 57.07]))).toEqual([]);
    expect(shownBy(toHost([57.1, 57.06, 56.68, 57.07])).shown).toContain('pcie');
    const between =
      'memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)\n 0 1\n0 0.00 26.34\n1 376.1 0.00\n\nSUM device_to_device_memcpy_write_ce 402.44';
    expect(problems(between)).toEqual([
      'nvlinks: copies between GPUs 0 and 1 reach 26.3 GB/s, 18 NVLinks carry 371; 1 of 2 are this slow',
    ]);
    expect(problems('nvbandwidth Version: v0.2\nWaiving device_to_device_memcpy_write_ce.')).toEqual([
      'nvlinks: no pair of GPUs has P2P (nvbandwidth left out device_to_device_memcpy_write_ce)',
    ]);
  });
});
