import { assemble, linksFromLists } from './assemble.js';
import { hardwareType, type System, type SystemNode } from './system.js';
import { NodeType } from './types.js';

/** The system without the given nodes and the links to them. DEV, PCI and NIC nodes above them stay, as in NCCL. */
export function withoutNodes(system: System, removed: readonly SystemNode[]): System {
  if (removed.length === 0) return system;
  const gone = new Set(removed);
  const kept = system.nodes.filter((node) => !gone.has(node));
  const vertexOf = new Map(kept.map((node, vertex) => [node.vertex, vertex]));
  const { start, to, type, bandwidthGBps } = system.links;
  const lists = kept.map((node) => {
    const list: { to: number; type: number; bandwidthGBps: number }[] = [];
    for (let link = start[node.vertex] ?? 0; link < (start[node.vertex + 1] ?? 0); link++) {
      const target = vertexOf.get(to[link] ?? -1);
      if (target !== undefined) list.push({ to: target, type: type[link] ?? 0, bandwidthGBps: bandwidthGBps[link] ?? 0 });
    }
    return list;
  });
  const holdsOwnLinks = hardwareType(system) === NodeType.GPU;
  const positions = new Map<NodeType, number>();
  const nodes = kept.map((node, vertex): SystemNode => {
    const index = positions.get(node.type) ?? 0;
    positions.set(node.type, index + 1);
    return { ...node, vertex, index, ...(node.type === NodeType.GPU && holdsOwnLinks ? { parent: index } : {}) };
  });
  return assemble(nodes, linksFromLists(lists), system.hostHashes, system.systemId);
}
