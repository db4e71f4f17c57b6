import type { LocalSystem } from '../topology/local-systems.js';
import { CpuArch, CpuVendor, hardwareType, nodeName, type System, type SystemNode } from '../topology/system.js';
import { LinkType, NodeType, PathType, pxnFirst } from '../topology/types.js';
import type { SearchRules } from './search-input.js';

/** Share of a channel's bandwidth that a hop takes, and the direction; a set of these bits. */
export const HopLoad = {
  /** A PCI link of a path from a GPU through an Intel CPU, which cuts peer traffic into small packets: 6/5. */
  SMALL_PACKETS: 1,
  /** A NIC or NVSwitch that reaches a GPU older than sm 80: an eighth also flows back. */
  EIGHTH_BACK: 2,
  /** NVLink into a POWER CPU: both directions share one bandwidth. */
  ALL_BACK: 4,
} as const;

/**
 * The paths that the search uses, as flat arrays: between any two of the host's places (GPUs, NETs, and the NVSwitches as one),
 * all links of a path in sequence.
 *
 *     place   0 … gpuCount-1   gpuCount … gpuCount+netCount-1   gpuCount+netCount
 *                GPUs                      NETs                    NVSwitches
 *
 *     route = between(from, to)       type[route]  gbps[route]  hopCount[route]
 *     hops firstHop[route] up to firstHop[route + 1]:   link[hop]  hopLoad[hop]
 *
 * Links that can never be short of bandwidth, half of all, are left out.
 */
export class Routes {
  readonly gpuCount: number;
  readonly netCount: number;
  /** The place of the NVSwitches; no node is there when the host has none. */
  readonly nvSwitch: number;
  /** {@link PathType} by route, by {@link placeOfType}; DIS where nothing is known. */
  readonly type: Uint8Array;
  /** Bandwidth of the path when nothing is reserved, GB/s. */
  readonly gbps: Float32Array;
  readonly firstHop: Int32Array;
  /** Number of all hops of the path, including those left out. */
  readonly hopCount: Uint16Array;
  readonly link: Int32Array;
  readonly hopLoad: Uint8Array;
  readonly #places: number;
  readonly #nodes: readonly (SystemNode | undefined)[];
  readonly #system: System;
  /** By vertex: traces of searches name the same few nodes millions of times. */
  readonly #names: (string | undefined)[] = [];

  constructor({ system, paths }: LocalSystem, rules: SearchRules) {
    this.#system = system;
    this.gpuCount = system.gpus.length;
    this.netCount = system.nets.length;
    this.nvSwitch = this.gpuCount + this.netCount;
    this.#places = this.nvSwitch + 1;
    this.#nodes = [...system.gpus, ...system.nets, system.nvSwitches[0]];

    const routes = this.#places ** 2;
    this.type = new Uint8Array(routes).fill(PathType.DIS);
    this.gbps = new Float32Array(routes);
    this.firstHop = new Int32Array(routes + 1);
    this.hopCount = new Uint16Array(routes);
    const links: number[] = [];
    const hopLoads: number[] = [];
    const neverShort = linksNeverShort(system);
    for (let route = 0; route < routes; route++) {
      this.firstHop[route] = links.length;
      const from = this.#nodes[Math.floor(route / this.#places)];
      const to = this.#nodes[route % this.#places];
      // Channels pass from NIC to GPU, GPU to GPU and NVSwitch to GPU or back, never from NIC to NIC or NVSwitch.
      if (from === undefined || to === undefined || (from.type !== NodeType.GPU && to.type !== NodeType.GPU)) continue;
      if (!paths.knows(from.vertex, to.type)) continue;
      const path = paths.to(to.type, to.index) + from.vertex;
      this.type[route] = placeOfType(paths.type[path] ?? PathType.DIS, rules);
      this.gbps[route] = paths.bandwidthGBps[path] ?? 0;
      const hops = paths.links(path);
      this.hopCount[route] = hops.length;
      const throughHostBridge = from.type === NodeType.GPU && paths.type[path] === PathType.PHB;
      const smallPackets = throughHostBridge && hops.some((link) => isIntel(system.nodes[system.links.to[link] ?? 0]));
      for (const link of hops) {
        if (neverShort.has(link)) continue;
        links.push(link);
        hopLoads.push(hopLoadOf(system, link, from.type, smallPackets));
      }
    }
    this.firstHop[routes] = links.length;
    this.link = Int32Array.from(links);
    this.hopLoad = Uint8Array.from(hopLoads);
  }

  between(from: number, to: number): number {
    return from * this.#places + to;
  }

  isNet(place: number): boolean {
    return place >= this.gpuCount && place < this.nvSwitch;
  }

  /** `GPU/0-1b000`. */
  nameOf(place: number): string {
    return this.nameOfVertex(this.#nodes[place]?.vertex ?? -1);
  }

  /** The same for any vertex of the system. */
  nameOfVertex(vertex: number): string {
    const node = this.#system.nodes[vertex];
    return node === undefined ? '?' : (this.#names[vertex] ??= nodeName(node));
  }
}

/** Path types as the search compares them: PXN before P2C, where the version has that order. It is its own inverse. */
export function placeOfType(type: number, { pathOrder }: SearchRules): PathType {
  return (pathOrder === 'pxn before p2c' ? pxnFirst(type) : type) as PathType;
}

/**
 * The links between a GPU and its hardware that carry more than twice the bandwidth of all other links of the hardware together:
 * these others always limit first.
 */
function linksNeverShort({ links, gpus, hardware }: System): Set<number> {
  const never = new Set<number>();
  for (const dev of hardware) {
    if (gpus.filter((gpu) => gpu.parent === dev.index).length !== 1) continue;
    const own: number[] = [];
    let othersGbps = 0;
    for (let link = 0; link < links.to.length; link++) {
      if (links.from[link] !== dev.vertex && links.to[link] !== dev.vertex) continue;
      if (links.type[link] === LinkType.LOC) own.push(link);
      else othersGbps += links.bandwidthGBps[link] ?? 0;
    }
    for (const link of own) {
      if ((links.bandwidthGBps[link] ?? 0) > 2 * othersGbps) never.add(link);
    }
  }
  return never;
}

function isIntel(node: SystemNode | undefined): boolean {
  return node?.type === NodeType.CPU && node.arch === CpuArch.X86 && node.vendor === CpuVendor.INTEL;
}

/** GPUs answer writes without loading the way back from this compute capability on. */
const QUIET_FROM_SM = 80;

function hopLoadOf(system: System, link: number, startType: NodeType, smallPackets: boolean): number {
  const type = system.links.type[link];
  const end = system.nodes[system.links.to[link] ?? 0];
  let hopLoad = 0;
  if (type === LinkType.PCI && smallPackets) hopLoad |= HopLoad.SMALL_PACKETS;
  if (end !== undefined && end.type === hardwareType(system) && end.sm < QUIET_FROM_SM && startType !== NodeType.GPU)
    hopLoad |= HopLoad.EIGHTH_BACK;
  if (end?.type === NodeType.CPU && end.arch === CpuArch.POWER && type === LinkType.NVL) hopLoad |= HopLoad.ALL_BACK;
  return hopLoad;
}
