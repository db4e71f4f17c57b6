import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { parametersFromEnvironment } from '../../../src/planner/parameters.js';
import { prepareCluster } from '../../../src/planner/plan/cluster.js';
import { applyOverrides } from '../../../src/planner/plan/overrides.js';
import { planPrepared } from '../../../src/planner/plan/plan.js';
import { predictCall, simulatorOf } from '../../../src/planner/plan/prediction.js';
import { machine } from '../../../src/planner/topology/catalogue/machines.js';
import { diagnose } from '../../../src/planner/topology/doctor/diagnose.js';
import { parseXml } from '../../../src/planner/topology/xml/parse.js';
import type { XmlElement } from '../../../src/planner/topology/xml/tree.js';

// Machines and measurements of public threads; each test names its source.

const file = (name: string) => parseXml(readFileSync(`test/unit/planner/cases/${name}`, 'utf8')).root;

function planned(root: XmlElement, count: number, environment: Readonly<Record<string, string>> = {}, nccl?: string) {
  const { parameters } = parametersFromEnvironment(environment, nccl);
  const prepared = prepareCluster({ hosts: [{ machine: root, count }] }, parameters);
  return { prepared, parameters, plan: planPrepared(prepared, parameters) };
}

function busGBps(root: XmlElement, count: number, bytes: number, nccl?: string): number {
  const { prepared, parameters, plan } = planned(root, count, {}, nccl);
  return predictCall(simulatorOf(prepared, parameters, plan), 'AllReduce', bytes)[0]?.busGBps ?? NaN;
}

it('p5.48xlarge with 32 EFA passes the limit of XML elements (NVIDIA/nccl#2160)', () => {
  for (const root of [file('p5-32nics.xml'), machine('aws-p5')])
    expect(diagnose(root).map(({ code }) => code)).toContain('xml-nodes');
});

it('Granite Rapids is taken for Sapphire Rapids (NVIDIA/nccl#2107)', () => {
  expect(diagnose(file('granite-rapids.xml'))).toMatchObject([{ code: 'cpu-misread', gbps: { is: 22, couldBe: 40 } }]);
});

it('eight RTX 4090 go through the CPU, at 5 GB/s (NVIDIA/nccl-tests#307)', () => {
  expect(planned(file('rtx4090.xml'), 1).plan.graphs.ring).toMatchObject({ nChannels: 1, bwIntra: 5 });
});

it('NCCL_MAX_CTAS bounds channels, and pairs take powers of two (NVIDIA/nccl#1598)', () => {
  const channels = (ctas: number) => {
    const { plan } = planned(applyOverrides(machine('dgx-h200'), { gpus: 4 }), 1, { NCCL_MAX_CTAS: String(ctas) });
    return [plan.nChannels, plan.p2p.nChannels];
  };
  expect([3, 5, 6].map(channels)).toEqual([
    [3, 4],
    [5, 8],
    [6, 8],
  ]);
});

it('16 GPUs of a rack are 16 ranks, of four trays', () => {
  const { plan } = planned(applyOverrides(machine('gb300-nvl72'), { gpus: 16 }), 1);
  expect(plan.nodes).toMatchObject({ nRanks: 16, nNodes: 1 });
});

it('16 GiB by NVLink SHARP come within 5 % of measurements, and two racks are slower than one', () => {
  const measured = [
    ['gb300-nvl8', 1, 842],
    ['gb300-nvl64', 1, 930],
    ['gb300-nvl64', 2, 738],
    ['dgx-b200', 1, 845],
  ] as const;
  for (const [name, racks, gbps] of measured)
    expect(Math.abs(busGBps(machine(name), racks, 2 ** 34, '2.28.7') / gbps - 1), `${racks} x ${name}`).toBeLessThan(0.05);
});
