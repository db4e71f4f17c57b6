import { type LocalSystem } from '../../planner/topology/local-systems.js';
import { nodeName, type SystemNode } from '../../planner/topology/system.js';
import { NodeType } from '../../planner/topology/types.js';
import { NVSWITCH_ID } from './boxes.js';
import { type LinkUse, linkKey } from './picture.js';

/**
 * Uses of a machine's links by the names of their ends, for {@link MachinePictureOptions.loads}.
 *
 * @param load of each directed link, GB/s
 */
export function linkUses({ system }: Pick<LocalSystem, 'system'>, load: ArrayLike<number>): Map<string, LinkUse> {
  const { from, to, bandwidthGBps } = system.links;
  const uses = new Map<string, LinkUse>();
  for (let link = 0; link < to.length; link++) {
    const ends = [system.nodes[from[link] ?? -1], system.nodes[to[link] ?? -1]] as const;
    if (ends[0] === undefined || ends[1] === undefined) continue;
    uses.set(linkKey(drawnId(ends[0]), drawnId(ends[1])), { usedGBps: load[link] ?? 0, gbps: bandwidthGBps[link] ?? 0 });
  }
  return uses;
}

/** The box of a machine's drawing that a node has. */
export function drawnId(node: SystemNode): string {
  return node.type === NodeType.NVS ? NVSWITCH_ID : nodeName(node);
}
