import { describe, expect, it } from 'vitest';
import { defaultParameters, graphLines, machine, parametersFromEnvironment } from '../../../../src/planner/index.js';
import { checkLog } from '../../../../src/planner/log/verdict/check-log.js';
import { loggedTopology } from '../../../../src/planner/log/machine/logged-topology.js';
import { isOfRccl } from '../../../../src/planner/log/lines/rccl.js';
import { NcclLogReader } from '../../../../src/planner/log/job/read-log.js';
import { topologyInLog } from '../../../../src/planner/log/machine/topology-in-log.js';
import { prepareCluster } from '../../../../src/planner/plan/cluster.js';
import { buildSystem } from '../../../../src/planner/topology/build/build-system.js';
import { printed } from './printed-system.js';
import type { XmlElement } from '../../../../src/planner/topology/xml/tree.js';

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

  it('is checked by the doctor', () => {
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

  it('is found in lines that a collector wrapped, among lines of other programs', () => {
    const lines = printed(buildSystem(machine('dgx-a100'), { parameters }));
    const plain = topologyInLog(lines.join('\n'));
    const wrapped = ['starting', ...lines.map((log) => JSON.stringify({ log: `\u001b[32m${log}\u001b[0m` }))].join('\r\n');
    expect(plain).toBeDefined();
    expect(topologyInLog(wrapped)).toEqual(plain);
  });

  it('is refused in the log of RCCL', () => {
    const lines = printed(buildSystem(machine('dgx-a100'), { parameters }));
    const head = 'node1:100:100 [0] NCCL INFO RCCL version : 2.27.7-HEAD:29e1567';
    expect(() => topologyInLog([head, ...lines].join('\n'))).toThrow(/^this is the log of RCCL \(AMD\)/);
    const reader = new NcclLogReader();
    reader.openFile('log');
    reader.readLine(head);
    expect(isOfRccl(reader.finish())).toBe(true);
  });

  it('is undefined without a block, or without GPUs', () => {
    expect(topologyInLog('host1:1:1 [0] NCCL INFO === System : maxBw 1.0 totalBw 1.0 ===')).toBeUndefined();
    expect(topologyInLog('nothing')).toBeUndefined();
    expect(loggedTopology({ host: 'a', wires: [], cpus: [] })).toBeUndefined();
    expect(defaultParameters.ncclVersion).toBeDefined();
  });
});
