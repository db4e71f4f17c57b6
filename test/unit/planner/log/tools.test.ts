import { describe, expect, it } from 'vitest';
import type { LogFinding } from '../../../../src/planner/log/checks/finding.js';
import { verdictOf } from '../../../../src/planner/log/verdict/verdict.js';
import { codes, findingsOf } from './read.js';

const found = (text: string): LogFinding[] => findingsOf(text.split('\n'));

describe('nvidia-smi', () => {
  const matrix = (rows: readonly string[]) =>
    `\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\n${rows.map((row, index) => `GPU${index}\t${row.replaceAll(' ', '\t')}\tPXB\t0-23`).join('\n')}`;
  const check = (...rows: string[]) =>
    found(matrix(rows)).map(({ code, problem }) => `${code} ${problem.includes('GPU2') ? 'GPU2' : ''}`.trim());

  it('topo -m of a healthy machine has no finding, with NVSwitch, with pairs of bridges, and without NVLink', () => {
    expect(check('X NV18 NV18 NV18', 'NV18 X NV18 NV18', 'NV18 NV18 X NV18', 'NV18 NV18 NV18 X')).toEqual([]);
    expect(check('X NV4 SYS SYS', 'NV4 X SYS SYS', 'SYS SYS X NV4', 'SYS SYS NV4 X')).toEqual([]);
    expect(check('X PIX SYS SYS', 'PIX X SYS SYS', 'SYS SYS X PIX', 'SYS SYS PIX X')).toEqual([]);
    expect(check('X NV1 NV2 NV2', 'NV1 X NV2 NV2', 'NV2 NV2 X NV1', 'NV2 NV2 NV1 X')).toEqual([]);
  });

  // What drivers from 535 on print: an underlined head, NICs by number, and a column `GPU NUMA ID` after the affinities.
  it('topo -m of newer drivers has another column that is no GPU', () => {
    const newer = (link: (i: number, j: number) => string) =>
      [
        '\t\u001b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\u001b[0m',
        ...[0, 1, 2, 3].map(
          (i) => `GPU${i}\t${[0, 1, 2, 3].map((j) => (i === j ? ' X ' : link(i, j))).join('\t')}\tPXB\t0-55\t0\t\tN/A`,
        ),
        'NIC0\tPXB\tPXB\tPXB\tPXB\t X ',
        '',
        'NIC Legend:',
        '',
        '  NIC0: mlx5_0',
      ].join('\n');
    expect(found(newer(() => 'NV18'))).toEqual([]);
    expect(found(newer(() => 'NV18').replaceAll('\t', '     '))).toEqual([]);
    const [finding, ...more] = found(newer((i, j) => (i === 2 || j === 2 ? 'SYS' : 'NV18')));
    expect(finding?.problem).toBe('nvidia-smi topo -m: GPU2 has no NVLink to 3 GPUs (SYS), while other pairs have');
    expect(more).toEqual([]);
    const two = found(newer((i, j) => (i % 3 === 0 || j % 3 === 0 ? 'SYS' : 'NV4')));
    expect(two).toEqual([]);
  });

  it('topo -m of a DGX-1, where each GPU is linked with four of seven, has no finding', () => {
    const links = [
      'X NV1 NV1 NV2 NV2 SYS SYS SYS',
      'NV1 X NV2 NV1 SYS NV2 SYS SYS',
      'NV1 NV2 X NV2 SYS SYS NV1 SYS',
      'NV2 NV1 NV2 X SYS SYS SYS NV1',
      'NV2 SYS SYS SYS X NV1 NV1 NV2',
      'SYS NV2 SYS SYS NV1 X NV2 NV1',
      'SYS SYS NV1 SYS NV1 NV2 X NV2',
      'SYS SYS SYS NV1 NV2 NV1 NV2 X',
    ].map((row) => row.split(' '));
    const text = (rows: string[][]) =>
      `\t${rows.map((_, gpu) => `GPU${gpu}`).join('\t')}\tCPU Affinity\n${rows.map((row, gpu) => `GPU${gpu}\t${row.join('\t')}\t0-19`).join('\n')}`;
    expect(found(text(links))).toEqual([]);
    const switched = links.map((row, i) =>
      row.map((link, j) => (link === 'X' ? link : [2, 5].some((gpu) => gpu === i || gpu === j) ? 'SYS' : 'NV12')),
    );
    expect(found(text(switched))).toMatchObject([{ code: 'nvlink-degraded' }]);
  });

  it('topo -m names the GPU whose NVLinks are missing or fewer', () => {
    expect(check('X NV18 NV16 NV18', 'NV18 X NV16 NV18', 'NV16 NV16 X NV16', 'NV18 NV18 NV16 X')).toEqual([
      'nvlink-degraded GPU2',
    ]);
    expect(check('X NV12 NV12 NV12 NV12', 'NV12 X NV12 NV12', 'SYS NV12 X NV12', 'NV12 NV12 NV12 X')[0]).toBe(
      'nvlink-degraded GPU2',
    );
  });

  it('nvlink -e of newer drivers counts traffic and corrected errors too', () => {
    const counters = (failed: number, effective: number) =>
      `GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)
\t Link 0: Tx packets: 982374234
\t Link 0: Malformed packet Errors: 0
\t Link 0: Link recovery successful events: 1
\t Link 0: Link recovery failed events: ${failed}
\t Link 0: Effective Errors: ${effective}
\t Link 0: Effective BER: 15e-255
\t Link 0: FEC Errors - 0: 81723481
\t Link 0: FEC Errors - 2: N/A`;
    expect(found(counters(0, 0))).toEqual([]);
    expect(codes(found(counters(4, 0)))).toEqual(['nvlink-errors warning']);
    expect(codes(found(counters(0, 9)))).toEqual(['nvlink-errors warning']);
  });

  it('nvlink -s names the GPU with links that are down, nvlink -e errors', () => {
    const status = (inactive: string) =>
      `GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s\n\t Link 1: 26.562 GB/s\nGPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-2)\n\t Link 0: 26.562 GB/s\n\t Link 1: ${inactive}`;
    expect(codes(found(status('26.562 GB/s')))).toEqual([]);
    expect(found(status('<inactive>'))).toMatchObject([
      { code: 'nvlink-degraded', problem: 'GPU 1 has 1 active NVLinks, others 2' },
    ]);
    expect(codes(found('GPU 0: NVIDIA H100 (UUID: GPU-1)\n\t Link 0: Replay Errors: 0\n\t Link 0: CRC Errors: 17'))).toEqual([
      'nvlink-errors warning',
    ]);
  });
});

describe('ports', () => {
  const ibstat = (state: string, rate: number) =>
    [0, 1, 2]
      .map(
        (device) =>
          `CA 'mlx5_${device}'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: ${device === 1 ? state : 'Active'}\n\t\tPhysical state: ${device === 1 && state !== 'Active' ? 'Polling' : 'LinkUp'}\n\t\tRate: ${device === 1 ? rate : 400}`,
      )
      .join('\n');

  it('that are down or slow are named', () => {
    expect(found(ibstat('Active', 400))).toEqual([]);
    expect(found(ibstat('Down', 40))).toMatchObject([
      { code: 'port-down', problem: 'mlx5_1:1 (Polling) is not active, 2 other ports are' },
    ]);
    expect(found(ibstat('Active', 100))).toMatchObject([{ code: 'port-slow' }]);
    expect(
      found(
        'hca_id:\tmlx5_0\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\nhca_id:\tmlx5_1\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_DOWN (1)',
      ),
    ).toMatchObject([{ code: 'port-down' }]);
  });

  it('that are slower than the same ones of another host are named, also all ports of a host', () => {
    const on = (host: string, rates: readonly number[], card = 'MT4129') =>
      `# tccl: host ${host}, command ibstat\n${rates
        .map(
          (rate, index) =>
            `CA 'mlx5_${index}'\n\tCA type: ${card}\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: ${rate}\n`,
        )
        .join('')}`;
    expect(found(on('node1', [400, 400]) + on('node2', [400, 400]))).toEqual([]);
    expect(found(on('node1', [400, 400]) + on('node2', [100, 100]))).toMatchObject([
      {
        code: 'port-slow',
        severity: 'warning',
        problem: 'mlx5_0:1, mlx5_1:1 of node2 have 100 Gb/s, the same ports of node1 400',
      },
    ]);
    expect(found(on('node1', [400, 400]) + on('node2', [25, 25], 'MT4117'))).toEqual([]);
    expect(found(on('node1', [400, 400, 400]) + on('node2', [400, 400, 200]))).toHaveLength(1);
  });

  it('of Ethernet are named below their fastest mode, one way at a time, and slower than on another host', () => {
    const settings = (name: string, modes: string, speed: number, duplex = 'Full') =>
      `Settings for ${name}:\n\tSupported link modes:   10000baseT/Full\n\t                        ${modes}\n\tAdvertised link modes:  400000baseCR4/Full\n\tSpeed: ${speed}Mb/s\n\tDuplex: ${duplex}\n\tLink detected: yes\n`;
    const cr4 = '100000baseCR4/Full';
    expect(found(settings('ens3f0', cr4, 100_000))).toEqual([]);
    expect(found(settings('ens3f0', cr4, 10_000))).toMatchObject([
      { code: 'port-slow', severity: 'warning', problem: 'ens3f0 has 10 Gb/s; its fastest mode has 100' },
    ]);
    expect(found(settings('ens3f0', cr4, 100_000, 'Half'))).toMatchObject([
      { problem: 'ens3f0 has 100 Gb/s and sends one way at a time (half duplex)' },
    ]);
    const other = 'node1:2100:2100 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.11<0>\n';
    expect(found(other + settings('ens3f0', cr4, 10_000))).toMatchObject([{ code: 'port-slow', severity: 'info' }]);
    const hosts = ['node1', 'node2'].map(
      (host, index) => `# tccl: host ${host}, command ethtool ens3f0\n${settings('ens3f0', cr4, index === 0 ? 100_000 : 10_000)}`,
    );
    expect(found(hosts.join('\n')).map(({ problem }) => problem)).toEqual([
      'ens3f0 of node2 has 10 Gb/s, the same port of node1 100',
    ]);
  });

  it('that are down are to blame for a job only if it uses them, or names none', () => {
    const text = (bootstrap: string) =>
      `node2:2100:2100 [0] NCCL INFO Bootstrap : Using ${bootstrap}:10.0.0.12<0>\nnode2:2100:2500 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.0.0.11<41999> failed : Connection timed out\n`;
    const ethtool =
      'Settings for enp2s0f1:\n\tLink detected: no\nSettings for eth0:\n\tSpeed: 100000Mb/s\n\tLink detected: yes\n';
    const causes = (log: string) => verdictOf(found(log)).causes.map(({ code }) => code);
    expect(causes(text('eth0') + ethtool)[0]).toBe('connect-failed');
    expect(causes(text('eth0') + ibstat('Down', 10))[0]).toBe('connect-failed');
    expect(causes(text('enp2s0f1') + ethtool)).toEqual(['port-down']);
  });

  it('of other cards and for other networks have no finding', () => {
    const port = (name: string, type: string, layer: string, state: string, rate: number) =>
      `CA '${name}'\n\tCA type: ${type}\n\tPort 1:\n\t\tState: ${state}\n\t\tPhysical state: ${state === 'Down' ? 'Disabled' : 'LinkUp'}\n\t\tRate: ${rate}\n\t\tLink layer: ${layer}\n`;
    const fabric = [0, 1, 2, 3].map((index) => port(`mlx5_${index}`, 'MT4129', 'InfiniBand', 'Active', 400)).join('');
    const others = port('mlx5_4', 'MT41692', 'Ethernet', 'Active', 100) + port('mlx5_5', 'MT41692', 'Ethernet', 'Down', 40);
    expect(found(fabric + others)).toEqual([]);
    expect(found(`${fabric}${others}${port('mlx5_6', 'MT4129', 'InfiniBand', 'Down', 10)}`)).toMatchObject([
      { problem: 'mlx5_6:1 (Disabled) is not active, 4 other ports are' },
    ]);
    const roce = [0, 1, 2, 3].map((index) => port(`mlx5_${index}`, 'MT4129', 'Ethernet', 'Active', 400)).join('');
    expect(found(roce + port('mlx5_4', 'MT4125', 'Ethernet', 'Active', 25))).toEqual([]);
  });

  it('are read from ibstatus and rdma link too', () => {
    const status = (index: number, state: string, physical: string) =>
      `Infiniband device 'mlx5_${index}' port 1 status:\n\tstate:\t\t ${state}\n\tphys state:\t ${physical}\n\trate:\t\t 400 Gb/sec (4X NDR)\n\tlink_layer:\t InfiniBand\n`;
    const up = [0, 1].map((index) => status(index, '4: ACTIVE', '5: LinkUp')).join('\n');
    expect(found(up)).toEqual([]);
    expect(found(`${up}${status(2, '1: DOWN', '3: Disabled')}`)).toMatchObject([
      { code: 'port-down', problem: 'mlx5_2:1 (Disabled) is not active, 2 other ports are' },
    ]);
    const link = (index: number, state: string) =>
      `link mlx5_${index}/1 subnet_prefix fe80:0000:0000:0000 lid 13 sm_lid 1 lmc 0 state ${state} physical_state ${state === 'DOWN' ? 'POLLING' : 'LINK_UP'}`;
    const links = [
      link(0, 'ACTIVE'),
      link(1, 'ACTIVE'),
      link(2, 'DOWN'),
      'link mlx5_3/1 state DOWN physical_state DISABLED netdev eth3',
    ];
    expect(found(links.join('\n'))).toMatchObject([{ problem: 'mlx5_2:1 (POLLING) is not active, 2 other ports are' }]);
  });
});
