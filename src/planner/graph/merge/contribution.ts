import type { Parameters } from '../../parameters.js';
import { nvLinkGBps } from '../../topology/bandwidths.js';
import type { LocalSystem } from '../../topology/local-systems.js';
import { Locality } from '../../topology/paths/locality.js';
import { Reach } from '../../topology/paths/reach.js';
import { NodeType, PathType } from '../../topology/types.js';
import { type Rules, rulesOf } from '../../versions/rules.js';
import type { HostGraphs } from '../graph.js';

/**
 * Input of one *node* to the merge, which in NCCL each rank sends to all others when a communicator is made. A node is counted in
 * NCCL's `nNodes`: ranks of one host that reach each other without the network. Its ranks see the same system, so only the arrays
 * here differ by rank.
 */
export interface NodeContribution {
  /** Ranks of the node, counted within the host, ascending. The graphs name ranks in the same way. */
  readonly ranks: readonly number[];
  readonly graphs: HostGraphs;
  /** One of {@link CpuArch}. */
  readonly cpuArch: number;
  /** One of {@link CpuVendor}. */
  readonly cpuVendor: number;
  /** True if NVLink SHARP is there and asked for. */
  readonly nvls: boolean;
  /** True if there is an NVSwitch. */
  readonly nvSwitch: boolean;
  /** True if all GPUs reach each other over NVLink or C2C, directly or through others. */
  readonly allNvLink: boolean;
  /** True if all GPUs reach each other over NVLink directly. */
  readonly allDirectNvLink: boolean;
  /** True if all GPUs copy to each other peer-to-peer, none through another. */
  readonly allDirectP2p: boolean;
  /** Number of network devices of the host. */
  readonly netDevices: number;
  /** Number of them that can reduce. */
  readonly collnetDevices: number;
  /** Data that differ by rank, in the order of `ranks`. */
  readonly byRank: readonly RankContribution[];
}

/** Data of one rank that all others receive. */
export interface RankContribution {
  /** Compute capability × 10. */
  readonly compCap: number;
  /**
   * Bandwidth of the slowest of its own NICs, GB/s; 0 without any. Older versions: of the host's, and the largest float
   * without any.
   */
  readonly minNetGBps: number;
  /** Number of its own NICs that use all bandwidth between GPU and CPU. */
  readonly netCount: number;
  /** Number of channels that serve one peer in send and receive, before all ranks agree. */
  readonly p2pChannelsPerPeer: number;
}

/** Input of one host to the merge: its nodes in the order of their lowest ranks. */
export interface HostContribution {
  readonly nRanks: number;
  readonly nodes: readonly NodeContribution[];
}

/**
 * Facts about a node's system that other ranks need.
 *
 * @throws InputError where a rank reaches no network device though there are ranks on other hosts
 */
export function contributionOf(local: LocalSystem, graphs: HostGraphs, parameters: Parameters): NodeContribution {
  const { system } = local;
  const locality = new Locality(system, local.paths, parameters);
  const { nearest, farthest } = typesBetweenGpus(local);
  const rules = rulesOf(parameters);
  const slowestNet = Math.min(...system.nets.map((net) => net.bandwidthGBps), LARGEST_FLOAT);
  // An NVLink domain has the devices of several hosts; a plugin sees those of its own host.
  const ownHost = system.nets.filter((net) => net.systemId === system.systemId);
  return {
    ranks: local.ranks,
    graphs: rules.collnetHeadsSearched ? graphs : { ...graphs, collnetDirect: graphs.collnetChain },
    cpuArch: system.cpus[0]?.arch ?? 0,
    cpuVendor: system.cpus[0]?.vendor ?? 0,
    nvls: local.nvls,
    nvSwitch: system.nvSwitches.length > 0,
    allNvLink: (rules.worstPathCounts ? farthest : nearest) < PathType.PIX,
    allDirectNvLink: farthest === PathType.NVL || (farthest < PathType.NVL && rules.directNvLinkAlone),
    allDirectP2p:
      (rules.directP2pAlone || local.ranks.length > 1) && allDirectP2p(local, new Reach(system, local.paths, parameters)),
    netDevices: ownHost.length,
    collnetDevices: ownHost.filter((net) => net.coll).length,
    byRank: local.ranks.map((rank) => {
      const gpu = system.gpus.findIndex((node) => node.rank === rank);
      const nets = ownNets(local, locality, gpu, rules);
      const enough = enoughNets(local, locality, gpu, nets);
      return {
        compCap: system.gpus[gpu]?.sm ?? 0,
        minNetGBps: !rules.netSpeedOfRank
          ? slowestNet
          : nets.length === 0
            ? 0
            : Math.min(...nets.map((net) => netGBps(local, gpu, net))),
        netCount: rules.p2pNetChannels === 'by bandwidth' ? enough.count : netsForPci(local, locality, gpu),
        p2pChannelsPerPeer: p2pChannelsPerPeer(local, gpu, enough, parameters),
      };
    }),
  };
}

/** The largest C float: the minimum speed of an empty set of NICs. */
const LARGEST_FLOAT = Math.fround(3.4028234663852886e38);

/** The best and the worst type of path between two GPUs; the other way round where there is only one GPU. */
function typesBetweenGpus({ system, paths }: LocalSystem): { readonly nearest: number; readonly farthest: number } {
  let nearest: number = PathType.DIS;
  let farthest: number = PathType.LOC;
  for (const { index: from } of system.gpus) {
    for (const { index: to } of system.gpus) {
      if (from === to) continue;
      const type = paths.type[paths.between(NodeType.GPU, from, NodeType.GPU, to)] ?? PathType.DIS;
      nearest = Math.min(nearest, type);
      farthest = Math.max(farthest, type);
    }
  }
  return { nearest, farthest };
}

/** Looked at from the lower rank of each pair, as NCCL does. */
function allDirectP2p({ system, ranks }: LocalSystem, reach: Reach): boolean {
  const gpus = ranks.map((rank) => system.gpus.findIndex((gpu) => gpu.rank === rank));
  return gpus.every((from, position) =>
    gpus.slice(position + 1).every((to) => reach.isPeer(from, to) && reach.relay(from, to) < 0),
  );
}

/** The NETs that a GPU uses: those of channels 0, 1, … until the first comes again. */
function ownNets({ system, inter }: LocalSystem, locality: Locality, gpu: number, { mostChannels }: Rules): number[] {
  if (system.nets.length === 0 && !inter) return [];
  const nets = [locality.netOfGpu(gpu, 0)];
  for (let channel = 1; channel < mostChannels; channel++) {
    const net = locality.netOfGpu(gpu, channel);
    if (net === nets[0]) break;
    nets.push(net);
  }
  return nets;
}

/** The number of these NETs that reach the bandwidth between GPU and CPU, and their total in GB/s. */
function enoughNets(
  local: LocalSystem,
  locality: Locality,
  gpu: number,
  nets: readonly number[],
): { readonly count: number; readonly gbps: number } {
  if (nets.length === 0) return { count: 0, gbps: 0 };
  const { paths } = local;
  const gpuGBps = paths.bandwidthGBps[paths.between(NodeType.GPU, gpu, NodeType.CPU, locality.cpuOfGpu(gpu))] ?? 0;
  let count = 0;
  let gbps = 0;
  for (const net of nets) {
    gbps = Math.fround(gbps + netGBps(local, gpu, net));
    count++;
    if (gbps >= gpuGBps) break;
  }
  return { count, gbps };
}

/** The same in versions before 2.29: only GPUs directly below a CPU need more than one. */
function netsForPci({ system, paths }: LocalSystem, locality: Locality, gpu: number): number {
  const vertex = system.hardware[system.gpus[gpu]?.parent ?? -1]?.vertex ?? 0;
  const { start, to, bandwidthGBps } = system.links;
  let gpuGBps = 0;
  for (let link = start[vertex] ?? 0; link < (start[vertex + 1] ?? 0); link++) {
    if (system.nodes[to[link] ?? 0]?.type === NodeType.CPU) gpuGBps = bandwidthGBps[link] ?? 0;
  }
  let count = 0;
  let gbps = 0;
  for (const net of locality.netsOfGpu(gpu)) {
    if (gbps >= gpuGBps) break;
    gbps = Math.fround(gbps + (paths.bandwidthGBps[paths.between(NodeType.GPU, gpu, NodeType.NET, net)] ?? 0));
    count++;
  }
  return count;
}

function netGBps({ paths }: LocalSystem, gpu: number, net: number): number {
  return paths.bandwidthGBps[paths.between(NodeType.GPU, gpu, NodeType.NET, net)] ?? 0;
}

/** The fewest that any peer allows. */
function p2pChannelsPerPeer(
  { system, paths, inter }: LocalSystem,
  gpu: number,
  nets: { readonly count: number; readonly gbps: number },
  parameters: Parameters,
): number {
  const rules = rulesOf(parameters);
  let fewest: number = rules.mostChannels;
  const oneLinkGBps = nvLinkGBps(system.gpus[gpu]?.sm ?? 0, rules);
  for (const { index: peer } of system.gpus) {
    if (peer === gpu) continue;
    const path = paths.between(NodeType.GPU, peer, NodeType.GPU, gpu);
    const type = paths.type[path];
    const overNvLink = type === PathType.NVL || (type === PathType.NVB && rules.relayedNvLinkChannels);
    const links = overNvLink ? Math.trunc(Math.fround((paths.bandwidthGBps[path] ?? 0) / oneLinkGBps)) : 1;
    fewest = Math.min(fewest, 2 * Math.max(1, links));
  }
  return inter && rules.p2pNetChannels === 'by bandwidth' ? Math.min(fewest, channelsPerNetPeer(nets, parameters)) : fewest;
}

/** One channel for each NIC, and more where one cannot carry the NIC's bandwidth. */
function channelsPerNetPeer(nets: { readonly count: number; readonly gbps: number }, parameters: Parameters): number {
  const asked = parameters.channelsPerNetPeer;
  if (asked !== undefined && asked > 0) return asked;
  if (nets.count === 0) return 2;
  return Math.max(nets.count, Math.ceil(Math.trunc(nets.gbps) / parameters.p2pPerChannelNetGBps));
}
