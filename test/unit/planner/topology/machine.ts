import { defaultParameters, type Parameters } from '../../../../src/planner/parameters.js';
import { buildSystem, type SystemNote } from '../../../../src/planner/topology/build/build-system.js';
import { type LocalSystem, localSystems } from '../../../../src/planner/topology/local-systems.js';
import { hopNames } from '../../../../src/planner/topology/paths/compute-paths.js';
import { nodeName, type System, type SystemNode } from '../../../../src/planner/topology/system.js';
import { linkTypeName, pathTypeNames } from '../../../../src/planner/topology/types.js';
import { parseXml } from '../../../../src/planner/topology/xml/parse.js';
import type { XmlElement } from '../../../../src/planner/topology/xml/tree.js';

/** Small machines as XML, and what the planner makes of them in words that tests can compare. */

/** A `<cpu>`: an Intel Skylake unless the attributes say otherwise. */
export function cpu(
  numaId: number,
  content: string,
  attributes = 'arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85"',
): string {
  return `<cpu numaid="${numaId}" affinity="0000ffff" ${attributes}>${content}</cpu>`;
}

/** A PCI switch, Gen4 x16. */
export function pciSwitch(
  bus: string,
  content: string,
  attributes = 'class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16"',
): string {
  return `<pci busid="0000:${bus}:00.0" ${attributes}>${content}</pci>`;
}

/** A GPU of sm 80 on a PCI device of Gen4 x16, with what is below `<gpu>`. */
export function gpu(bus: string, rank: number, below = '', attributes = 'sm="80" gdr="1"'): string {
  return pciSwitch(
    bus,
    `<gpu dev="${rank}" rank="${rank}" ${attributes}>${below}</gpu>`,
    'class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"',
  );
}

/** NVLinks to another GPU. */
export function nvLink(bus: string, count: number): string {
  return `<nvlink target="0000:${bus}:00.0" count="${count}" tclass="0x030200"/>`;
}

/** NVLinks to the NVSwitches. */
export function nvSwitchLink(count: number): string {
  return `<nvlink target="fffffff:ffff:ff" count="${count}" tclass="0x068000"/>`;
}

/** A NIC of 200 Gb/s on a PCI device of Gen4 x16. */
export function nic(bus: string, dev: number, attributes = 'speed="200000" port="1" gdr="1"'): string {
  const net = `<net name="mlx5_${dev}" dev="${dev}" guid="0x${(dev + 1).toString(16)}" ${attributes}/>`;
  return pciSwitch(bus, `<nic>${net}</nic>`, 'class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16"');
}

export function systemXml(...cpus: readonly string[]): XmlElement {
  return parseXml(`<system version="1">${cpus.join('\n')}</system>`).root;
}

export function parametersWith(changes: Partial<Parameters>): Parameters {
  return { ...defaultParameters, ...changes };
}

export function build(root: XmlElement, parameters = defaultParameters): System {
  return buildSystem(root, { parameters });
}

/** The notes that building gives. */
export function notesOf(root: XmlElement): string[] {
  const notes: SystemNote[] = [];
  buildSystem(root, { parameters: defaultParameters, onNote: (note) => notes.push(note) });
  return notes.map(({ message }) => message);
}

/** The machine as its ranks see it, which must be all the same. */
export function onlyLocalSystem(root: XmlElement, parameters = defaultParameters, communicatorRanks?: number): LocalSystem {
  const system = build(root, parameters);
  const [local, ...others] = localSystems(system, parameters, communicatorRanks ?? system.gpus.length);
  if (local === undefined || others.length > 0) throw new Error(`ranks see ${others.length + 1} systems`);
  return local;
}

/** `PCI 24 DEV/0-2000` for each link of a node. */
export function linksOf(system: System, name: string): string[] {
  const { vertex } = nodeNamed(system, name);
  const { start, to, type, bandwidthGBps } = system.links;
  return Array.from({ length: start[vertex + 1]! - start[vertex]! }, (_, position) => {
    const link = start[vertex]! + position;
    return `${linkTypeName(type[link]!)} ${Number(bandwidthGBps[link]!.toPrecision(6))} ${nodeName(system.nodes[to[link]!]!)}`;
  });
}

/** `PIX 24 DEV/0-2000 PCI/0-1000 …`: type, bandwidth and hops of the path between two nodes. */
export function pathOf({ system, paths }: Pick<LocalSystem, 'system' | 'paths'>, from: string, to: string): string {
  const target = nodeNamed(system, to);
  const path = paths.to(target.type, target.index) + nodeNamed(system, from).vertex;
  return [pathTypeNames[paths.type[path]!], Number(paths.bandwidthGBps[path]!.toPrecision(6)), ...hopNames(paths, path)].join(
    ' ',
  );
}

export function nodeNamed(system: System, name: string): SystemNode {
  const node = system.nodes.find((candidate) => nodeName(candidate) === name);
  if (node === undefined) throw new Error(`no node ${name} among ${system.nodes.map(nodeName).join(' ')}`);
  return node;
}
