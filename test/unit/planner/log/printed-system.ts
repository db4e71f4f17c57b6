import { nodeName, type System, type SystemNode } from '../../../../src/planner/topology/system.js';
import { LinkType, linkTypeName, NodeType } from '../../../../src/planner/topology/types.js';

/** The block that NCCL prints of a system. */
export function printed(system: System): string[] {
  const lines: string[] = [];
  const named = (node: SystemNode) =>
    `${nodeName(node)}${node.type === NodeType.CPU ? ` (${node.arch}/${node.vendor}/${node.model})` : node.type === NodeType.GPU ? ` (${node.rank})` : ''}`;
  const print = (node: SystemNode, before: SystemNode | undefined, start: string, indent: number) => {
    lines.push(start + named(node));
    const { links } = system;
    for (let link = links.start[node.vertex] ?? 0; link < (links.start[node.vertex + 1] ?? 0); link++) {
      const to = system.nodes[links.to[link] ?? -1];
      const type = links.type[link] ?? 0;
      if (to === undefined || type === LinkType.LOC || (type === LinkType.PCI && to === before)) continue;
      const text = `${' '.repeat(indent)}+ ${linkTypeName(type)}[${(links.bandwidthGBps[link] ?? 0).toFixed(1)}] - `;
      if (type === LinkType.PCI) print(to, node, text, text.length);
      else
        lines.push(
          `${text}${nodeName(to)}${to.type === NodeType.NET ? ` (${to.asic.toString(16)}/${to.port}/${to.bandwidthGBps.toFixed(6)})` : ''}`,
        );
    }
  };
  for (const cpu of system.cpus) print(cpu, undefined, '', 0);
  return ['=== System : maxBw 48.0 totalBw 370.8 ===', ...lines, '=========================================='].map(
    (line) => `host1:100:101 [0] NCCL INFO ${line}`,
  );
}
