import { describe, expect, it } from 'vitest';
import { isThorough } from '../../../runs.js';
import { machines } from '../../../../src/planner/topology/catalogue/machines.js';
import { matrixOf } from './matrix-of.js';
import { machineFrom, pathTypes, summary } from './plan-of.js';
import { cpuReport, gpuList, hasRealBuses, lspciList, lspciTree, lstopoText, lstopoXml, portList } from './print-tools.js';

/** Machines whose NVLinks only `nvidia-smi topo -m` shows. */
const bridged = new Set(['azure-nc-a100-v4', 'ac922', 'ac922-4']);

/** Things that an output does not show, by machine and output: then paths are compared, and not channels. */
const undetermined: Readonly<Record<string, readonly string[]>> = {
  // NVLinks to CPUs, and the generation of a slot that is newer than the card.
  ac922: ['xml', 'vvv', 'text', 'tree'],
  'ac922-4': ['xml', 'vvv', 'text', 'tree'],
  'azure-nd-v2': ['xml', 'text', 'tree'],
  'oci-a100': ['tree'],
  // Models of switches, which NCCL makes one level.
  'dgx-a100': ['text', 'tree'],
  'dgx-a100-storage': ['text', 'tree'],
  // The generation of EFA.
  'aws-p5': ['text'],
  'aws-p5e': ['text'],
  // Lanes of a slot.
  'dgx-spark': ['text', 'tree'],
};

/** Machines that `lspci` alone does not determine: their NICs are not numbered by bus id, or have no RDMA without a plugin. */
const unnamed = new Set(['dgx-a100-storage', 'dgx-h100-storage', 'gcp-a3-high', 'gcp-a3-mega']);

/** Machines with GPUs whose PCI device no public source names: `lspci` alone cannot. */
const ofUnknownDevices = new Set(['vr200-tray']);

/** Their files have devices in another order than that in which NCCL finds them. */
const inOtherOrder = new Set(['dgx-a100', 'dgx-a100-storage', 'azure-nd-v4', 'polaris', 'perlmutter']);

// Outputs are of one host.
const hosts = machines.filter(({ name }) => !name.endsWith('nvl72'));

describe.each(hosts)('$name', (machine) => {
  const { name } = machine;
  const root = machine.build();
  const matrix = matrixOf(root, { legend: true });
  const more = [portList(root), cpuReport(root), ...(bridged.has(name) ? [matrix] : [])];
  const hasDevices = hasRealBuses(root) && !ofUnknownDevices.has(name);
  const outputs: Readonly<Record<string, readonly string[]>> = {
    xml: [lstopoXml(root), ...more],
    text: [lstopoText(root), gpuList(root), ...more],
    ...(hasDevices && !unnamed.has(name) ? { vvv: [lspciList(root), ...more] } : {}),
    ...(hasDevices ? { tree: [lspciTree(root), matrix, portList(root), cpuReport(root)] } : {}),
  };
  it.each(Object.entries(outputs))(
    'as %s is a machine with the same path types, and channels where it has them',
    (output, texts) => {
      const made = machineFrom(texts.join('\n\n'));
      expect(pathTypes(made)).toEqual(pathTypes(root));
      if (undetermined[name]?.includes(output) === true || (output !== 'xml' && !isThorough)) return;
      const { rings, ...rest } = summary(root);
      const found = summary(made);
      expect(found).toMatchObject(rest);
      if (!inOtherOrder.has(name)) expect(found.rings).toEqual(rings);
    },
  );
});

it('a GPU whose device no public source names is asked for, not guessed', () => {
  const root = machines.find(({ name }) => name === 'vr200-tray')!.build();
  expect(() => machineFrom(lspciList(root))).toThrow(/the catalogue has no GPU .*\[10de:ffff\].*nvidia-smi -L/);
});
