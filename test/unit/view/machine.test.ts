import { describe, expect, it } from 'vitest';
import { defaultParameters } from '../../../src/planner/parameters.js';
import { buildSystem } from '../../../src/planner/topology/build/build-system.js';
import { machine } from '../../../src/planner/topology/catalogue/machines.js';
import { computePaths } from '../../../src/planner/topology/paths/compute-paths.js';
import { type Drawing, draw } from '../../../src/view/machine/boxes.js';
import { cpuList, formatBusId, formatGBps } from '../../../src/planner/topology/format.js';
import { systemJson } from '../../../src/planner/topology/system-json.js';
import { svgFile } from '../../../src/view/draw/svg.js';
import { type LinkUse, linkKey, machinePicture } from '../../../src/view/machine/picture.js';
import type { Picture, RectMark } from '../../../src/view/draw/picture.js';
import { drawList } from './draw-list.js';
import { matrixText, pathCountLines, treeText } from '../../../src/view/machine/text.js';
import { parseXml } from '../../../src/planner/topology/xml/parse.js';
import type { XmlElement } from '../../../src/planner/topology/xml/tree.js';

function load(root: XmlElement) {
  const system = buildSystem(root, { parameters: defaultParameters });
  return { system, paths: computePaths(system, defaultParameters) };
}

function drawingOf(name: string): Drawing {
  const root = machine(name);
  const { system, paths } = load(root);
  return draw(name, system, paths, root);
}

// After a wanted change of a view: npx vitest run -u, and look at what changed.
describe('golden views', () => {
  it.each(['dgx-1v', 'dgx-a100-storage', 'dgx-h100', 'gb200-tray', 'ac922', 'pcie-8-a6000'])('%s', async (name) => {
    const drawing = drawingOf(name);
    await expect(`${treeText(drawing)}\n${matrixText(drawing)}`).toMatchFileSnapshot(`golden/${name}.txt`);
    await expect(drawList(machinePicture(drawing))).toMatchFileSnapshot(`golden/machine-${name}.txt`);
  });

  it('a rack: equal hosts are drawn once', async () => {
    const drawing = drawingOf('gb200-nvl72');
    await expect(`${treeText(drawing)}\n${pathCountLines(drawing).join('\n')}\n`).toMatchFileSnapshot('golden/gb200-nvl72.txt');
    await expect(drawList(machinePicture(drawing))).toMatchFileSnapshot('golden/machine-gb200-nvl72.txt');
  });
});

describe('pictures', () => {
  const ofPhone = ['dgx-h100', 'dgx-a100', 'gb200-nvl72', 'pcie-16-l40s', 'dgx-1v', 'pcie-8-a6000', 'ac922'];
  it.each(ofPhone)('on a phone %s has its width, and every GPU', (name) => {
    const drawing = drawingOf(name);
    const { marks, width } = machinePicture(drawing, { width: 350 });
    expect(width).toBeLessThanOrEqual(400);
    const count = (all: typeof marks) => all.filter(({ kind, look }) => kind === 'rect' && look === 'gpu').length;
    expect(count(marks)).toBe(count(machinePicture(drawing).marks));
  });

  it('on a phone every NVLink between GPUs is a cell, and selects the same link', () => {
    const drawing = drawingOf('dgx-1v');
    const links = ({ marks }: Picture) =>
      new Set(marks.filter(({ look }) => look === 'nvlink' || look === 'cell').flatMap(({ subject }) => subject ?? []));
    const subjects = links(machinePicture(drawing));
    expect(subjects.size).toBe(16);
    expect(links(machinePicture(drawing, { width: 350 }))).toEqual(subjects);
  });

  const rects = (name: string, look: string) =>
    machinePicture(drawingOf(name)).marks.filter((mark): mark is RectMark => mark.kind === 'rect' && mark.look === look);

  it.each(['dgx-2', 'gb300-nvl72', 'pcie-16-l40s'])('%s is well-formed and draws every GPU of a host', (name) => {
    const drawing = drawingOf(name);
    const { root } = parseXml(svgFile(machinePicture(drawing)));
    expect(root.children.map((element) => element.name)).toContain('rect');
    const nGpus = drawing.endpoints.filter(({ kind }) => kind === 'gpu').length;
    expect(rects(name, 'gpu')).toHaveLength(nGpus / drawing.hosts.length);
  });

  it.each(['dgx-2', 'aws-p5', 'pcie-16-l40s', 'gb200-nvl72', 'polaris'])('%s: boxes of devices do not overlap', (name) => {
    const boxes = [...rects(name, 'gpu'), ...rects(name, 'card')];
    for (const a of boxes)
      for (const b of boxes)
        if (a !== b)
          expect(a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y).toBe(true);
  });

  it.each(['dgx-h100', 'dgx-1v'])('NVLinks of %s are drawn for versions of NCCL whose graph has no hardware nodes', (name) => {
    const root = machine(name);
    const wires = (ncclVersion: string) => {
      const parameters = { ...defaultParameters, ncclVersion };
      const system = buildSystem(root, { parameters });
      return draw(name, system, computePaths(system, parameters), root).wires.filter(({ kind }) => kind === 'NVL').length;
    };
    expect(wires('2.27.7')).toBe(wires(defaultParameters.ncclVersion));
  });

  it('lines to NVSwitches cross no GPU: each row of CPUs has a bar, and the CPUs are joined', () => {
    const { marks } = machinePicture(drawingOf('dgx-2'));
    const lines = marks.flatMap((mark) => {
      if (mark.kind !== 'path' || mark.look !== 'nvlink') return [];
      const [x = 0, from = 0, , to = 0] = mark.d.match(/[\d.]+/g)?.map(Number) ?? [];
      return [{ x, from, to }];
    });
    expect(lines).toHaveLength(16);
    for (const { x, from, to } of lines)
      expect(rects('dgx-2', 'gpu').filter((gpu) => gpu.x < x && x < gpu.x + gpu.width && from < gpu.y && gpu.y < to)).toEqual([]);
    expect(rects('dgx-2', 'nvs')).toHaveLength(2);
    expect(marks.filter(({ look }) => look === 'cpulink')).toHaveLength(1);
  });

  it('has a legend for the widths of arcs, and writes NVLinks to a CPU as text', () => {
    expect(svgFile(machinePicture(drawingOf('dgx-1v')))).toMatch(/>NVLink<[\s\S]*>20 GB\/s<[\s\S]*>40 GB\/s</);
    expect(svgFile(machinePicture(drawingOf('ac922')))).toContain('>NVLink 40 GB/s to CPU<');
  });

  it('colours links by the fuller direction', () => {
    const drawing = drawingOf('dgx-h100');
    const gpu = drawing.hosts[0]?.cpus[0]?.children[0]?.children.find(({ kind }) => kind === 'gpu');
    const switchId = drawing.hosts[0]?.cpus[0]?.children[0]?.id ?? '';
    const loads = new Map<string, LinkUse>([
      [linkKey(gpu?.id ?? '', switchId), { usedGBps: 12, gbps: 48 }],
      [linkKey(switchId, gpu?.id ?? ''), { usedGBps: 48, gbps: 48 }],
    ]);
    const { marks } = machinePicture(drawing, { loads });
    const link = marks.find(({ subject }) => subject === `link/${gpu?.id ?? ''}>${switchId}`);
    expect(link).toMatchObject({ stroke: 'load5', tip: `${gpu?.id ?? ''} to ${switchId}: 12 GB/s there, 48 back, of 48` });
    expect(marks.filter(({ stroke }) => stroke === 'load0').length).toBeGreaterThan(10);
  });

  it('escapes names that would break XML', () => {
    const drawing = { ...drawingOf('gh200'), title: '<b>&"' };
    expect(svgFile(machinePicture(drawing))).toContain('&lt;b&gt;&amp;&quot;');
  });
});

describe('contents of a view', () => {
  const shared = parseXml(`<system version="1"><cpu numaid="-1" arch="arm64">
    <pci busid="0000:01:00.0" class="0x030200" link_speed="" link_width="0">
      <gpu dev="0" sm="80" rank="2" gdr="0"/><gpu dev="0" sm="80" rank="1" gdr="1"/>
    </pci>
    <nic><net name="eth0" dev="0" speed="-1"/></nic></cpu></system>`).root;

  it('GPUs that ranks share, NICs that are no PCI devices, NUMA -1', () => {
    const { system, paths } = load(shared);
    const text = treeText(draw('made', system, paths, shared));
    expect(text).toContain('CPU -1');
    expect(text).toContain('GPU 0  0000:01:00.0 · ranks 2 1 · no GDR');
    expect(text).toContain('NIC (no PCI)');
    expect(text).toContain('1.25 ─ NET 0  eth0 · no GDR');
  });

  it('every node and path, by name, as JSON', () => {
    const { system, paths } = load(shared);
    const json = JSON.parse(JSON.stringify(systemJson(system, paths))) as ReturnType<typeof systemJson>;
    expect(json.nodes.map(({ id }) => id)).toEqual([
      'GPU/0-1000',
      'GPU/0-10000001000',
      'CPU/0-ffffffffffffff',
      'NIC/0-0',
      'NET/0-0',
      'DEV/0-1000',
    ]);
    expect(json.nodes[0]).toMatchObject({
      type: 'GPU',
      rank: 2,
      sm: 80,
      gdr: false,
      parent: 'DEV/0-1000',
      links: [{ to: 'DEV/0-1000', type: 'LOC', bandwidthGBps: 5000 }],
    });
    expect(json.paths.find(({ from, to }) => from === 'GPU/0-1000' && to === 'NET/0-0')).toMatchObject({
      type: 'PHB',
      bandwidthGBps: 1.25,
      hops: ['DEV/0-1000', 'CPU/0-ffffffffffffff', 'NIC/0-0', 'NET/0-0'],
    });
  });
});

it.each([
  [0x1b000n, '0000:1b:00.0'],
  [0x1_0000_0010n, '1000:00:01.0'],
  [0xfffffff0ffn, 'fffff:ff:0f.f'],
])('%s is bus %s', (id, text) => {
  expect(formatBusId(id)).toBe(text);
});

it.each([
  [48, '48'],
  [Math.fround(370.8), '370.8'],
  [0.1875, '0.1875'],
  [Math.fround(223.56), '223.6'],
])('%s GB/s is %s', (value, text) => {
  expect(formatGBps(value)).toBe(text);
});

it.each([
  [[], ''],
  [[3], '3'],
  [[0, 1, 2, 8, 10, 11], '0-2,8,10-11'],
])('cores %s are %s', (cores, text) => {
  expect(cpuList(cores)).toBe(text);
});
