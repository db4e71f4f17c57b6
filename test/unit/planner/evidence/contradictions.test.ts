import { describe, expect, it } from 'vitest';
import { evidenceIn, type EvidenceText } from '../../../../src/planner/evidence/facts.js';
import { machineOf } from '../../../../src/planner/evidence/machine-of-tools.js';
import { machine } from '../../../../src/planner/topology/catalogue/machines.js';
import { matrixOf } from './matrix-of.js';
import { pathTypes } from './plan-of.js';
import { gpuList, gresLine, lspciList, lspciTree, lstopoXml, nodeLabels, portList } from './print-tools.js';

const h100 = machine('dgx-h100');
const make = (...texts: readonly string[]) => {
  const named = texts.map((text, index): EvidenceText => ({ text, fileName: `${index + 1}.txt` }));
  return (evidenceIn(...named) ?? []).map((host) => machineOf(host, undefined));
};

describe('outputs that contradict each other are named with both places:', () => {
  const matrix = matrixOf(h100, { legend: true });
  it.each([
    [
      'numbers of GPUs',
      [gpuList(h100).split('\n').slice(0, 4).join('\n'), matrix].join('\n\n'),
      'nvidia-smi topo -m (line 6) has 8 GPUs, but nvidia-smi -L (line 1) has 4 GPUs',
    ],
    [
      'models',
      [
        gpuList(h100),
        nodeLabels(machine('dgx-a100'))
          .replace(/^Name.*$/m, '')
          .replace(/^.*hostname.*$/m, ''),
      ].join('\n\n'),
      'nvidia-smi -L (line 1) says H100 SXM, but the labels of Kubernetes',
    ],
    [
      'an instance and its GPUs',
      ['"instanceType": "p4d.24xlarge"', gpuList(h100)].join('\n'),
      'the product name (line 1) says aws-p4d with 8 x A100 SXM, but nvidia-smi -L (line 2) says H100 SXM',
    ],
    [
      'places of devices',
      [matrix.replaceAll('PIX', 'NODE'), lstopoXml(h100)].join('\n'),
      'nvidia-smi topo -m (line 1) says that GPU0 and mlx5_0 are NODE apart, but lstopo (line 37) shows them below one bridge',
    ],
  ])('%s', (_, text, message) => {
    expect(() => make(text)).toThrow(message);
  });

  it('in a folder, by their files', () => {
    const act = () => make(gpuList(h100), nodeLabels(machine('dgx-a100')).replaceAll(/^.*(?:Name:|hostname).*$/gm, ''));
    expect(act).toThrow('nvidia-smi -L (1.txt:1) says H100 SXM, but the labels of Kubernetes (2.txt:');
    expect(act).toThrow(expect.objectContaining({ file: '2.txt' }) as Error);
  });
});

describe('outputs together', () => {
  it('are one host in a folder with a file for each', () => {
    const [made, other] = make(lspciTree(h100), matrixOf(h100, { legend: true }), gpuList(h100), portList(h100));
    expect(other).toBeUndefined();
    expect(pathTypes(made?.root ?? h100)).toEqual(pathTypes(h100));
  });

  it('are hosts where two files have the same kind', () => {
    expect(
      evidenceIn({ text: gpuList(h100), fileName: 'a' }, { text: gpuList(machine('dgx-a100')), fileName: 'b' }),
    ).toMatchObject([{ name: 'a' }, { name: 'b' }]);
  });

  it('keep the links that lspci shows', () => {
    const slow = lspciList(h100).replaceAll(/(LnkCap:.*)Width x16/g, '$1Width x8');
    const [made] = make([slow, portList(h100)].join('\n\n'));
    const widths = [...JSON.stringify([...(made?.root.children ?? [])].map(text)).matchAll(/link_width=(\d+)/g)].map(
      ([, width]) => width,
    );
    expect(new Set(widths)).toEqual(new Set(['8']));
  });

  it('with names alone are the product, and list the others that fit', () => {
    for (const words of [gresLine(h100), nodeLabels(h100)])
      expect(make(words)[0]?.notes.join('\n')).toMatch(/the machine is dgx-h100 \(8 x H100 SXM\); .*aws-p5.* have as many/);
  });

  it('without GPUs ask for them', () => {
    expect(() => make(portList(h100))).toThrow('ibstat has no GPUs: add the output of nvidia-smi topo -m of that host');
    expect(() => make('-+-[0000:00]-+-00.0\n |           \\-01.0-[01]----00.0\n')).toThrow('lspci -tv has no GPUs');
  });
});

/** Attributes of a tree as text. */
function text(element: {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: readonly unknown[];
}): string {
  const own = [...element.attributes].map(([name, value]) => `${name}=${value}`).join(' ');
  return `${element.name} ${own} ${element.children.map((child) => text(child as typeof element)).join(' ')}`;
}
