import { describe, expect, it } from 'vitest';
import { parametersFromEnvironment } from '../../../src/planner/parameters.js';
import { type Cluster, prepareCluster } from '../../../src/planner/plan/cluster.js';
import { transportsOf } from '../../../src/planner/plan/overview/connections.js';
import { planPrepared } from '../../../src/planner/plan/plan.js';
import { machine } from '../../../src/planner/topology/catalogue/machines.js';
import { type ClusterChannel, clusterModel } from '../../../src/view/cluster/model.js';
import { clusterPicture } from '../../../src/view/cluster/picture.js';
import { drawList } from './draw-list.js';

function modelOf(name: string, count: number, channel: ClusterChannel, environment: Readonly<Record<string, string>> = {}) {
  const { parameters } = parametersFromEnvironment(environment);
  const cluster: Cluster = { hosts: [{ machine: machine(name), count, name }] };
  const prepared = prepareCluster(cluster, parameters);
  const plan = planPrepared(prepared, parameters);
  return clusterModel(`${count} x ${name}`, plan, prepared, transportsOf(plan, prepared, parameters), channel);
}

// After a wanted change of a view: npx vitest run -u, and look at what changed.
describe('a channel through all nodes', () => {
  it.each([
    ['dgx-1v', 2, 'ring'],
    ['dgx-h100', 3, 'tree'],
    ['dgx-a100', 4, 'ring'],
    ['gb200-nvl72', 1, 'ring'],
    ['ac922', 2, 'ring'],
    ['pcie-8-a6000', 9, 'ring'],
  ] as const)('of %s, %d of them, by its %s', async (name, count, graph) => {
    const picture = clusterPicture(modelOf(name, count, { graph, channel: 0 }));
    expect(JSON.stringify(picture)).not.toMatch(/NaN|null|undefined/);
    await expect(drawList(picture)).toMatchFileSnapshot(`golden/cluster-${count}-${name}.txt`);
  });

  it('on a phone has its width, with every rank and port', () => {
    const { marks, width } = clusterPicture(modelOf('dgx-h100', 2, { graph: 'ring', channel: 0 }), 350);
    expect(width).toBeLessThanOrEqual(350);
    expect(marks.filter(({ kind, look }) => kind === 'rect' && look === 'gpu')).toHaveLength(16);
    expect(marks.filter(({ kind, look }) => kind === 'rect' && look === 'card')).toHaveLength(16);
  });

  it('has one hop out of each rank of a ring, and the network between nodes', () => {
    const { hops } = modelOf('dgx-h100', 2, { graph: 'ring', channel: 3 });
    expect(new Set(hops.map(({ from }) => from)).size).toBe(16);
    const net = hops.filter(({ via }) => via === 'NET');
    expect(net).toHaveLength(2);
    for (const { fromNode, toNode, outBy, inBy } of net) {
      expect(fromNode).not.toBe(toNode);
      expect([outBy, inBy].every((dev) => dev !== undefined)).toBe(true);
    }
  });

  it('tells shared memory from peer-to-peer', () => {
    const { hops } = modelOf('pcie-8-a6000', 1, { graph: 'ring', channel: 0 }, { NCCL_P2P_DISABLE: '1' });
    expect(new Set(hops.map(({ via }) => via))).toEqual(new Set(['SHM']));
    expect(hops[0]?.tip).toContain('through shared memory, because');
  });

  it('of many nodes draws the first ones and the last', () => {
    const { rows, hops } = modelOf('dgx-h100', 64, { graph: 'ring', channel: 0 });
    expect(rows.map((row) => (row.kind === 'node' ? row.node : `${row.first}-${row.last}`))).toEqual([0, 1, 2, 3, '4-62', 63]);
    expect(hops.length).toBeLessThan(60);
  });
});
