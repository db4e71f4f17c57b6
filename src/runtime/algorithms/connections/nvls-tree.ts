import { doubleTree } from '../../../planner/graph/merge/double-tree.js';
import { groupsOf, type Channels, type TreeChannel } from './channels.js';
import { overTrees, shareFifo } from './tree.js';

/**
 * The algorithm *nvlstree*: NCCL's NVLink SHARP between hosts. A share of the data has a head on each host, which adds the
 * inputs of its host's ranks; the heads of a share form a tree of hosts, one half of the double tree for even shares and the
 * other for odd ones; the result comes down the same way. Where a GPU's head lets the switch add, a CPU's takes messages through
 * memory of the host, so a share is a tree of all ranks whose leaves are the host's other ranks:
 *
 *     share 0    head 0 of host 1 ──► head 0 of host 0        share 1    head 1 of host 0 ──► head 1 of host 1
 *                  ranks of host 1      ranks of host 0                    ranks of host 0      ranks of host 1
 */
export const nvlsTree = overTrees(shareFifo, shareTrees);

/** The tree of each share. */
export function shareTrees(channels: Channels): TreeChannel[] {
  const groups = groupsOf(channels);
  const { hosts, heads } = channels;
  const headsOf = groups === hosts && heads !== undefined ? heads : groups;
  const nShares = Math.min(...headsOf.map(({ length }) => length));
  return Array.from({ length: nShares }, (_, share): TreeChannel => {
    const headOn = (group: number): number => headsOf[group]?.[share] ?? -1;
    const up: number[] = [];
    const down: number[][] = [];
    groups.forEach((ranks, group) => {
      const { parent, children } = doubleTree(groups.length, group)[share % 2 === 0 ? 0 : 1];
      const head = headOn(group);
      for (const rank of ranks) {
        up[rank] = rank === head ? headOn(parent) : head;
        down[rank] =
          rank === head
            ? [...ranks.filter((other) => other !== head), ...children.map(headOn).filter((child) => child >= 0)]
            : [];
      }
    });
    return { up, down };
  });
}
