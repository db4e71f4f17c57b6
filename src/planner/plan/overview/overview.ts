import { type ChannelGraph, CrossNic, graphNames, LAST_RESORT_GBPS, Pattern } from '../../graph/graph.js';
import type { GraphName } from '../../graph/graph.js';
import { isPlanned, type Parameters } from '../../parameters.js';
import type { LocalSystem } from '../../topology/local-systems.js';
import { systemSummary } from '../../topology/summary.js';
import { pathTypeNames } from '../../topology/types.js';
import { describeReason } from '../../tuning/reasons.js';
import type { Tuning } from '../../tuning/tune.js';
import { uncomparedRules } from '../../versions/certainty.js';
import { usesWindows } from '../../windows.js';
import type { Cluster, PreparedHosts } from '../cluster.js';
import type { Plan } from '../plan.js';
import { type ConnectionSummary, describeNoP2p, summarizeConnections, transportsOf } from './connections.js';
import { type Forecast, forecast } from './forecast.js';
import type { LinkLoad } from './fullest-link.js';
import { type RingUse, ringUse } from './ring-use.js';
import { type WindowForecast, windowForecast } from './windows.js';

/**
 * Summary of a plan: its limits, channels, features in use, and the times of every collective. A plain value, which `tccl plan`
 * prints, and writes as JSON, HTML and SVG.
 */
export interface Overview {
  readonly title: string;
  /** The version of NCCL that is planned for. */
  readonly nccl: string;
  /** Rules of that version that are read from source, not compared with recorded answers. */
  readonly uncomparedRules: readonly string[];
  readonly nRanks: number;
  /** NCCL's notion of hosts: ranks that reach each other without the network. */
  readonly nNodes: number;
  readonly hosts: readonly HostOverview[];
  /** Variables of NCCL that are set and affect the plan. */
  readonly environment: Readonly<Record<string, string>>;
  readonly nChannels: number;
  /** The graphs as all ranks agree on them, those with channels. */
  readonly graphs: readonly GraphOverview[];
  readonly treeDepth: number;
  readonly uses: readonly Use[];
  readonly connections: ConnectionSummary;
  readonly forecasts: readonly Forecast[];
  /** Calls on symmetric windows; undefined where no buffer lies in one. */
  readonly windows?: WindowForecast;
}

/** Hosts of one kind. */
export interface HostOverview {
  readonly name: string;
  readonly count: number;
  readonly nRanks: number;
  /** `8 GPUs (sm 90), 8 network devices (50 GB/s), 2 CPUs, NVSwitch`. */
  readonly summary: string;
  /** Ranks of each node of the host, counted within the host; mostly there is one node. */
  readonly nodes: readonly (readonly number[])[];
  /** Loads of its links by the rings of the plan, the fullest first. */
  readonly loads: readonly LinkLoad[];
  /** Bandwidth of the plan's rings together, GB/s, and that of the rings that the search of this host found. */
  readonly ringGBps: number;
  readonly searchedGBps: number;
  /** Reason why the plan has less than the search found. */
  readonly heldBackBy: RingUse['heldBackBy'];
  readonly rings: readonly RingOverview[];
}

/** A route through the GPUs of a node. */
export interface RingOverview {
  /** Channels of the search that take it, those that the plan uses. */
  readonly channels: readonly number[];
  /** `NET 0`; undefined on a single node. */
  readonly entry: string | undefined;
  readonly exit: string | undefined;
  /** Ranks, counted within the host. */
  readonly ranks: readonly number[];
}

/** A graph as all ranks agree on it. */
export interface GraphOverview {
  readonly name: GraphName;
  readonly pattern: string;
  readonly nChannels: number;
  /** GB/s of each channel within a node, and between nodes. */
  readonly bwIntra: number;
  readonly bwInter: number;
  /** Farthest path between GPUs, and between GPU and NIC. */
  readonly typeIntra: string;
  readonly typeInter: string;
  readonly crossNic: boolean;
  /** True if no search found a channel, and NCCL takes the GPUs in the order of their numbers. */
  readonly isLastResort: boolean;
}

/** A feature of NCCL, and its use. */
export interface Use {
  readonly name: 'P2P' | 'SHM' | 'NVLS' | 'PXN' | 'GDR' | 'CollNet';
  readonly used: 'yes' | 'partly' | 'no';
  readonly text: string;
}

/** Input of an overview. */
export interface OverviewInput {
  readonly title: string;
  /** The cluster that was planned. */
  readonly cluster: Cluster;
  /** The same cluster with the decisions about each host alone. */
  readonly prepared: readonly PreparedHosts[];
  readonly plan: Plan;
  readonly parameters: Parameters;
  readonly environment: Readonly<Record<string, string>>;
  readonly tuning: Tuning;
  /** Ascending. */
  readonly sizes: readonly number[];
}

/** The output of `tccl plan` for a cluster, as a plain value. */
export function overviewOf({ title, cluster, plan, prepared, parameters, environment, tuning, sizes }: OverviewInput): Overview {
  const connections = summarizeConnections(plan, transportsOf(plan, prepared, parameters));
  return {
    title,
    nccl: parameters.ncclVersion,
    uncomparedRules: uncomparedRules(parameters.ncclVersion, usesWindows(parameters)),
    nRanks: plan.nodes.nRanks,
    nNodes: plan.nodes.nNodes,
    hosts: kindsOfHosts(cluster, prepared, plan),
    environment: Object.fromEntries(Object.entries(environment).filter(([name]) => isPlanned(name))),
    nChannels: plan.nChannels,
    graphs: graphNames.flatMap((name) => {
      const graph = plan.graphs[name];
      if (graph.nChannels === 0) return [];
      return [
        {
          name,
          pattern: patternNames[graph.pattern],
          nChannels: graph.nChannels,
          bwIntra: graph.bwIntra,
          bwInter: graph.bwInter,
          typeIntra: pathTypeNames[graph.typeIntra],
          typeInter: pathTypeNames[graph.typeInter],
          crossNic: graph.crossNic !== CrossNic.NEVER,
          isLastResort: graph.bwIntra === LAST_RESORT_GBPS,
        },
      ];
    }),
    treeDepth: plan.trees.depth,
    uses: usesOf(plan, tuning, connections, parameters),
    connections,
    forecasts: forecast(tuning, sizes),
    ...(usesWindows(parameters) ? { windows: windowForecast(tuning, sizes) } : {}),
  };
}

const patternNames: Readonly<Record<Pattern, string>> = {
  [Pattern.BALANCED_TREE]: 'balanced tree',
  [Pattern.SPLIT_TREE]: 'split tree',
  [Pattern.TREE]: 'tree',
  [Pattern.RING]: 'ring',
  [Pattern.NVLS]: 'heads at the NVSwitch',
  [Pattern.COLLNET_DIRECT]: 'heads',
};

/** Equal hosts, anywhere in the cluster. */
function kindsOfHosts(cluster: Cluster, prepared: readonly PreparedHosts[], plan: Plan): HostOverview[] {
  return [...new Set(prepared.map(({ host }) => host))].flatMap((host) => {
    const alike = prepared.filter((hosts) => hosts.host === host);
    const [first] = alike;
    const local = first?.systems[0];
    const whole = first && cluster.hosts[prepared.indexOf(first)]?.machine;
    const [node] = host.nodes;
    if (first === undefined || local === undefined || node === undefined) return [];
    const { rings, ...use } = ringUse(plan, node, local);
    return [
      {
        name: first.name,
        count: alike.reduce((sum, { count }) => sum + count, 0),
        nRanks: host.nRanks,
        // A node may see a part of the host only.
        summary: systemSummary(whole !== undefined && 'gpus' in whole ? whole : local.system),
        nodes: host.nodes.map(({ ranks }) => ranks),
        ...use,
        rings: ringsOf(local, node.graphs.ring, rings),
      },
    ];
  });
}

function ringsOf(local: LocalSystem, graph: ChannelGraph, channels: readonly number[]): RingOverview[] {
  const rings = new Map<string, { readonly channels: number[] } & Omit<RingOverview, 'channels'>>();
  for (const channel of channels) {
    const ranks = [...graph.intra.subarray(channel * graph.gpuCount, (channel + 1) * graph.gpuCount)];
    const [entry, exit] = local.inter
      ? [netLabel(local, graph.inter[2 * channel]), netLabel(local, graph.inter[2 * channel + 1])]
      : [];
    const key = [entry, ...ranks, exit].join(' ');
    const ring = rings.get(key);
    if (ring === undefined) rings.set(key, { channels: [channel], entry, exit, ranks });
    else ring.channels.push(channel);
  }
  return [...rings.values()];
}

/** `NET 3`, with the host where a rack has several. */
function netLabel({ system }: LocalSystem, id: bigint | undefined): string {
  const net = system.nets.find(({ systemId, localId }) => id === BigInt.asIntN(64, (BigInt(systemId) << 56n) | localId));
  if (net === undefined) return 'no NET';
  return system.hostHashes.length > 1 ? `NET ${net.systemId}.${net.dev}` : `NET ${net.dev}`;
}

/** The features of NCCL, with their use in a plan. */
export function usesOf(plan: Plan, tuning: Tuning, connections: ConnectionSummary, parameters: Parameters): Use[] {
  return [...transportUses(connections, parameters), nvlsUse(plan, tuning, parameters), collnetUse(plan, tuning)];
}

function transportUses(connections: ConnectionSummary, parameters: Parameters): Use[] {
  const { p2p, p2pReads, p2pRelayed, p2pPaths, shm, noP2p, net, pxn, gdr, noGdr, none } = connections;
  const uses: Use[] = [];
  if (p2p > 0 || shm > 0) {
    const how = [
      `over ${p2pPaths.join(', ')}`,
      p2pReads > 0 ? 'receivers read' : 'senders write',
      ...(p2pRelayed > 0 ? [`${p2pRelayed} of ${p2p} by way of another GPU`] : []),
    ].join('; ');
    uses.push({
      name: 'P2P',
      used: shm === 0 ? 'yes' : p2p === 0 ? 'no' : 'partly',
      text: p2p === 0 ? offOr(parameters.p2pDisable === 1, 'NCCL_P2P_DISABLE=1', noP2p.map(describeNoP2p).join('; ')) : how,
    });
  }
  if (shm > 0)
    uses.push({
      name: 'SHM',
      used: p2p === 0 ? 'yes' : 'partly',
      text: `${shm} of ${p2p + shm} connections within hosts go through memory of the host${p2p === 0 ? '' : `: ${noP2p.map(describeNoP2p).join('; ')}`}`,
    });
  if (none > 0)
    uses.push({
      name: 'SHM',
      used: 'no',
      text: `${none} connections within hosts have no transport without it, so NCCL fails: unset NCCL_SHM_DISABLE`,
    });
  if (net > 0) {
    uses.push({
      name: 'PXN',
      used: pxn === 0 ? 'no' : pxn === net ? 'yes' : 'partly',
      text:
        pxn > 0
          ? `${pxn} of ${net} connections reach their NIC by way of another GPU`
          : offOr(parameters.pxnDisable === 1, 'NCCL_PXN_DISABLE=1', 'no connection gains by way of another GPU'),
    });
    uses.push({
      name: 'GDR',
      used: gdr === 0 ? 'no' : gdr === net ? 'yes' : 'partly',
      text:
        gdr === net
          ? 'NICs read and write GPU memory'
          : `${gdr === 0 ? '' : `${net - gdr} of ${net} connections without: `}${noGdr.map((reason) => noGdrTexts[reason]).join('; ')}`,
    });
  }
  return uses;
}

const noGdrTexts: Readonly<Record<ConnectionSummary['noGdr'][number], string>> = {
  near: 'in use',
  nic: 'the NIC cannot',
  gpu: 'the GPU cannot',
  'split-gpu': 'parts of a split GPU do without (NCCL_NET_GDR_MLOPART=1 allows it)',
  read: 'NICs do not read GPU memory (NCCL_NET_GDR_READ, or GPUs before Ampere without NVLink)',
  far: 'the NIC is farther away than NCCL_NET_GDR_LEVEL allows',
};

function nvlsUse({ nvls, nodes }: Plan, { model }: Tuning, parameters: Parameters): Use {
  const name = 'NVLS';
  if (nvls !== undefined)
    return {
      name,
      used: 'yes',
      text: `${nvls.nChannels} channels, ${nvls.nHeads} heads${nodes.nNodes > 1 ? ', trees between nodes' : ''}`,
    };
  if (parameters.nvlsEnable === 0) return { name, used: 'no', text: 'NCCL_NVLS_ENABLE=0' };
  const hasNvSwitch = nodes.kinds.some(({ nvls: able }) => able);
  const [reason] = model.AllReduce.NVLS.Simple.disabled;
  if (hasNvSwitch) return { name, used: 'no', text: 'not every node has a channel for it' };
  return {
    name,
    used: 'no',
    text: reason === undefined || reason.why === 'no-nvls' ? 'takes NVSwitches and GPUs of sm 90' : describeReason(reason),
  };
}

function collnetUse({ collnet, nodes }: Plan, { model }: Tuning): Use {
  const name = 'CollNet';
  if (collnet !== undefined) return { name, used: 'yes', text: `the network reduces; ${collnet.headCount} heads` };
  const able = nodes.kinds.some(({ collnetDevices }) => collnetDevices > 0);
  const [reason] = model.AllReduce.CollNetDirect.Simple.disabled;
  return {
    name,
    used: 'no',
    text: able
      ? 'NICs can reduce; NCCL_COLLNET_ENABLE=1 would ask them to'
      : nodes.nNodes === 1 || reason === undefined
        ? 'one node'
        : 'the network does not reduce',
  };
}

function offOr(isOff: boolean, variable: string, otherwise: string): string {
  return isOff ? variable : otherwise;
}
