import { assemble, linksFromLists } from './assemble.js';
import type { System, SystemNode } from './system.js';
import { NodeType } from './types.js';

/**
 * The system without those GPU nodes (by index) and the links to them. Their hardware stays: NCCL keeps DEV, PCI and
 * NIC nodes, whoever uses them.
 */
export function withoutGpus(system: System, removed: ReadonlySet<number>): System {
  const kept = system.nodes.filter((node) => node.type !== NodeType.GPU || !removed.has(node.index));
  const vertexOf = new Map(kept.map((node, vertex) => [node.vertex, vertex]));
  const gpusRemoved = system.nodes.length - kept.length;
  const { start, to, type, bandwidthGBps } = system.links;
  const lists = kept.map((node) => {
    const list: { to: number; type: number; bandwidthGBps: number }[] = [];
    for (let link = start[node.vertex] ?? 0; link < (start[node.vertex + 1] ?? 0); link++) {
      const target = vertexOf.get(to[link] ?? -1);
      if (target !== undefined) list.push({ to: target, type: type[link] ?? 0, bandwidthGBps: bandwidthGBps[link] ?? 0 });
    }
    return list;
  });
  const nodes = kept.map((node, vertex): SystemNode => ({ ...node, vertex, index: node.type === NodeType.GPU ? vertex : node.index }));
  if (gpusRemoved === 0) return system;
  return assemble(nodes, linksFromLists(lists), system.hostHashes, system.systemId);
}
