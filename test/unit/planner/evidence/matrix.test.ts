import { describe, expect, it } from 'vitest';
import { InputError } from '../../../../src/errors.js';
import { evidenceIn as hostsIn, type HostFacts } from '../../../../src/planner/evidence/facts.js';
import { machineOf } from '../../../../src/planner/evidence/machine-of-tools.js';
import { gpuOfProduct } from '../../../../src/planner/topology/catalogue/products.js';
import { parseHardware } from '../../../../src/planner/topology/catalogue/hardware.js';
import { machine } from '../../../../src/planner/topology/catalogue/machines.js';
import { descendants, type XmlElement } from '../../../../src/planner/topology/xml/tree.js';
import { writeXml } from '../../../../src/planner/topology/xml/write.js';
import { matrixOf } from './matrix-of.js';

const plain = matrixOf(machine('dgx-h100'), { legend: true });
const evidenceIn = (text: string): HostFacts | undefined => hostsIn({ text, fileName: 'a.txt' })?.[0];
const made = (text: string, hardware?: string) => {
  const evidence = evidenceIn(text);
  if (evidence === undefined) throw new Error('no matrix found');
  return machineOf(evidence, hardware === undefined ? undefined : parseHardware(hardware));
};
const attributes = (root: XmlElement, name: string, attribute: string) =>
  [...descendants(root)].filter((element) => element.name === name).map((element) => element.attributes.get(attribute));

/** Breaks lines as a terminal does. */
function wrapped(text: string, width: number): string {
  return text
    .replaceAll('\t', '  ')
    .split('\n')
    .map((line) => line.replaceAll(new RegExp(`(.{1,${width}})(?:\\s|$)`, 'g'), '$1\n'))
    .join('');
}

/** Layouts of the same table. */
const layouts: readonly (readonly [name: string, text: string])[] = [
  ['padded with blanks', plain.replaceAll('\t', '      ')],
  ['with an underlined heading', plain.replace(/^.*$/m, (line) => `\u001b[4m${line}\u001b[0m`)],
  ['wrapped at 100 columns', wrapped(plain, 100)],
  ['wrapped at 60 columns', wrapped(plain, 60)],
  ['quoted in a mail', plain.replaceAll(/^/gm, '> ')],
  ['in a fence of Markdown', `My machine:\n\n\`\`\`\n$ nvidia-smi topo -m\n${plain}\`\`\`\nWhy is it slow?`],
  ['as a table of Markdown', asTable(plain)],
  ['with Windows line ends', plain.replaceAll('\n', '\r\n')],
  ['after the table of nvidia-smi', `Wed Nov 26 10:00:00 2026\n${plain}`],
  ['of an older driver, with one column for affinity', plain.replaceAll(/\t(?:NUMA Affinity|GPU NUMA ID)|\t\d+\tN\/A$/gm, '')],
];

function asTable(text: string): string {
  const [head = '', ...rows] = text.split('\n');
  const row = (line: string) => (line.includes('\t') ? `| ${line.split('\t').join(' | ')} |` : line);
  return [row(head), `|${'---|'.repeat(head.split('\t').length)}`, ...rows.map(row)].join('\n');
}

describe('nvidia-smi topo -m', () => {
  it.each(layouts)('%s is the same machine', (_, text) => {
    const withoutNodes = (root: XmlElement) => writeXml(root).replaceAll(/ numaid="\d+"/g, '');
    expect(withoutNodes(made(text).root)).toBe(withoutNodes(made(plain).root));
  });

  it('lists everything that is assumed, and what would be certain', () => {
    const { notes } = made(plain);
    expect(notes).toEqual([
      'assumed: GPUs are H100 SXM (18 NVLinks between GPUs, as H200, H20, B200 and B300 have, too): say otherwise with --hardware "8 x H100 SXM"',
      'assumed: NICs are cards of one port, ConnectX-7 with 400G: say otherwise with --hardware "8 x H100 SXM, 8 x 200G NIC"',
      'assumed: CPUs are Xeon Platinum 84xx (Sapphire Rapids)',
      'assumed: NVLinks go to NVSwitches',
      'assumed: PCIe switches are those that PIX and PXB need, at full speed',
      'to be certain, run on that machine: tccl topo detect -o machine.xml',
    ]);
  });

  it('takes models from --hardware', () => {
    const { root, notes } = made(plain, '8 x B200, 8 x 200G NIC, Emerald Rapids');
    expect(new Set(attributes(root, 'gpu', 'sm'))).toEqual(new Set(['100']));
    expect(new Set(attributes(root, 'net', 'speed'))).toEqual(new Set(['200000']));
    expect(notes.filter((note) => note.includes('say otherwise'))).toEqual([]);
  });

  it('takes models from other tools in the same text', () => {
    const list = Array.from({ length: 8 }, (_, gpu) => `GPU ${gpu}: NVIDIA H200 (UUID: GPU-2f3c-${gpu})`).join('\n');
    const ports = Array.from(
      { length: 8 },
      (_, nic) => `CA 'mlx5_${nic}'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: Active\n\t\tRate: ${nic < 4 ? 400 : 200}`,
    ).join('\n');
    const cpu =
      'Architecture:        x86_64\nVendor ID:           AuthenticAMD\n  Model name:        AMD EPYC 9654\n  CPU family:        25\n  Model:             17';
    const { root, notes } = made([list, plain, ports, cpu].join('\n\n'));
    expect(attributes(root, 'pci', 'device').filter((device) => device === '0x2335')).toHaveLength(8);
    expect(attributes(root, 'net', 'speed').sort()).toEqual([200, 200, 200, 200, 400, 400, 400, 400].map((gbps) => `${gbps}000`));
    expect(attributes(root, 'cpu', 'familyid')).toEqual(['175', '175']);
    expect(notes.filter((note) => note.startsWith('assumed'))).toHaveLength(2);
  });

  it('guesses GPUs by their NVLinks', () => {
    const guessed = (name: string) => attributes(made(matrixOf(machine(name), { legend: false })).root, 'gpu', 'sm')[0];
    const names = [
      'dgx-1v',
      'dgx-2',
      'dgx-a100',
      'hgx-a100-4',
      'dgx-h100',
      'gh200-4',
      'gb200-tray',
      'pcie-8-l40s',
      'pcie-4-a6000',
    ];
    expect(names.map(guessed)).toEqual(['70', '70', '80', '80', '90', '90', '100', '89', '86']);
  });

  it('notes that the driver refuses peer-to-peer', () => {
    const p2p = ' \tGPU0\tGPU1\nGPU0\tX\tCNS\nGPU1\tCNS\tX\n\nLegend:\n\n  X    = Self\n  CNS  = Chipset not supported\n';
    const paths = '\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tPHB\t0-15\t0\nGPU1\tPHB\t X \t0-15\t0\n';
    expect(made(paths + p2p).notes[0]).toContain('NCCL_P2P_DISABLE=1');
    expect(() => evidenceIn(p2p)).toThrow('add the output of nvidia-smi topo -m');
  });

  it.each([
    ['OK', '1'],
    ['CNS', undefined],
  ])('%s of all pairs: the driver allows peer-to-peer, also to GeForce cards', (word, expected) => {
    const p2p = ` \tGPU0\tGPU1\nGPU0\tX\t${word}\nGPU1\t${word}\tX\n`;
    const paths = '\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tPHB\t0-15\t0\nGPU1\tPHB\t X \t0-15\t0\n';
    expect(attributes(made(paths + p2p, '2 x RTX 4090').root, 'gpu', 'p2p')).toEqual([expected, expected]);
  });

  it('notes that NCCL ends with an error where peer-to-peer is refused over NVLinks, beside pairs without', () => {
    const paths = '\tGPU0\tGPU1\tGPU2\nGPU0\t X \tNV4\tPHB\nGPU1\tNV4\t X \tPHB\nGPU2\tPHB\tPHB\t X \n';
    const p2p = '\n \tGPU0\tGPU1\tGPU2\nGPU0\tX\tNS\tNS\nGPU1\tNS\tX\tOK\nGPU2\tNS\tOK\tX\n';
    const [nvlink, pci] = made(paths + p2p).notes;
    expect(nvlink).toContain('says NS for GPU0 and GPU1, although 4 NVLinks join them: NCCL then ends with');
    expect(pci).toContain('refuses peer-to-peer for GPU0 and GPU2 (of -p2p n');
  });

  it('is not seen in other texts', () => {
    for (const text of ['', 'machines: [dgx-h100]', 'GPU0 is slow\nGPU1 is not', '<system version="1"/>'])
      expect(evidenceIn(text)).toBeUndefined();
  });
});

describe('a wrong matrix', () => {
  const edited = (from: string | RegExp, to: string) => plain.replace(from, to);
  it.each([
    ['with two paths for a pair', edited(/^(NIC0\t)PIX/m, '$1SYS'), 10, 'GPU0 to NIC0 is PIX, but NIC0 to GPU0 is SYS'],
    ['that is cut off', plain.split('\n').slice(0, 6).join('\n'), 2, 'has no row of GPU5: paste all of it'],
    ['with a row that is cut off', edited(/^(GPU3(?:\t[^\t]*){5}).*$/m, '$1'), 5, 'GPU3: its row has 5 of 16 columns'],
    ['with a word of its own', edited(/^(GPU3\tNV18\t)NV18/m, '$1FAR'), 5, 'GPU3: FAR is no path that nvidia-smi prints'],
    [
      'of rocm-smi',
      '============ ROCm System Management Interface ============\n=== Weight between two GPUs ===\n       GPU0         GPU1\nGPU0   0            40\nGPU1   40           0\n',
      1,
      'rocm-smi',
    ],
    [
      'whose paths do not fit together',
      '\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\t X \tPHB\tSYS\t0-15\nGPU1\tPHB\t X \tPHB\t0-15\nGPU2\tSYS\tPHB\t X \t0-15\n',
      2,
      'GPU0 and GPU2 are SYS apart, but both are in the NUMA node of GPU1',
    ],
  ])('%s is refused with the line', (_, text, line, message) => {
    const act = () => made(text);
    expect(act).toThrow(InputError);
    expect(act).toThrow(message);
    expect(act).toThrow(expect.objectContaining({ line }) as Error);
  });

  it('and a description of another number of devices is refused', () => {
    expect(() => made(plain, '4 x H100')).toThrow('the matrix has 8 GPUs, and --hardware describes 4');
    expect(() => made(plain, '8 x H100, 2 x 400G NIC')).toThrow('the matrix has 8 NICs, and --hardware describes 2');
  });
});

it.each([
  ['NVIDIA H100 80GB HBM3', 'h100-sxm'],
  ['NVIDIA H100 PCIe', 'h100-pcie'],
  ['NVIDIA H100 NVL', 'h100-nvl'],
  ['NVIDIA A100-SXM4-80GB', 'a100-sxm'],
  ['NVIDIA A100-PCIE-40GB', 'a100-pcie'],
  ['NVIDIA A100 80GB PCIe', 'a100-pcie'],
  ['Tesla V100-SXM2-32GB', 'v100-sxm'],
  ['NVIDIA GeForce RTX 4090', 'rtx4090'],
  ['NVIDIA H20-3e', 'h20'],
  ['NVIDIA GH200 480GB', 'gh200'],
  ['NVIDIA RTX PRO 6000 Blackwell Server Edition', 'rtx-pro-6000'],
  ['NVIDIA Quadro T1000', undefined],
])('the product %s is %s', (product, id) => {
  expect(gpuOfProduct(product)?.id).toBe(id);
});
