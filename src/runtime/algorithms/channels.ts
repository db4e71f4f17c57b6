import { doubleTree } from '../../planner/graph/merge/double-tree.js';
import type { RanksByHost } from '../../planner/schedule/hierarchical.js';

/** Channels of the algorithms over connections: the same on all ranks, and plain data, because engine threads get them too. */
export interface Channels {
  /** The ranks of each host. */
  readonly hosts: RanksByHost;
  /** The ranks in the order of the first ring, host by host. */
  readonly order: readonly number[];
  /** The different rings. */
  readonly rings: readonly RingChannel[];
  /** By channel of the plan: which of `rings` it is. A channel that repeats a ring shares its connections. */
  readonly ringOfChannel: readonly number[];
  /** The different trees. Tree t goes over the NICs of ring t, counted around. */
  readonly trees: readonly TreeChannel[];
  /** By channel of the plan: which of `trees` it is. */
  readonly treeOfChannel: readonly number[];
  /** Reason why the rings are in rank order; undefined if a plan gave them. */
  readonly unplanned: string | undefined;
}

/** A ring through all ranks. */
export interface RingChannel {
  /** The ranks in the direction of the data, from rank 0 on. */
  readonly order: readonly number[];
  /** By rank: NIC for its connections with other hosts. Empty if they use the address that the rank listens on. */
  readonly nics: readonly PlannedNic[];
}

/** A tree through all ranks, by rank. */
export interface TreeChannel {
  /** Parent, -1 for the root. */
  readonly up: readonly number[];
  readonly down: readonly (readonly number[])[];
}

/** A network device of a rank's host, as the plan names it. */
export interface PlannedNic {
  /** Number of the device on its host. */
  readonly dev: number;
  /** Name of the network interface. */
  readonly name: string;
}

/** One ring and a double tree without a plan: host by host, so that data of the ring enter and leave each host once. */
export function ringInOrder(hosts: RanksByHost, reason: string): Channels {
  const order = hosts.flat();
  return {
    hosts,
    order,
    rings: [{ order, nics: [] }],
    ringOfChannel: [0],
    trees: treesInOrder(order),
    treeOfChannel: [0, 1],
    unplanned: reason,
  };
}

/** The double binary tree of ranks in some order. */
export function treesInOrder(order: readonly number[]): readonly [TreeChannel, TreeChannel] {
  const tree = (which: 0 | 1): TreeChannel => {
    const up: number[] = [];
    const down: number[][] = [];
    order.forEach((rank, place) => {
      const { parent, children } = doubleTree(order.length, place)[which];
      up[rank] = order[parent] ?? -1;
      down[rank] = children.flatMap((child) => order[child] ?? []);
    });
    return { up, down };
  };
  return [tree(0), tree(1)];
}
