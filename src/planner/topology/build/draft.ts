import { type LinkType, NodeType, NODE_TYPES } from '../types.js';
import { assemble, linksFromLists } from '../assemble.js';
import type { CpuNode, GpuNode, Links, NetNode, PluginNode, System, SystemNode } from '../system.js';

/** A system under construction: nodes are added and removed, links are sorted when they are added. */

/** Most nodes of one type, and most links of one node, that NCCL has room for. */
export const MAX_NODES_OF_TYPE = 640;
export const MAX_LINKS_OF_NODE = 576;

interface DraftLink {
  readonly type: LinkType;
  to: DraftNode;
  bandwidthGBps: number;
}

/** Fields of a type of node; `DevNode.gpuCount` and `PciNode.device` change during construction. */
type Own<Node extends SystemNode> = Omit<Node, 'type' | 'vertex' | 'index' | 'systemId' | 'localId'>;
/** `parent` is undefined for a GPU that holds its links itself. */
type GpuData = Omit<Own<GpuNode>, 'parent'> & { readonly parent: DraftNode | undefined };
interface DevData {
  readonly device: bigint;
  readonly dev: number;
  readonly sm: number;
  gpuCount: number;
}
interface PciData {
  device: bigint;
}
type CpuData = Own<CpuNode>;
export type NetData = Own<NetNode>;
type PluginData = Own<PluginNode>;

type DataOf = {
  [NodeType.GPU]: GpuData;
  [NodeType.DEV]: DevData;
  [NodeType.PCI]: PciData;
  [NodeType.CPU]: CpuData;
  [NodeType.NET]: NetData;
  [NodeType.GIN]: PluginData;
  [NodeType.RMA]: PluginData;
  [NodeType.NVS]: object;
  [NodeType.NIC]: object;
  [NodeType.CXB]: object;
};

export interface DraftNode<Type extends NodeType = NodeType> {
  readonly type: Type;
  readonly systemId: number;
  /** 56 bits wide. */
  readonly localId: bigint;
  readonly data: DataOf[Type];
  links: DraftLink[];
  /** The most links that it ever had: in NCCL, places of removed links stay filled behind the last one. */
  mostLinks: number;
}

/** Nodes by type, and the first node of each id. */
export class Draft {
  readonly nodes: DraftNode[][] = Array.from({ length: NODE_TYPES }, () => []);
  readonly #byId: Map<bigint, DraftNode>[] = Array.from({ length: NODE_TYPES }, () => new Map<bigint, DraftNode>());

  all<Type extends NodeType>(type: Type): DraftNode<Type>[] {
    return this.nodes[type] as DraftNode<Type>[];
  }

  /** The first node of that type and id. */
  find<Type extends NodeType>(type: Type, systemId: number, localId: bigint): DraftNode<Type> | undefined {
    return this.#byId[type]?.get(nodeId(systemId, localId)) as DraftNode<Type> | undefined;
  }

  /** Adds a node; returns undefined when NCCL has no room for another of its type. */
  add<Type extends NodeType>(type: Type, systemId: number, localId: bigint, data: DataOf[Type]): DraftNode<Type> | undefined {
    const nodes = this.all(type);
    if (nodes.length === MAX_NODES_OF_TYPE) return undefined;
    const node: DraftNode<Type> = { type, systemId, localId: BigInt.asUintN(56, localId), data, links: [], mostLinks: 0 };
    nodes.push(node);
    const byId = this.#byId[type];
    const id = nodeId(systemId, localId);
    if (byId?.has(id) === false) byId.set(id, node);
    return node;
  }

  /** Removes a node, and every link to it. */
  remove(node: DraftNode): void {
    const nodes = this.nodes[node.type];
    nodes?.splice(nodes.indexOf(node), 1);
    const byId = this.#byId[node.type];
    const id = nodeId(node.systemId, node.localId);
    if (byId?.get(id) === node) {
      const next = nodes?.find((other) => other.systemId === node.systemId && other.localId === node.localId);
      if (next === undefined) byId.delete(id);
      else byId.set(id, next);
    }
    for (const other of this.nodes.flat()) other.links = other.links.filter((link) => link.to !== node);
  }

  /** The finished system. */
  toSystem(hostHashes: readonly bigint[], systemId: number): System {
    const drafts = this.nodes.flat();
    const vertices = new Map(drafts.map((draft, vertex) => [draft, vertex]));
    const first = new Int32Array(NODE_TYPES + 1);
    this.nodes.forEach((nodes, type) => (first[type + 1] = (first[type] ?? 0) + nodes.length));

    const nodes = drafts.map((draft, vertex): SystemNode => {
      const index = vertex - (first[draft.type] ?? 0);
      const holder = draft.type === NodeType.GPU ? (draft as DraftNode<typeof NodeType.GPU>).data.parent : undefined;
      const ofGpu = () => (holder === undefined ? index : (vertices.get(holder) ?? 0) - (first[NodeType.DEV] ?? 0));
      const parent = draft.type === NodeType.GPU ? { parent: ofGpu() } : {};
      return {
        type: draft.type,
        vertex,
        index,
        systemId: draft.systemId,
        localId: draft.localId,
        ...draft.data,
        ...parent,
      } as SystemNode;
    });
    return assemble(nodes, linkTable(drafts, vertices), hostHashes, systemId);
  }
}

/**
 * Adds a link in one direction; links of the same type between the same two nodes add up. A node's links stay sorted by
 * bandwidth, the greatest first, then by age. Returns false when NCCL has no room for another.
 */
export function connect(from: DraftNode, to: DraftNode, type: LinkType, bandwidthGBps: number): boolean {
  const { links } = from;
  let position = links.findIndex((link) => link.to === to && link.type === type);
  if (position < 0) {
    if (links.length === MAX_LINKS_OF_NODE) return false;
    position = links.push({ type, to, bandwidthGBps: 0 }) - 1;
    from.mostLinks = Math.max(from.mostLinks, links.length);
  }
  const link = links[position];
  if (link === undefined) return true;
  link.bandwidthGBps = Math.fround(link.bandwidthGBps + bandwidthGBps);
  for (
    let before = links[position - 1];
    before !== undefined && before.bandwidthGBps < link.bandwidthGBps;
    before = links[position - 1]
  ) {
    links[position] = before;
    links[--position] = link;
  }
  return true;
}

function linkTable(drafts: readonly DraftNode[], vertices: ReadonlyMap<DraftNode, number>): Links {
  return linksFromLists(drafts.map((draft) => draft.links.map((link) => ({ ...link, to: vertices.get(link.to) ?? -1 }))));
}

function nodeId(systemId: number, localId: bigint): bigint {
  return (BigInt(systemId) << 56n) | BigInt.asUintN(56, localId);
}
