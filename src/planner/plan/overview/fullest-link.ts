import { defaultRules } from '../../versions/rules.js';
import type { ChannelGraph } from '../../graph/graph.js';
import { nodeId } from '../../graph/graph.js';
import { Routes, HopLoad } from '../../graph/routes.js';
import type { LocalSystem } from '../../topology/local-systems.js';
import type { System, SystemNode } from '../../topology/system.js';
import { LinkType, NodeType } from '../../topology/types.js';

/** Kind of a link from a user's point of view. */
export type LinkKind = 'nic-port' | 'nic-pcie' | 'gpu-pcie' | 'switch-pcie' | 'nvlink' | 'c2c' | 'cpu';

/** Links of one kind that the channels of a graph load alike. */
export interface LinkLoad {
  readonly kind: LinkKind;
  /** Number of such links; both directions count as one. */
  readonly count: number;
  /** Bandwidth that channels take of each, GB/s. */
  readonly usedGBps: number;
  /** Bandwidth of each, GB/s. */
  readonly gbps: number;
}

/** Words for kinds of links; each goes with `of N`. */
export const linkKindNames: Readonly<Record<LinkKind, string>> = {
  'nic-port': 'network ports',
  'nic-pcie': 'PCIe links of network cards',
  'gpu-pcie': 'PCIe links of GPUs',
  'switch-pcie': 'PCIe links of switches',
  nvlink: 'NVLinks of GPUs',
  c2c: 'C2C links',
  cpu: 'links between CPUs',
};

/**
 * Loads of a machine's links by rings, by kind, the fullest first; among equals the nearest to the network.
 *
 * @param channels of the graph whose rings are used
 * @param speed of each of them, GB/s
 */
export function ringLoads(
  local: LocalSystem,
  graph: ChannelGraph,
  channels: readonly number[],
  speed: Pick<ChannelGraph, 'bwIntra' | 'bwInter'>,
): LinkLoad[] {
  return grouped(local.system, loadOfLinks(local, graph, channels, speed));
}

/** Load of each directed link of a machine by rings, GB/s; parameters as for {@link ringLoads}. */
export function loadOfLinks(
  local: LocalSystem,
  graph: ChannelGraph,
  channels: readonly number[],
  speed: Pick<ChannelGraph, 'bwIntra' | 'bwInter'>,
): Float64Array {
  const { system } = local;
  const routes = new Routes(local, defaultRules);
  const load = new Float64Array(system.links.to.length);
  const placeOfRank = new Map(system.gpus.map(({ rank, index }) => [rank, index]));
  const placeOfNet = new Map(system.nets.map((net) => [nodeId(net), routes.gpuCount + net.index]));
  const charge = (from: number | undefined, to: number | undefined, gbps: number) => {
    if (from === undefined || to === undefined || from === to) return;
    const route = routes.between(from, to);
    for (let hop = routes.firstHop[route] ?? 0; hop < (routes.firstHop[route + 1] ?? 0); hop++)
      chargeHop(system, routes, hop, gbps, load);
  };

  for (const channel of channels) {
    const places = [...graph.intra.subarray(channel * graph.gpuCount, (channel + 1) * graph.gpuCount)].map((rank) =>
      placeOfRank.get(rank),
    );
    places.forEach((place, position) => {
      if (position > 0) charge(places[position - 1], place, speed.bwIntra);
    });
    if (local.inter) {
      charge(placeOfNet.get(graph.inter[2 * channel] ?? -1n), places[0], speed.bwInter);
      charge(places.at(-1), placeOfNet.get(graph.inter[2 * channel + 1] ?? -1n), speed.bwInter);
    } else {
      charge(places.at(-1), places[0], speed.bwIntra);
    }
  }
  return load;
}

/** Share that a hop takes of its link and of the link back, as in the search. */
function chargeHop(system: System, routes: Routes, hop: number, gbps: number, load: Float64Array): void {
  const link = routes.link[hop] ?? 0;
  const hopLoad = routes.hopLoad[hop] ?? 0;
  const price = hopLoad & HopLoad.SMALL_PACKETS ? (gbps * 6) / 5 : gbps;
  load[link] = (load[link] ?? 0) + price;
  const back = (hopLoad & HopLoad.EIGHTH_BACK ? price / 8 : 0) + (hopLoad & HopLoad.ALL_BACK ? price : 0);
  const reverse = system.links.reverse[link] ?? -1;
  if (back > 0 && reverse >= 0) load[reverse] = (load[reverse] ?? 0) + back;
}

const nearestFirst: readonly LinkKind[] = ['nic-port', 'nic-pcie', 'switch-pcie', 'gpu-pcie', 'cpu', 'c2c', 'nvlink'];

function grouped(system: System, load: Float64Array): LinkLoad[] {
  const groups = new Map<
    string,
    { readonly kind: LinkKind; readonly usedGBps: number; readonly gbps: number; readonly links: Set<number> }
  >();
  load.forEach((used, link) => {
    const kind = kindOfLink(system, link);
    if (used === 0 || kind === undefined) return;
    // Sums of thousandths: smaller differences are rounding.
    const usedGBps = Number(used.toFixed(2));
    const gbps = system.links.bandwidthGBps[link] ?? 0;
    const key = `${kind} ${usedGBps} ${gbps}`;
    const group = groups.get(key) ?? { kind, usedGBps, gbps, links: new Set() };
    const reverse = system.links.reverse[link] ?? -1;
    group.links.add(reverse < 0 ? link : Math.min(link, reverse));
    groups.set(key, group);
  });
  const share = ({ usedGBps, gbps }: LinkLoad) => Number((usedGBps / gbps).toFixed(4));
  return [...groups.values()]
    .map(({ links, ...rest }) => ({ ...rest, count: links.size }))
    .sort((a, b) => share(b) - share(a) || nearestFirst.indexOf(a.kind) - nearestFirst.indexOf(b.kind));
}

/** Undefined for a link within a GPU, which is no limit. */
function kindOfLink({ nodes, links }: System, link: number): LinkKind | undefined {
  const ends = [nodes[links.from[link] ?? 0], nodes[links.to[link] ?? 0]];
  const has = (...types: NodeType[]) => ends.some((end: SystemNode | undefined) => end !== undefined && types.includes(end.type));
  switch (links.type[link]) {
    case LinkType.NVL:
      return 'nvlink';
    case LinkType.C2C:
      return 'c2c';
    case LinkType.SYS:
      return 'cpu';
    case LinkType.NET:
      return 'nic-port';
    case LinkType.PCI:
      if (has(NodeType.NIC)) return 'nic-pcie';
      return has(NodeType.DEV, NodeType.GPU) ? 'gpu-pcie' : 'switch-pcie';
    default:
      return undefined;
  }
}
