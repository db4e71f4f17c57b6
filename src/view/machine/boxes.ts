import {
  CpuArch,
  CpuModel,
  type CpuNode,
  CpuVendor,
  type DevNode,
  type GpuNode,
  nodeName,
  type System,
  type SystemNode,
} from '../../planner/topology/system.js';
import { LinkType, NodeType, pathTypeNames } from '../../planner/topology/types.js';
import type { Paths } from '../../planner/topology/paths/paths.js';
import { descendants, type XmlElement } from '../../planner/topology/xml/tree.js';
import { cpuList, formatBusId, formatGBps } from '../../planner/topology/format.js';
import { systemSummary } from '../../planner/topology/summary.js';

/**
 * A machine as a drawing: nested boxes, wires between them, and the matrix of paths. All outputs draw from this one model, so
 * that they agree.
 */
export interface Drawing {
  readonly title: string;
  /** `8 GPUs (sm 90), 8 network devices, 2 CPUs`. */
  readonly summary: string;
  readonly hosts: readonly HostDrawing[];
  readonly wires: readonly Wire[];
  /** GPUs, then network devices: rows and columns of the matrix. */
  readonly endpoints: readonly Endpoint[];
  /** Of each endpoint to each other. */
  readonly matrix: readonly (readonly PathCell[])[];
}

export interface HostDrawing {
  /** Empty when there is only one. */
  readonly label: string;
  readonly cpus: readonly Box[];
}

/** Adjacent hosts that are equal but for their names and ranks, of which one is drawn. */
export interface FoldedHosts {
  readonly host: HostDrawing;
  /** The others. */
  readonly alike: readonly HostDrawing[];
  /** Name of the run: that of its only host, or its first, last and drawn ones. */
  readonly label: string;
}

/** Runs of equal hosts. @param shown number of the host that stands for those of its run; else the first does */
export function foldHosts(hosts: readonly HostDrawing[], shown = 0): FoldedHosts[] {
  const runs: { readonly shape: string; readonly first: number; readonly members: HostDrawing[] }[] = [];
  hosts.forEach((host, index) => {
    const shape = shapeOf(host);
    const last = runs.at(-1);
    if (last?.shape === shape) last.members.push(host);
    else runs.push({ shape, first: index, members: [host] });
  });
  return runs.flatMap(({ first, members }) => {
    const host = members[shown - first] ?? members[0];
    if (host === undefined) return [];
    const alike = members.filter((member) => member !== host);
    const label = alike.length === 0 ? host.label : `${host.label}, which stands for ${runLabel(members)}`;
    return [{ host, alike, label }];
  });
}

/** `host 1 (0x1001) to host 17 (0x1011)`. */
export function runLabel(hosts: readonly HostDrawing[]): string {
  const [first, last] = [hosts[0]?.label ?? '', hosts.at(-1)?.label ?? ''];
  return first === last ? first : `${first} to ${last}`;
}

/** Key of a host without its name and ranks, to find equal hosts. */
function shapeOf(host: HostDrawing): string {
  return JSON.stringify(host.cpus, (key, value: unknown) =>
    key === 'id' ? undefined : key === 'details' ? (value as string[]).filter((detail) => !detail.startsWith('rank')) : value,
  );
}

type BoxKind = 'cpu' | 'switch' | 'gpu' | 'card' | 'port';

/** A drawn device: its box is in that of the device above it. */
export interface Box {
  /** Name of the node, as in NCCL's log: `PCI/0-16000`. */
  readonly id: string;
  readonly kind: BoxKind;
  readonly label: string;
  /** Further facts, one phrase each. */
  readonly details: readonly string[];
  /** Bandwidth of the link to the box around it, GB/s; undefined for a CPU. */
  readonly uplinkGBps: number | undefined;
  readonly children: readonly Box[];
}

/** A link outside of the PCI tree. Links of both directions are one wire. */
export interface Wire {
  /** `id` of a box, or {@link NVSWITCH_ID}. */
  readonly from: string;
  readonly to: string;
  readonly kind: 'NVL' | 'C2C' | 'SYS' | 'LOC';
  readonly bandwidthGBps: number;
}

/** Id of the node that represents all NVSwitches of a drawing. */
export const NVSWITCH_ID = 'NVS';

interface Endpoint {
  readonly id: string;
  readonly kind: 'gpu' | 'net';
  /** `GPU0`, `NET3`. */
  readonly label: string;
}

interface PathCell {
  /** `NVL`, `PHB` …; `X` for the endpoint itself. */
  readonly type: string;
  readonly bandwidthGBps: number;
}

/** The drawing of a system. `source` is the tree from which it was built, which has the names of network devices. */
export function draw(title: string, system: System, paths: Paths, source?: XmlElement): Drawing {
  const names = source === undefined ? new Map<number, string>() : netNames(source);
  const tree = new TreeDrawer(system, names);
  const hosts = system.hostHashes.map((hash, host) => ({
    label: system.hostHashes.length > 1 ? `host ${host} (0x${hash.toString(16)})` : '',
    cpus: system.cpus.filter((cpu) => cpu.systemId === host).map((cpu) => tree.cpu(cpu)),
  }));
  const several = system.hostHashes.length > 1;
  const endpoints = [
    ...system.gpus.map((gpu) => ({
      node: gpu,
      kind: 'gpu' as const,
      label: several ? `GPU${gpu.rank}` : gpuLabel(system, gpu.rank, gpu.dev),
    })),
    ...system.nets.map((net) => ({
      node: net,
      kind: 'net' as const,
      label: several ? `NET${net.systemId}.${net.dev}` : `NET${net.dev}`,
    })),
  ];
  return {
    title,
    summary: systemSummary(system),
    hosts,
    wires: wires(system),
    endpoints: endpoints.map(({ node, kind, label }) => ({ id: nodeName(node), kind, label })),
    matrix: endpoints.map(({ node: from }) =>
      endpoints.map(({ node: to }) => {
        if (from === to) return { type: 'X', bandwidthGBps: 0 };
        const path = paths.between(from.type, from.index, to.type, to.index);
        return { type: pathTypeNames[paths.type[path] ?? 11] ?? 'DIS', bandwidthGBps: paths.bandwidthGBps[path] ?? 0 };
      }),
    ),
  };
}

/** Names of GPUs are by `dev`; where several ranks share one, by rank. */
function gpuLabel(system: System, rank: number, dev: number): string {
  const unique = system.gpus.filter((gpu) => gpu.dev === dev).length === 1;
  return `GPU${unique ? dev : `${dev}r${rank}`}`;
}

/** Names of network devices, by host and number: hosts in order of their CPUs, as systems count them. */
function netNames(source: XmlElement): Map<number, string> {
  const names = new Map<number, string>();
  const hosts: string[] = [];
  for (const cpu of source.children) {
    const hash = cpu.attributes.get('host_hash') ?? '';
    if (!hosts.includes(hash)) hosts.push(hash);
    for (const element of descendants(cpu)) {
      const name = element.attributes.get('name');
      if (element.name === 'net' && name !== undefined)
        names.set(netKey(hosts.indexOf(hash), Number(element.attributes.get('dev'))), name);
    }
  }
  return names;
}

function netKey(systemId: number, dev: number): number {
  return systemId * 65_536 + dev;
}

/** Walks the PCI tree from a CPU down. */
class TreeDrawer {
  readonly #system: System;
  readonly #names: ReadonlyMap<number, string>;

  constructor(system: System, names: ReadonlyMap<number, string>) {
    this.#system = system;
    this.#names = names;
  }

  cpu(cpu: CpuNode): Box {
    const cores = cpuList(cpu.affinity);
    return this.#box(
      cpu,
      'cpu',
      `CPU ${numaText(cpu.localId)}`,
      [cpuText(cpu), ...(cores === '' ? [] : [`cores ${cores}`])],
      undefined,
      undefined,
    );
  }

  #node(node: SystemNode, uplinkGBps: number, parent: SystemNode): Box | undefined {
    switch (node.type) {
      case NodeType.PCI:
        return this.#box(node, 'switch', `PCI switch ${formatBusId(node.localId)}`, [], uplinkGBps, parent);
      case NodeType.DEV:
      case NodeType.GPU:
        return { id: nodeName(node), kind: 'gpu', ...this.#gpuText(node), uplinkGBps, children: [] };
      case NodeType.NIC:
        return this.#box(
          node,
          'card',
          node.localId === 0n ? 'NIC (no PCI)' : `NIC ${formatBusId(node.localId)}`,
          [],
          uplinkGBps,
          parent,
        );
      case NodeType.NET: {
        const name = this.#names.get(netKey(node.systemId, node.dev));
        const details = [name, node.gdr ? undefined : 'no GDR', node.coll ? 'SHARP' : undefined].filter(
          (detail) => detail !== undefined,
        );
        return { id: nodeName(node), kind: 'port', label: `NET ${node.dev}`, details, uplinkGBps, children: [] };
      }
      case NodeType.NVS:
      case NodeType.CPU:
      case NodeType.GIN:
      case NodeType.RMA:
      case NodeType.CXB:
        return undefined;
    }
  }

  #box(
    node: SystemNode,
    kind: BoxKind,
    label: string,
    details: readonly string[],
    uplinkGBps: number | undefined,
    parent: SystemNode | undefined,
  ): Box {
    const children: { readonly order: bigint; readonly box: Box }[] = [];
    const { start, to, type, bandwidthGBps } = this.#system.links;
    for (let link = start[node.vertex] ?? 0; link < (start[node.vertex + 1] ?? 0); link++) {
      const child = this.#system.nodes[to[link] ?? -1];
      if (child === undefined || child === parent || child.type === NodeType.CPU) continue;
      if (type[link] !== LinkType.PCI && type[link] !== LinkType.NET) continue;
      const box = this.#node(child, bandwidthGBps[link] ?? 0, node);
      if (box !== undefined) children.push({ order: child.localId, box });
    }
    // By bus id, so that neighbours in the machine are neighbours in the drawing.
    children.sort((a, b) => (a.order < b.order ? -1 : a.order > b.order ? 1 : 0));
    return { id: nodeName(node), kind, label, details, uplinkGBps, children: children.map(({ box }) => box) };
  }

  #gpuText(dev: DevNode | GpuNode): { label: string; details: readonly string[] } {
    const gpus = this.#system.gpus.filter((gpu) => gpu.parent === dev.index);
    const ranks = gpus.map((gpu) => gpu.rank);
    const plain = ranks.length === 1 && ranks[0] === dev.dev;
    const rankText = ranks.length === 0 ? ['unused'] : plain ? [] : [`rank${ranks.length > 1 ? 's' : ''} ${ranks.join(' ')}`];
    return {
      label: `${dev.sm === 0 ? 'CPU device' : 'GPU'} ${dev.dev}`,
      details: [
        formatBusId(dev.localId & ~3n),
        ...rankText,
        ...(gpus.some((gpu) => !gpu.gdr) ? ['no GDR'] : []),
        ...this.#linkText(dev),
      ],
    };
  }

  /** `NVLink 370.8 GB/s to NVSwitch`, `NVLink to GPU 1 20, GPU 3 40 GB/s`. */
  #linkText(dev: DevNode | GpuNode): string[] {
    const { start, to, type, bandwidthGBps } = this.#system.links;
    const texts: string[] = [];
    const gpus: { readonly dev: number; readonly text: string }[] = [];
    for (let link = start[dev.vertex] ?? 0; link < (start[dev.vertex + 1] ?? 0); link++) {
      const target = this.#system.nodes[to[link] ?? -1];
      const gbps = formatGBps(bandwidthGBps[link] ?? 0);
      if (target === undefined) continue;
      if (type[link] === LinkType.C2C) texts.push(`C2C ${gbps} GB/s`);
      if (type[link] !== LinkType.NVL) continue;
      if (target.type === NodeType.DEV || target.type === NodeType.GPU)
        gpus.push({ dev: target.dev, text: `GPU ${target.dev} ${gbps}` });
      else texts.push(`NVLink ${gbps} GB/s to ${target.type === NodeType.NVS ? 'NVSwitch' : 'CPU'}`);
    }
    gpus.sort((a, b) => a.dev - b.dev);
    if (gpus.length > 0) texts.unshift(`NVLink to ${gpus.map(({ text }) => text).join(', ')} GB/s`);
    return texts;
  }
}

function wires(system: System): Wire[] {
  const result: Wire[] = [];
  const kinds = new Map<number, Wire['kind']>([
    [LinkType.NVL, 'NVL'],
    [LinkType.C2C, 'C2C'],
    [LinkType.SYS, 'SYS'],
    [LinkType.LOC, 'LOC'],
  ]);
  const id = (node: SystemNode) => (node.type === NodeType.NVS ? NVSWITCH_ID : nodeName(node));
  // GPU nodes are drawn as their hardware; in versions without hardware nodes they are it.
  const isPart = (node: SystemNode) => node.type === NodeType.GPU && system.hardware[node.parent]?.type === NodeType.DEV;
  const { start, to, type, bandwidthGBps } = system.links;
  for (const node of system.nodes) {
    for (let link = start[node.vertex] ?? 0; link < (start[node.vertex + 1] ?? 0); link++) {
      const target = system.nodes[to[link] ?? -1];
      const kind = kinds.get(type[link] ?? -1);
      if (target === undefined || kind === undefined) continue;
      if (isPart(node) || isPart(target)) continue;
      const isBack = result.some((wire) => wire.kind === kind && wire.from === id(target) && wire.to === id(node));
      if (!isBack) result.push({ from: id(node), to: id(target), kind, bandwidthGBps: bandwidthGBps[link] ?? 0 });
    }
  }
  return result;
}

const archNames = new Map<number, string>([
  [CpuArch.X86, 'x86_64'],
  [CpuArch.POWER, 'ppc64'],
  [CpuArch.ARM, 'arm64'],
]);
const vendorNames = new Map<number, string>([
  [CpuVendor.INTEL, 'Intel'],
  [CpuVendor.AMD, 'AMD'],
  [CpuVendor.ZHAOXIN, 'Zhaoxin'],
]);
const intelModelNames = new Map<number, string>([
  [CpuModel.INTEL_BDW, 'Broadwell or older'],
  [CpuModel.INTEL_SKL, 'Skylake to Ice Lake'],
  [CpuModel.INTEL_SRP, 'Sapphire Rapids'],
  [CpuModel.INTEL_ERP, 'Emerald Rapids'],
]);

function cpuText({ arch, vendor, model }: CpuNode): string {
  return [
    archNames.get(arch) ?? 'unknown architecture',
    ...(arch === CpuArch.X86 ? [vendorNames.get(vendor) ?? 'unknown vendor'] : []),
    ...(vendor === CpuVendor.INTEL ? [intelModelNames.get(model) ?? ''] : []),
  ].join(' ');
}

/** A NUMA number; all bits set mean -1. */
function numaText(localId: bigint): string {
  return BigInt.asIntN(56, localId).toString();
}
