import { expect, it } from 'vitest';
import { evidenceIn } from '../../../../src/planner/evidence/facts.js';
import { machineOf } from '../../../../src/planner/evidence/machine-of-tools.js';
import { descendants } from '../../../../src/planner/topology/xml/tree.js';

function made(text: string) {
  const [host] = evidenceIn({ text, fileName: 'a.txt' }) ?? [];
  if (host === undefined) throw new Error('nothing is read');
  const { root, notes } = machineOf(host, undefined);
  const links = [...descendants(root)]
    .filter(({ name }) => name === 'nvlink')
    .map(({ attributes }) => [attributes.get('target'), attributes.get('count'), attributes.get('tclass')]);
  return { links, notes: notes.join('\n') };
}

const gpu = (index: number, bus: string) => [
  `<object type="PCIDev" gp_index="${index + 10}" pci_busid="0000:${bus}:00.0" pci_type="0302 [10de:20b0] [10de:1450] a1" pci_link_speed="31.507692">`,
  `<object type="OSDev" gp_index="${index + 30}" name="nvml${index}" subtype="NVML" osdev_type="12"/>`,
  '</object>',
];
const machine = (gpus: number, distances: readonly string[]) =>
  [
    '<topology version="2.0">',
    '<object type="Machine" os_index="0" gp_index="1"><object type="Package" os_index="0" gp_index="3"><object type="NUMANode" os_index="0" gp_index="7"/>',
    '<object type="Bridge" gp_index="9" bridge_type="0-1" depth="0" bridge_pci="0000:[00-42]">',
    ...Array.from({ length: gpus }, (_, index) => gpu(index, `0${index + 1}`)).flat(),
    '<object type="PCIDev" gp_index="20" subtype="NVSwitch" pci_busid="0000:41:00.0" pci_type="0680 [10de:1af1] [10de:1450] a1" pci_link_speed="1.0"/>',
    '</object></object></object>',
    ...distances,
    '</topology>',
  ].join('\n');

it("NVLinks of hwloc's XML are numbers of links by the speed of one", () => {
  const distances = [
    '<distances2 type="OSDev" nbobjs="3" kind="9" name="NVLinkBandwidth" indexing="gp">',
    '<indexes length="9">30 31 32 </indexes>',
    '<u64values length="40">1000000 100000 0 100000 1000000 </u64values>',
    '<u64values length="20">25000 0 25000 1000000 </u64values>',
    '</distances2>',
  ];
  expect(made(machine(3, distances)).links).toEqual([
    ['0000:02:00.0', '4', '0x030200'],
    ['0000:01:00.0', '4', '0x030200'],
    ['0000:03:00.0', '1', '0x030200'],
    ['0000:02:00.0', '1', '0x030200'],
  ]);
});

it('links to a port of a switch are those of NVSwitches, and so are more links than a GPU has', () => {
  const switched = [
    '<distances2hetero nbobjs="3" kind="25" name="NVLinkBandwidth">',
    '<indexes length="29">OSDev:30 OSDev:31 PCIDev:20 </indexes>',
    '<u64values length="50">1000000 0 300000 0 1000000 300000 300000 300000 0 </u64values>',
    '</distances2hetero>',
  ];
  const all = [
    '<distances2 type="OSDev" nbobjs="3" kind="9" name="NVLinkBandwidth" indexing="gp">',
    '<indexes length="9">30 31 32 </indexes>',
    '<u64values length="70">1000000 300000 300000 300000 1000000 300000 300000 300000 1000000 </u64values>',
    '</distances2>',
  ];
  for (const text of [machine(2, switched), machine(3, all)])
    expect(new Set(made(text).links.map(([, , type]) => type))).toEqual(new Set(['0x068000']));
});

it("the matrix in lstopo's text is read, and one that is cut off is not", () => {
  const text = [
    'Machine (252GB total)',
    '  Package L#0',
    '    NUMANode L#0 (P#0 126GB)',
    '    HostBridge',
    '      PCI 04:00.0 (3D)',
    '        GPU "nvml0"',
    '      PCI 07:00.0 (3D)',
    '        GPU "nvml1"',
    'Relative bandwidth matrix (name NVLinkBandwidth kind 9) between 2 OSDevs (depth -6) by logical indexes:',
    '   index   nvml0   nvml1',
    '   nvml0 1000000   50000',
    '   nvml1   50000 1000000',
    'GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)',
    'GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-2)',
  ];
  expect(made(text.join('\n')).links.map(([target, count]) => [target, count])).toEqual([
    ['0000:07:00.0', '2'],
    ['0000:04:00.0', '2'],
  ]);
  const cut = made(text.filter((line) => !line.includes('nvml1   50000')).join('\n'));
  expect(cut.notes).toContain('nvidia-smi topo -m shows it');
});
