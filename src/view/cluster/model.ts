import type { PlannedConnection } from '../../planner/graph/transports/connection.js';
import type { Transports } from '../../planner/graph/transports/transports.js';
import { ringNeighbours, ranksOfNode, treeLinks } from '../../planner/graph/merge/links.js';
import { kindOf } from '../../planner/graph/merge/nodes.js';
import { machinesOf, type PreparedHosts } from '../../planner/plan/cluster.js';
import { describeNoP2p } from '../../planner/plan/overview/connections.js';
import type { Plan } from '../../planner/plan/plan.js';
import { GdrMode } from '../../planner/topology/paths/gdr.js';
import { nodeName } from '../../planner/topology/system.js';
import { pathTypeNames } from '../../planner/topology/types.js';

/** One channel through all nodes: what {@link clusterPicture} draws. */
export interface ClusterModel {
  readonly title: string;
  readonly summary: string;
  /** Nodes that are drawn, and runs of nodes between them that are not. */
  readonly rows: readonly ClusterRow[];
  /** Connections with an end on a drawn node. */
  readonly hops: readonly ClusterHop[];
}

/** A drawn node, or nodes that are left out. */
export type ClusterRow =
  | {
      readonly kind: 'node';
      readonly node: number;
      readonly name: string;
      readonly gpus: readonly { readonly rank: number; readonly label: string; readonly subject: string }[];
      readonly nets: readonly { readonly dev: number; readonly label: string; readonly subject: string }[];
    }
  | { readonly kind: 'others'; readonly first: number; readonly last: number };

/** A connection over which a rank sends. */
export interface ClusterHop {
  readonly from: number;
  readonly to: number;
  readonly fromNode: number;
  readonly toNode: number;
  readonly via: PlannedConnection['via'];
  /** Network devices: of the sender, and of the receiver. */
  readonly outBy: number | undefined;
  readonly inBy: number | undefined;
  /** The rank whose GPU passes data on to the network device (PXN), or between two GPUs. */
  readonly relay: number | undefined;
  readonly tip: string;
}

/** The channel of a cluster to draw. */
export interface ClusterChannel {
  readonly graph: 'ring' | 'tree';
  readonly channel: number;
  /** Ranks that send to each other, instead of those of the graph. */
  readonly pairs?: readonly (readonly [from: number, to: number])[];
}

/** Nodes at most that are all drawn; of more, the first ones and the last. */
const MOST_NODES = 6;
const FIRST_NODES = 4;

/** The connections of a channel, as the ranks of the drawn nodes make them. */
export function clusterModel(
  title: string,
  plan: Plan,
  prepared: readonly PreparedHosts[],
  transports: Transports,
  { graph, channel, pairs }: ClusterChannel,
): ClusterModel {
  const { nodes } = plan;
  const shown = shownNodes(nodes.nNodes);
  const nodeOf = (rank: number) => nodes.rankToNode[rank] ?? 0;
  const hops = new Map<string, ClusterHop>();
  const add = (from: number, to: number) => {
    const key = `${from}>${to}`;
    if (to < 0 || from < 0 || from === to || hops.has(key)) return;
    const send = transports.between(from, to, graph, channel, 'send');
    const receive = send.via === 'NET' ? transports.between(to, from, graph, channel, 'receive') : undefined;
    hops.set(key, {
      from,
      to,
      fromNode: nodeOf(from),
      toNode: nodeOf(to),
      via: send.via,
      outBy: send.via === 'NET' ? send.dev : undefined,
      inBy: receive?.via === 'NET' ? receive.dev : undefined,
      relay: send.via === 'NET' || send.via === 'P2P' ? send.relay : undefined,
      tip: tipOf(from, to, send, receive),
    });
  };
  for (const [from, to] of pairs ?? []) if (shown.includes(nodeOf(from)) || shown.includes(nodeOf(to))) add(from, to);
  for (const node of pairs === undefined ? shown : [])
    for (const rank of ranksOfNode(nodes, node)) {
      if (graph === 'ring') {
        const { prev, next } = ringNeighbours(plan, channel, rank);
        add(rank, next);
        add(prev, rank);
      } else {
        const { up, down } = treeLinks(plan, channel, rank);
        add(rank, up);
        for (const child of down) add(child, rank);
      }
    }
  const made = [...hops.values()];
  const machines = machinesOf(prepared);
  const subjectOf = subjectsOfRanks(plan, prepared);
  const rows = shown.flatMap((node, index): ClusterRow[] => {
    const before = shown[index - 1] ?? node - 1;
    const kind = kindOf(nodes, node);
    const local = machines.get(kind);
    return [
      ...(before < node - 1 ? [{ kind: 'others', first: before + 1, last: node - 1 } as const] : []),
      {
        kind: 'node',
        node,
        name: nameOf(plan, node),
        gpus: ranksOfNode(nodes, node).map((rank) => ({ rank, label: String(rank), subject: subjectOf(rank) })),
        nets: (local?.system.nets ?? []).map((net) => ({ dev: net.dev, label: `NET ${net.dev}`, subject: nodeName(net) })),
      },
    ];
  });
  return { title, summary: summaryOf(pairs === undefined ? graph : 'call', channel, made, nodes.nNodes), rows, hops: made };
}

/** Subjects of the GPUs of ranks, as the machine's drawing has them. */
export function subjectsOfRanks({ nodes }: Plan, prepared: readonly PreparedHosts[]): (rank: number) => string {
  const machines = machinesOf(prepared);
  const kinds = new Map(
    [...machines].map(([kind, { system }]) => [
      kind,
      new Map(system.gpus.map((gpu) => [gpu.rank, subjectOfGpu(system, gpu)] as const)),
    ]),
  );
  return (rank) => {
    const node = nodes.rankToNode[rank] ?? 0;
    return kinds.get(kindOf(nodes, node))?.get(rank - (nodes.rankBase[node] ?? 0)) ?? `rank/${rank}`;
  };
}

function shownNodes(count: number): number[] {
  const all = Array.from({ length: count }, (_, node) => node);
  return count <= MOST_NODES ? all : [...all.slice(0, FIRST_NODES), count - 1];
}

/** Names a node by its machine, and its number where there are several. */
function nameOf({ hosts, nodes }: Plan, node: number): string {
  let first = 0;
  for (const { name, count, host } of hosts) {
    const after = first + count * host.nodes.length;
    if (node < after) return nodes.nNodes > 1 ? `node ${node} · ${name}` : name;
    first = after;
  }
  return `node ${node}`;
}

/** A GPU is drawn, and selected, as its hardware. */
function subjectOfGpu(
  { hardware }: { readonly hardware: readonly Parameters<typeof nodeName>[0][] },
  gpu: Parameters<typeof nodeName>[0] & { readonly parent: number },
): string {
  return nodeName(hardware[gpu.parent] ?? gpu);
}

function summaryOf(graph: string, channel: number, hops: readonly ClusterHop[], nNodes: number): string {
  const count = (via: ClusterHop['via']) => hops.filter((hop) => hop.via === via).length;
  const net = hops.filter(({ via }) => via === 'NET');
  const crossed = net.filter(({ outBy, inBy }) => outBy !== inBy).length;
  const rails = net.length === 0 ? '' : crossed === 0 ? ' · no rail is crossed' : ` · ${crossed} of ${net.length} cross rails`;
  const kinds = (['P2P', 'SHM', 'NET', 'none'] as const).flatMap((via) =>
    count(via) > 0 ? [`${count(via)} ${viaNames[via]}`] : [],
  );
  const drawn = nNodes > MOST_NODES ? ' with an end on a drawn node' : '';
  return `${graph === 'call' ? '' : `${graph} of `}channel ${channel} · connections${drawn}: ${kinds.join(', ') || 'none'}${rails}`;
}

/** Words for transports. */
export const viaNames: Readonly<Record<ClusterHop['via'], string>> = {
  P2P: 'peer-to-peer',
  SHM: 'through shared memory',
  NET: 'over the network',
  none: 'without a transport',
};

function tipOf(from: number, to: number, send: PlannedConnection, receive: PlannedConnection | undefined): string {
  const way = `rank ${from} to rank ${to}`;
  switch (send.via) {
    case 'P2P':
      return `${way}: peer-to-peer, path ${pathTypeNames[send.distance]}${send.relay === undefined ? '' : ` by way of the GPU of rank ${send.relay}`}`;
    case 'SHM':
      return `${way}: through shared memory, because ${describeNoP2p(send.reason)}`;
    case 'none':
      return `${way}: no transport, because ${describeNoP2p(send.reason)}`;
    case 'NET': {
      const pxn = send.relay === undefined ? '' : `, by way of the GPU of rank ${send.relay} (PXN)`;
      const gdr = send.gdr === GdrMode.DISABLED ? 'without GPU Direct RDMA' : 'with GPU Direct RDMA';
      const end = receive?.via === 'NET' ? `, in by NET ${receive.dev}` : '';
      return `${way}: over the network, out by NET ${send.dev}${pxn} ${gdr}${end}`;
    }
  }
}
