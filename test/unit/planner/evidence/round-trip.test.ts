import { describe, expect, it } from 'vitest';
import { cpuModels } from '../../../../src/planner/topology/catalogue/cpus.js';
import { gpuModels } from '../../../../src/planner/topology/catalogue/gpus.js';
import type { Hardware } from '../../../../src/planner/topology/catalogue/hardware.js';
import { machines } from '../../../../src/planner/topology/catalogue/machines.js';
import { nicModels } from '../../../../src/planner/topology/catalogue/nics.js';
import { descendants, type XmlElement } from '../../../../src/planner/topology/xml/tree.js';
import { matrixOf } from './matrix-of.js';
import { machineFrom, pathTypes, summary } from './plan-of.js';

/** The models of a machine: a matrix has none. */
function hardwareOf(root: XmlElement): Hardware {
  const named = (name: string) => [...descendants(root)].filter((element) => element.name === name);
  const pci = (element: XmlElement | undefined): XmlElement | undefined =>
    element === undefined || element.name === 'pci' ? element : pci(element.parent);
  const device = (element: XmlElement) => Number(pci(element)?.attributes.get('device'));
  const gpus = named('gpu');
  const [cpu] = named('cpu');
  return {
    gpus: [
      {
        model: gpuModels.find((model) => gpus[0] !== undefined && model.device === device(gpus[0])) as (typeof gpuModels)[number],
        count: gpus.length,
        at: [],
        nvlink: 'none',
      },
    ],
    nics: named('net')
      .sort((a, b) => Number(a.attributes.get('dev')) - Number(b.attributes.get('dev')))
      .map((net) => ({
        model: nicModels.find((model) => model.device === device(net)) as (typeof nicModels)[number],
        speedMbps: Number(net.attributes.get('speed')),
        count: 1,
        at: [],
      })),
    cpu: cpuModels.find(
      ({ arch, cpuid }) =>
        arch === cpu?.attributes.get('arch') &&
        (cpuid === undefined ||
          (String(cpuid.model) === cpu.attributes.get('modelid') && cpuid.vendor === cpu.attributes.get('vendor'))),
    ),
  };
}

/** Things that a matrix does not show, by machine. */
const undetermined: Readonly<Record<string, string>> = {
  ac922: 'NVLinks to CPUs',
  'ac922-4': 'NVLinks to CPUs',
  'azure-nd-v2': 'a card in a slot of a newer generation',
  'dgx-spark': 'lanes of a slot',
};

/** Their files have NUMA nodes in another order than that of GPUs, which is NCCL's own. */
const inOrderOfNodes = new Set(['azure-nd-v4', 'polaris', 'perlmutter']);

// A matrix is of one host.
const hosts = machines.filter(({ name }) => !name.endsWith('nvl72'));

describe.each(hosts)('$name as a matrix', (machine) => {
  const { name } = machine;
  it.each([true, false])('is a machine with the same path types (legend: %j)', (legend) => {
    const root = machine.build();
    expect(pathTypes(machineFrom(matrixOf(root, { legend }), hardwareOf(root)))).toEqual(pathTypes(root));
  });

  it.skipIf(name in undetermined)('is a machine with the same channels and rings', () => {
    const root = machine.build();
    const made = summary(machineFrom(matrixOf(root, { legend: true }), hardwareOf(root)));
    const { rings, ...rest } = summary(root);
    expect(made).toMatchObject(rest);
    if (!inOrderOfNodes.has(name)) expect(made.rings).toEqual(rings);
  });
});
