import { describe, expect, it } from 'vitest';
import { InvalidArgumentError } from '../../../../src/errors.js';
import { defaultParameters } from '../../../../src/planner/parameters.js';
import { buildSystem } from '../../../../src/planner/topology/build/build-system.js';
import { gpuModels } from '../../../../src/planner/topology/catalogue/gpus.js';
import { lookUpModel } from '../../../../src/planner/topology/catalogue/lookup.js';
import { machine, machines } from '../../../../src/planner/topology/catalogue/machines.js';
import { computePaths } from '../../../../src/planner/topology/paths/compute-paths.js';
import { LinkType, NodeType, PathType } from '../../../../src/planner/topology/types.js';
import { parseXml } from '../../../../src/planner/topology/xml/parse.js';
import { descendants, type XmlElement } from '../../../../src/planner/topology/xml/tree.js';
import { validateTopology } from '../../../../src/planner/topology/xml/validate.js';
import { writeXml } from '../../../../src/planner/topology/xml/write.js';
import { oracleMissing, oracleXml } from './oracle-files.js';

/** NCCL's graph of a tree, without names and numbers that the maker chose: the links with both ends. */
function shape(element: XmlElement): string {
  const inner = element.children.map(shape).sort().join(' ');
  const value = (name: string) => element.attributes.get(name) ?? '';
  switch (element.name) {
    case 'cpu':
      return `cpu ${value('arch')} ${value('vendor')} (${inner})`;
    case 'pci':
      return `${value('class').slice(0, 4)} ${value('link_speed')} x${value('link_width')} (${inner})`;
    case 'gpu':
      return `sm${value('sm')} ${linksOf(element)}`;
    case 'net':
      return `net ${value('speed')} gdr${value('gdr')}`;
    default:
      return `(${inner})`;
  }
}

function linksOf(gpu: XmlElement): string {
  const counts = new Map<string, number>();
  for (const link of gpu.children) {
    const kind = link.attributes.get('tclass') ?? 'c2c';
    counts.set(kind, (counts.get(kind) ?? 0) + Number(link.attributes.get('count')));
  }
  return [...counts]
    .map(([kind, count]) => `${kind}x${count}`)
    .sort()
    .join(' ');
}

/** NVLinks between GPUs as counts by `dev`. */
function mesh(root: XmlElement): number[][] {
  const gpus = [...descendants(root)].filter((element) => element.name === 'gpu');
  const busIds = gpus.map((gpu) => gpu.parent?.attributes.get('busid'));
  return gpus.map((gpu) =>
    busIds.map((busId) =>
      Number(gpu.children.find((link) => link.attributes.get('target') === busId)?.attributes.get('count') ?? 0),
    ),
  );
}

const systemOf = (root: XmlElement) => buildSystem(root, { parameters: defaultParameters });

describe('every machine', () => {
  const names = [
    ...machines.map(({ name }) => name),
    'pcie-2-l4',
    'pcie-5-l20',
    'pcie-8-rtx4090',
    'pcie-16-a6000',
    'pcie-8-h100-pcie',
  ];

  it.each(names)('%s is possible, and is what NCCL would dump', (name) => {
    const root = machine(name);
    validateTopology(root);
    const text = writeXml(root);
    const again = parseXml(text);
    // A rack is fused by NCCL, never read from one file.
    if (!name.endsWith('nvl72')) expect(again.notes).toEqual([]);
    expect(writeXml(again.root)).toBe(text);
  });

  // PCIe boxes with two sockets reach each other over the network only: NCCL finds it faster than shared memory there.
  it.each(names)('%s: every GPU reaches every other and a NIC', (name) => {
    const system = systemOf(machine(name));
    const paths = computePaths(system, defaultParameters);
    for (const { index: from } of system.gpus) {
      const farthest = Math.max(
        ...system.gpus.map(({ index: to }) => paths.type[paths.between(NodeType.GPU, from, NodeType.GPU, to)]!),
      );
      expect(farthest).toBeLessThan(PathType.DIS);
      const nearest = Math.min(
        ...system.nets.map(({ index: net }) => paths.type[paths.between(NodeType.GPU, from, NodeType.NET, net)]!),
      );
      expect(nearest).toBeLessThan(PathType.NET);
    }
  });

  it('is a new tree each time', () => {
    machine('dgx-h100').attributes.set('name', 'changed');
    expect(machine('dgx-h100').attributes.has('name')).toBe(false);
  });
});

describe.skipIf(oracleMissing !== undefined)('recorded machines of the same type', () => {
  it.each([
    ['dgx-1v', 'dgx1v.n1'],
    ['dgx-2', 'dgx2.n1'],
    ['dgx-h100', 'dgxh100-nostorage.n1'],
    ['dgx-h100-storage', 'dgxh100.n1'],
    ['dgx-b200-storage', 'dgxb200.n1'],
    ['dgx-b300', 'dgxb300.n1'],
    ['hgx-a100-4', 'hgxa100x4-2nic.n1'],
    ['gh200', 'gh200.n1'],
    ['gh200-4', 'gh200x4.n1'],
    ['gb200-tray', 'gb200-c2c5.n1'],
    ['ac922', 'ac922-6.n1'],
  ])('%s has the shape of %s', (name, recorded) => {
    expect(shape(machine(name))).toBe(shape(parseXml(oracleXml(recorded)).root));
  });

  it('a DGX A100 equals the recorded real one, except for the second ports for storage', () => {
    const recorded = parseXml(oracleXml('real-keysight-dgxa100.n1')).root;
    for (const net of [...descendants(recorded)].filter(
      (element) => element.name === 'net' && element.attributes.get('port') === '2',
    )) {
      net.parent!.children.splice(net.parent!.children.indexOf(net), 1);
    }
    expect(shape(machine('dgx-a100-storage'))).toBe(shape(recorded));
  });

  it('a GB300 tray differs from the made one in its C2C links only', () => {
    expect(shape(machine('gb300-tray')).replaceAll('c2cx5', 'c2cx10')).toBe(shape(parseXml(oracleXml('gb300.n1')).root));
  });

  it('the mesh of DGX-1V equals the recorded one', () => {
    expect(mesh(machine('dgx-1v'))).toEqual(mesh(parseXml(oracleXml('dgx1v.n1')).root));
  });
});

describe('an NVL72 rack', () => {
  const system = systemOf(machine('gb200-nvl72'));

  it('has 72 GPUs of 18 hosts at one NVSwitch', () => {
    expect([system.gpus.length, system.hostHashes.length, system.nvSwitches.length]).toEqual([72, 18, 1]);
    expect(system.gpus.map((gpu) => gpu.rank)).toEqual(Array.from({ length: 72 }, (_, rank) => rank));
  });

  it('joins all of them by NVLink', () => {
    const paths = computePaths(system, defaultParameters);
    for (const { index } of system.gpus) {
      expect(paths.type[paths.between(NodeType.GPU, 0, NodeType.GPU, index)]).toBe(index === 0 ? PathType.LOC : PathType.NVL);
    }
  });
});

describe('a tray of Vera Rubin', () => {
  const nvlinkGBps = (ncclVersion: string) => {
    const { links } = buildSystem(machine('vr200-tray'), { parameters: { ...defaultParameters, ncclVersion } });
    return Math.max(...links.bandwidthGBps.filter((_, link) => links.type[link] === LinkType.NVL));
  };

  it.each([
    ['2.30.7', 36 * 40.1],
    ['2.31.2', 36 * 40.1],
    ['2.32.3', 36 * 31.2],
  ])('has links of the speed that NCCL %s knows', (version, gbps) => {
    expect(nvlinkGBps(version)).toBeCloseTo(gbps, 3);
  });

  it('has two cards of 800G at the switch of each GPU', () => {
    const { nets, gpus } = systemOf(machine('vr200-tray'));
    expect([gpus.length, nets.length]).toEqual([4, 8]);
    const paths = computePaths(systemOf(machine('vr200-tray')), defaultParameters);
    const types = nets.map(({ index }) => paths.type[paths.between(NodeType.GPU, 0, NodeType.NET, index)]);
    expect(types.filter((type) => type === PathType.PIX)).toHaveLength(2);
  });
});

describe('NVLinks', () => {
  it.each(machines.map(({ name }) => name))('%s uses as many per GPU as its model has', (name) => {
    for (const gpu of [...descendants(machine(name))].filter((element) => element.name === 'gpu')) {
      const device = Number(gpu.parent?.attributes.get('device'));
      const model = gpuModels.find((candidate) => candidate.device === device)!;
      const count = gpu.children
        .filter((link) => link.name === 'nvlink')
        .reduce((sum, link) => sum + Number(link.attributes.get('count')), 0);
      expect(count).toBe(name === 'gh200' ? 0 : model.nvlinks);
    }
  });

  it('are 370.8 GB/s to the switches of a DGX H100, 160 on its H800', () => {
    const bandwidth = (name: string) => {
      const { links } = systemOf(machine(name));
      return Math.max(...links.bandwidthGBps.filter((_, link) => links.type[link] === LinkType.NVL));
    };
    expect(bandwidth('dgx-h100')).toBeCloseTo(370.8, 4);
    expect(bandwidth('hgx-h800-8')).toBeCloseTo(164.8, 4);
  });
});

it('a part of a rack is its first trays', () => {
  const root = machine('gb300-nvl16');
  expect([...descendants(root)].filter(({ name }) => name === 'gpu').map(({ attributes }) => attributes.get('rank'))).toEqual(
    Array.from({ length: 16 }, (_, rank) => String(rank)),
  );
  expect(writeXml(machine('gb300-nvl72')).startsWith(writeXml(root).replace(/<\/system>\s*$/, ''))).toBe(true);
});

describe('names', () => {
  it.each([
    ['DGX-H100', 'dgx-h100'],
    ['dgxh100', 'dgx-h100'],
    ['nvl72', 'gb200-nvl72'],
  ])('%s is %s', (alias, name) => {
    expect(writeXml(machine(alias))).toBe(writeXml(machine(name)));
  });

  it.each([
    ['dgx-h10', /did you mean dgx-h100\?/],
    ['pcie-1-l40s', /pcie-N-GPU/],
    ['pcie-17-l40s', /N from 2 to 16/],
    ['pcie-8-rx580', /pcie-8-l40s/],
    ['p5.49xlarge', /did you mean p5\.48xlarge\?/],
    ['gb300-nvl17', /did you mean gb300-nvl16\?/],
    ['gb200-nvl76', /did you mean gb200-nvl72\?/],
    ['gb200-nvl0', /did you mean gb200-nvl4\?/],
  ])('%s is unknown', (name, message) => {
    expect(() => machine(name)).toThrow(InvalidArgumentError);
    expect(() => machine(name)).toThrow(message);
  });

  it.each([
    ['H100 SXM', 'h100-sxm'],
    ['h100', 'h100-sxm'],
    ['RTX-4090', 'rtx4090'],
    ['rtx a6000', 'a6000'],
    ['GeForce RTX 4090', 'rtx4090'],
  ])('the GPU %s is %s', (spelling, id) => {
    expect(lookUpModel(spelling, gpuModels, 'GPU').id).toBe(id);
  });
});
