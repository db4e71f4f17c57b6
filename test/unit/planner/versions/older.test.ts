import { describe, expect, it } from 'vitest';
import { CrossNic } from '../../../../src/planner/graph/graph.js';
import { parametersFromEnvironment } from '../../../../src/planner/parameters.js';
import type { Cluster } from '../../../../src/planner/plan/cluster.js';
import { plan } from '../../../../src/planner/plan/plan.js';
import { machine } from '../../../../src/planner/topology/catalogue/machines.js';
import { choose } from '../../../../src/planner/tuning/choose.js';
import { tuneFor } from '../../../../src/planner/tuning/tune.js';
import { inputError } from '../topology/input-error.js';
import { cpu, gpu, nic, pciSwitch, systemXml } from '../topology/machine.js';
import { madeInput } from '../tuning/made-input.js';

const planFor = (ncclVersion: string, cluster: Cluster, environment: Record<string, string> = {}) =>
  plan(cluster, parametersFromEnvironment(environment, ncclVersion).parameters);
const dgxH100 = (count: number): Cluster => ({ hosts: [{ machine: machine('dgx-h100'), count }] });

describe('rings of older versions', () => {
  it('swap on nodes at odd places with NCCL_CROSS_NIC=1, and do not since 2.26', () => {
    const entered = (version: string) => {
      const { nodes, rings } = planFor(version, dgxH100(2), { NCCL_CROSS_NIC: '1' });
      const graph = nodes.kinds[0]?.graphs.ring;
      const order = [...rings.order.subarray(0, 16)];
      const firstOfNode1 = order.find((rank, place) => rank >= 8 && (order.at(place - 1) ?? 0) < 8) ?? 0;
      return { crossNic: graph?.crossNic, row: [0, 1].filter((row) => graph?.intra[8 * row] === firstOfNode1 - 8) };
    };
    expect(entered('2.21.5')).toEqual({ crossNic: CrossNic.ALLOWED, row: [1] });
    expect(entered('2.26.2')).toEqual({ crossNic: CrossNic.ALLOWED, row: [0] });
  });

  it('are at most 16 in a graph, and 32 channels in all', () => {
    const { graphs, nChannels } = planFor('2.21.5', dgxH100(1), { NCCL_MIN_NCHANNELS: '64' });
    expect(graphs.ring.maxChannels).toBe(16);
    expect(nChannels).toBe(32);
  });
});

describe('machines that older versions do not support', () => {
  const grace = 'arch="arm64"';
  const c2c = '<c2c bw="44712" count="10"/>';

  it('crash NCCL before 2.26 where a GPU with C2C is behind a PCI bridge', () => {
    const bridge = pciSwitch('01', `${gpu('02', 0, c2c)}${nic('03', 0)}`);
    const behindBridge = { hosts: [{ machine: systemXml(cpu(0, bridge, grace)), count: 2 }] };
    expect(inputError(() => planFor('2.21.5', behindBridge)).message).toContain('goes round in circles');
    expect(planFor('2.26.2', behindBridge).nChannels).toBeGreaterThan(0);
    const atRoot = { hosts: [{ machine: systemXml(cpu(0, gpu('02', 0, c2c) + nic('03', 0), grace)), count: 2 }] };
    expect(planFor('2.21.5', atRoot).nChannels).toBeGreaterThan(0);
  });

  it('include NVLink domains of several hosts before 2.21', () => {
    const rack = { hosts: [{ machine: machine('gb200-nvl72'), count: 1 }] };
    expect(inputError(() => planFor('2.20.5', rack)).message).toContain('no NVLink between hosts');
  });
});

describe('NCCL_ALGO and NCCL_PROTO in older versions', () => {
  const tuned = (ncclVersion: string, environment: Record<string, string>) =>
    tuneFor(madeInput({ ncclVersion }), parametersFromEnvironment(environment, ncclVersion).parameters);
  const chosen = (ncclVersion: string, environment: Record<string, string>) => {
    const choice = choose(tuned(ncclVersion, environment), 'Broadcast', 1 << 24);
    return choice && `${choice.algorithm} ${choice.protocol}`;
  };

  it('keep rings for a collective without other candidates', () => {
    expect(chosen('2.21.5', { NCCL_ALGO: 'Tree', NCCL_PROTO: 'LL' })).toBe('Ring Simple');
    expect(chosen('2.23.4', { NCCL_ALGO: 'Tree', NCCL_PROTO: 'LL' })).toBe('Ring LL');
    expect(chosen('2.24.3', { NCCL_ALGO: 'Tree', NCCL_PROTO: 'LL' })).toBeUndefined();
  });

  it('ignore unknown names, and lists by collective', () => {
    expect(chosen('2.23.4', { NCCL_PROTO: 'LL,sympel' })).toBe('Ring LL');
    expect(() => tuned('2.24.3', { NCCL_PROTO: 'LL,sympel' })).toThrow('sympel');
    expect(tuned('2.23.4', { NCCL_ALGO: 'ring,allreduce:tree' }).model.AllReduce.Tree.Simple.bandwidthGBps).toBe(0);
    expect(tuned('2.24.3', { NCCL_ALGO: 'ring;allreduce:tree' }).model.AllReduce.Tree.Simple.bandwidthGBps).toBeGreaterThan(0);
  });
});
