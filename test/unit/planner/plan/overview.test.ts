import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parametersFromEnvironment } from '../../../../src/planner/parameters.js';
import { type Cluster, prepareCluster } from '../../../../src/planner/plan/cluster.js';
import { curveSizes, usualSizes } from '../../../../src/planner/plan/overview/forecast.js';
import { type Overview, overviewOf } from '../../../../src/planner/plan/overview/overview.js';
import { alike, formatBytes, formatRate, formatTime, limitText } from '../../../../src/planner/plan/overview/format.js';
import { planPrepared } from '../../../../src/planner/plan/plan.js';
import { machine } from '../../../../src/planner/topology/catalogue/machines.js';
import { descendants } from '../../../../src/planner/topology/xml/tree.js';
import { parseXml } from '../../../../src/planner/topology/xml/parse.js';
import { choose } from '../../../../src/planner/tuning/choose.js';
import { tune } from '../../../../src/planner/tuning/tune.js';

function make(
  cluster: Cluster,
  environment: Readonly<Record<string, string>> = {},
  sizes: readonly number[] = [1024, 2 ** 20, 2 ** 30],
  title = 'a cluster',
  nccl?: string,
) {
  const { parameters } = parametersFromEnvironment(environment, nccl);
  const prepared = prepareCluster(cluster, parameters);
  const plan = planPrepared(prepared, parameters);
  const tuning = tune(plan, parameters);
  return { plan, tuning, overview: overviewOf({ title, cluster, prepared, plan, parameters, environment, tuning, sizes }) };
}

const hostsOf = (name: string, count: number): Cluster => ({ hosts: [{ machine: machine(name), count, name }] });
const useOf = ({ uses }: Overview, name: string) => uses.find((use) => use.name === name);

describe('what limits a machine', () => {
  it('NVLinks, if rings stay on the host', () => {
    const [host] = make(hostsOf('dgx-a100', 1)).overview.hosts;
    expect(host?.loads[0]).toEqual({ kind: 'nvlink', count: 8, usedGBps: 240, gbps: 240 });
    expect(limitText(host!)).toBe('NVLinks of GPUs: rings take 240 of 240 GB/s on 8, 240 GB/s in all');
  });

  it('PCIe before the port, where the port is faster', () => {
    const [host] = make(hostsOf('dgx-h100', 2)).overview.hosts;
    expect(host?.loads.map(({ kind, count, usedGBps, gbps }) => `${kind} ${count} ${usedGBps}/${gbps}`).slice(0, 3)).toEqual([
      'nic-pcie 8 48/48',
      'gpu-pcie 8 48/48',
      'nic-port 8 48/50',
    ]);
    expect(host?.ringGBps).toBe(384);
  });

  it('ports, if they are slow', () => {
    const root = machine('dgx-h100');
    for (const element of descendants(root)) if (element.name === 'net') element.attributes.set('speed', '100000');
    const [host] = make({ hosts: [{ machine: root, count: 2 }] }).overview.hosts;
    expect(host?.loads[0]?.kind).toBe('nic-port');
  });

  it('no link carries more than its bandwidth', () => {
    for (const [name, count] of [
      ['dgx-1v', 1],
      ['dgx-1v', 2],
      ['ac922', 2],
      ['pcie-8-l40s', 1],
      ['gb200-tray', 2],
      ['dgx-b200', 1],
    ] as const) {
      for (const { loads } of make(hostsOf(name, count)).overview.hosts) {
        for (const { usedGBps, gbps } of loads) expect(usedGBps).toBeLessThanOrEqual(gbps + 0.01);
      }
    }
  });

  it('the channels of the plan, not of the search: trees, a variable or another host may leave fewer', () => {
    const leonardo = parseXml(readFileSync(new URL('../../../questions/machines/leonardo.xml', import.meta.url), 'utf8')).root;
    const { overview } = make({ hosts: [{ machine: leonardo, count: 2, name: 'leonardo' }] }, {}, [2 ** 30], 'a', '2.27.3');
    const [trees] = overview.hosts;
    expect(limitText(trees!)).toBe(
      'PCIe links of network cards: rings take 12 of 12 GB/s on 1, 12 GB/s in all; its search found 48 GB/s, but trees have only one channel, and rings no more than trees',
    );
    expect(trees?.rings).toHaveLength(1);
    expect(overview.graphs.map(({ name, isLastResort }) => [name, isLastResort])).toEqual([
      ['ring', false],
      ['tree', true],
    ]);
    const [three] = make(hostsOf('dgx-h100', 2), { NCCL_MAX_NCHANNELS: '3' }).overview.hosts;
    expect(limitText(three!)).toMatch(/144 GB\/s in all; its search found 384 GB\/s, but the plan has only 3 channels$/);
    const mixed = make({ hosts: [...hostsOf('dgx-h100', 1).hosts, ...hostsOf('hgx-a100-4', 1).hosts] }).overview.hosts;
    expect(mixed.map(({ ringGBps, searchedGBps, heldBackBy }) => [ringGBps, searchedGBps, heldBackBy])).toEqual([
      [48, 384, 'other nodes'],
      [48, 48, undefined],
    ]);
  });

  it('nothing, for one rank', () => {
    const { overview } = make(hostsOf('gh200', 1));
    expect(overview.hosts[0]?.loads).toEqual([]);
    expect(limitText(overview.hosts[0]!)).toMatch(/^nothing/);
  });
});

describe('what is in use', () => {
  it('NVLS with NVSwitches, unless it is off or GPUs are too old', () => {
    expect(useOf(make(hostsOf('dgx-h100', 2)).overview, 'NVLS')).toEqual({
      name: 'NVLS',
      used: 'yes',
      text: '16 channels, 8 heads, trees between nodes',
    });
    expect(useOf(make(hostsOf('dgx-h100', 1), { NCCL_NVLS_ENABLE: '0' }).overview, 'NVLS')).toEqual({
      name: 'NVLS',
      used: 'no',
      text: 'NCCL_NVLS_ENABLE=0',
    });
    // Also in versions that look for SHARP in the network first.
    for (const [nodes, nccl] of [
      [1, '2.30.7'],
      [2, '2.30.7'],
      [2, '2.27.7'],
      [2, '2.20.5'],
    ] as const)
      expect(useOf(make(hostsOf('dgx-a100', nodes), {}, [1024], 'a', nccl).overview, 'NVLS')?.text).toMatch(/sm 90/);
    expect(useOf(make(hostsOf('dgx-h100', 2), { NCCL_NVLS_ENABLE: '0' }, [1024], 'a', '2.20.5').overview, 'NVLS')?.text).toBe(
      'NCCL_NVLS_ENABLE=0',
    );
  });

  it('PXN if a rail has to be kept', () => {
    expect(useOf(make(hostsOf('dgx-h100', 2), { NCCL_CROSS_NIC: '0' }).overview, 'PXN')?.used).toBe('partly');
    expect(useOf(make(hostsOf('dgx-h100', 2), { NCCL_CROSS_NIC: '0', NCCL_PXN_DISABLE: '1' }).overview, 'PXN')).toEqual({
      name: 'PXN',
      used: 'no',
      text: 'NCCL_PXN_DISABLE=1',
    });
  });

  it('GPU Direct RDMA, or the reason why not', () => {
    expect(useOf(make(hostsOf('hgx-a100-4', 2), { NCCL_NET_GDR_LEVEL: 'LOC' }).overview, 'GDR')).toEqual({
      name: 'GDR',
      used: 'no',
      text: 'the NIC is farther away than NCCL_NET_GDR_LEVEL allows',
    });
  });

  it('memory of the host if peer-to-peer is off', () => {
    const { overview } = make(hostsOf('pcie-2-l40s', 1), { NCCL_P2P_DISABLE: '1' });
    expect(useOf(overview, 'P2P')).toMatchObject({ used: 'no', text: 'NCCL_P2P_DISABLE=1' });
    expect(useOf(overview, 'SHM')?.used).toBe('yes');
    expect(useOf(make(hostsOf('pcie-2-l40s', 1), { NCCL_P2P_LEVEL: 'NVL' }).overview, 'P2P')?.text).toMatch(
      /^GPUs are as far apart as P\w+, farther than NVL \(NCCL_P2P_LEVEL\)$/,
    );
  });

  it('a network that could reduce is named', () => {
    const root = machine('dgx-h100');
    for (const element of descendants(root)) if (element.name === 'net') element.attributes.set('coll', '1');
    const cluster = { hosts: [{ machine: root, count: 2 }] };
    expect(useOf(make(cluster).overview, 'CollNet')?.text).toMatch(/NCCL_COLLNET_ENABLE=1/);
    expect(useOf(make(cluster, { NCCL_COLLNET_ENABLE: '1' }).overview, 'CollNet')?.used).toBe('yes');
  });
});

describe('a host that counts as several nodes', () => {
  it('is shown with all its GPUs, and the ranks of each node', () => {
    const [host] = make(hostsOf('dgx-1v', 1), { NCCL_P2P_DISABLE: '1' }).overview.hosts;
    expect(host?.nRanks).toBe(8);
    expect(host?.nodes).toEqual([
      [0, 1, 2, 3],
      [4, 5, 6, 7],
    ]);
  });
});

describe('predictions', () => {
  it('are the choices of the tuning model, at each size', () => {
    const { overview, tuning } = make(hostsOf('dgx-h100', 2));
    for (const { collective, rows } of overview.forecasts) {
      for (const { bytes, choice } of rows) expect(choice).toEqual(choose(tuning, collective, bytes));
    }
    expect(overview.forecasts.map(({ collective }) => collective)).toEqual([
      'AllReduce',
      'AllGather',
      'ReduceScatter',
      'Broadcast',
      'Reduce',
    ]);
  });

  it('share a column where they are the same', () => {
    expect(alike(make(hostsOf('dgx-a100', 1)).overview.forecasts).map(({ title }) => title)).toEqual([
      'AllReduce',
      'AllGather, ReduceScatter',
      'Broadcast, Reduce',
    ]);
  });

  it('have sizes from the smallest to the largest', () => {
    expect(usualSizes[0]).toBe(1024);
    expect(usualSizes.at(-1)).toBe(2 ** 34);
    expect(curveSizes(1000, 3000)).toEqual([1000, 1414, 2000, 2828, 3000]);
    expect(curveSizes(4096, 4096)).toEqual([4096]);
  });

  it('a plan is JSON', () => {
    const { overview } = make(hostsOf('dgx-h100', 2));
    expect(JSON.parse(JSON.stringify(overview))).toMatchObject({ nRanks: 16, nNodes: 2, nChannels: 16 });
  });
});

describe('numbers for people', () => {
  it.each([
    [0.512, '0.51 us'],
    [12.34, '12.3 us'],
    [999.4, '999 us'],
    [999.6, '1.00 ms'],
    [45_600, '45.6 ms'],
    [2_500_000, '2.50 s'],
  ])('%d us is %s', (us, text) => {
    expect(formatTime(us)).toBe(text);
  });
  it.each([
    [0, '0.00'],
    [0.0041, '0.0041'],
    [9.876, '9.88'],
    [45.67, '45.7'],
    [99.97, '100'],
    [461.2, '461'],
  ])('%d GB/s is %s', (gbps, text) => {
    expect(formatRate(gbps)).toBe(text);
  });
  it.each([
    [1, '1 B'],
    [1023, '1023 B'],
    [1536, '1.5 KiB'],
    [2 ** 34, '16 GiB'],
  ])('%d bytes are %s', (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });
});
