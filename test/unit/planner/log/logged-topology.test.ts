import { describe, expect, it } from 'vitest';
import { defaultParameters, graphLines, machine, parametersFromEnvironment } from '../../../../src/planner/index.js';
import { checkLog } from '../../../../src/planner/log/check-log.js';
import { loggedTopology, topologyInLog } from '../../../../src/planner/log/logged-topology.js';
import { NcclLogReader } from '../../../../src/planner/log/read-log.js';
import { prepareCluster } from '../../../../src/planner/plan/cluster.js';
import { buildSystem } from '../../../../src/planner/topology/build/build-system.js';
import { nodeName, type System, type SystemNode } from '../../../../src/planner/topology/system.js';
import { LinkType, linkTypeName, NodeType } from '../../../../src/planner/topology/types.js';
import type { XmlElement } from '../../../../src/planner/topology/xml/tree.js';

/** The block that NCCL prints of a system. */
function printed(system: System): string[] {
  const lines: string[] = [];
  const named = (node: SystemNode) =>
    `${nodeName(node)}${node.type === NodeType.CPU ? ` (${node.arch}/${node.vendor}/${node.model})` : node.type === NodeType.GPU ? ` (${node.rank})` : ''}`;
  const print = (node: SystemNode, before: SystemNode | undefined, start: string, indent: number) => {
    lines.push(start + named(node));
    const { links } = system;
    for (let link = links.start[node.vertex] ?? 0; link < (links.start[node.vertex + 1] ?? 0); link++) {
      const to = system.nodes[links.to[link] ?? -1];
      const type = links.type[link] ?? 0;
      if (to === undefined || type === LinkType.LOC || (type === LinkType.PCI && to === before)) continue;
      const text = `${' '.repeat(indent)}+ ${linkTypeName(type)}[${(links.bandwidthGBps[link] ?? 0).toFixed(1)}] - `;
      if (type === LinkType.PCI) print(to, node, text, text.length);
      else
        lines.push(
          `${text}${nodeName(to)}${to.type === NodeType.NET ? ` (${to.asic.toString(16)}/${to.port}/${to.bandwidthGBps.toFixed(6)})` : ''}`,
        );
    }
  };
  for (const cpu of system.cpus) print(cpu, undefined, '', 0);
  return ['=== System : maxBw 48.0 totalBw 370.8 ===', ...lines, '=========================================='].map(
    (line) => `host1:100:101 [0] NCCL INFO ${line}`,
  );
}

const { parameters } = parametersFromEnvironment({}, '2.27.5');

function graphsOf(root: XmlElement): readonly string[] {
  const [hosts] = prepareCluster({ hosts: [{ machine: root, count: 2 }] }, parameters);
  const [local] = hosts?.systems ?? [];
  const [node] = hosts?.host.nodes ?? [];
  if (local === undefined || node === undefined) throw new Error('no node');
  return graphLines(node.graphs.ring, local);
}

describe('a machine that a log prints', () => {
  it.each(['dgx-h100', 'dgx-a100', 'dgx-1v', 'hgx-a100-4', 'dgx-b200'])(
    '%s gives the same rings as the machine itself',
    (name) => {
      const root = machine(name);
      const log = printed(buildSystem(root, { parameters })).join('\n');
      const logged = topologyInLog(log);
      if (logged === undefined) throw new Error('no machine');
      const again = buildSystem(logged, { parameters });
      const original = buildSystem(machine(name), { parameters });
      expect(again.gpus.map(({ sm, dev }) => [sm, dev])).toEqual(original.gpus.map(({ sm, dev }) => [sm, dev]));
      expect(again.cpus.map(({ arch, vendor, model }) => [arch, vendor, model])).toEqual(
        original.cpus.map(({ arch, vendor, model }) => [arch, vendor, model]),
      );
      expect(graphsOf(logged)).toEqual(graphsOf(machine(name)));
    },
  );

  it('is looked at by the doctor', () => {
    const root = machine('dgx-a100');
    // One switch has links of half the lanes.
    const slow = printed(buildSystem(root, { parameters })).map((line) =>
      line.replace(/^(.* )\+ PCI\[24\.0\] - (PCI\/0-7000)/, '$1+ PCI[6.0] - $2'),
    );
    const reader = new NcclLogReader();
    reader.openFile('log');
    for (const line of slow) reader.readLine(line);
    const model = reader.finish();
    const [logged] = model.machines;
    expect(logged && loggedTopology(logged)).toBeDefined();
    const found = checkLog(model).filter(({ code }) => code.startsWith('topology-'));
    expect(found.every(({ severity }) => severity === 'info')).toBe(true);
  });

  it('is none without a block, or without GPUs', () => {
    expect(topologyInLog('host1:1:1 [0] NCCL INFO === System : maxBw 1.0 totalBw 1.0 ===')).toBeUndefined();
    expect(topologyInLog('nothing')).toBeUndefined();
    expect(loggedTopology({ host: 'a', wires: [], cpus: [] })).toBeUndefined();
    expect(defaultParameters.ncclVersion).toBeDefined();
  });
});
