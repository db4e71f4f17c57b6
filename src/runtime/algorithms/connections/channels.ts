import { doubleTree } from '../../../planner/graph/merge/double-tree.js';
import type { RanksByHost } from '../../../planner/schedule/ranks-by-host.js';
import type { Relays } from '../../transport/ring.js';
import { defined } from '../../../defined.js';

/** Channels of the algorithms over connections: the same on all ranks, and plain data, because engine threads get them too. */
export interface Channels {
  /** The ranks of each host. */
  readonly hosts: RanksByHost;
  /** The ranks that share memory: those of a host, or each alone where they share none. Left out, `hosts`. */
  readonly teams?: RanksByHost;
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
  /** By host: the ranks that each have a share of *nvlstree*, as many on each; left out where the plan has no NVLink SHARP. */
  readonly heads?: RanksByHost;
  /** By host: the ranks that reach aggregators, and by chain its ranks, the head first; left out where the plan has none. */
  readonly collnet?: { readonly heads: RanksByHost; readonly chains: readonly RanksByHost[] };
  /** Addresses of the aggregators, which are peers from the number of ranks on; left out, none. */
  readonly aggregators?: readonly string[];
  /** Reason why the rings are in rank order; undefined if a plan gave them. */
  readonly unplanned: string | undefined;
}

/** A ring through all ranks. */
export interface RingChannel {
  /** The ranks in the direction of the data, from rank 0 on. */
  readonly order: readonly number[];
  /** By rank: NIC for its connections with other hosts. Empty if they use the address that the rank listens on. */
  readonly nics: readonly PlannedNic[];
  /** Left out where each rank reaches its NIC itself. */
  readonly relays?: Relays;
}

/** A tree through all ranks, by rank. */
export interface TreeChannel {
  /** Parent, -1 for the root. */
  readonly up: readonly number[];
  readonly down: readonly (readonly number[])[];
}

/** A network device of a rank's host, as the plan names it. */
interface PlannedNic {
  /** Number of the device on its host. */
  readonly dev: number;
  /** Name of the network interface. */
  readonly name: string;
}

/** The NIC of a rank, and the rank of its host, counted there, through whose memory the plan reaches it (PXN), if another. */
export interface ReachedNic extends PlannedNic {
  readonly relay?: number;
}

/** The ranks of each host, where those that share no memory are hosts of their own. */
export function groupsOf({ hosts, teams = hosts }: Channels): RanksByHost {
  return teams.length === hosts.length ? hosts : teams;
}

/** NICs on the way between two ranks of different hosts. */
interface NicsBetween {
  /** This rank's NIC of each pair of NICs that the two have on a ring. */
  readonly nics: readonly string[];
  /** Indices of these pairs, in proportion to the rings that have them, spread evenly. */
  readonly turns: readonly number[];
}

/** The NICs that the rings of channels give a rank and a peer; both get the pairs in the same order. */
export function nicsBetween({ rings }: Channels, rank: number, peer: number): NicsBetween {
  const pairs = new Map<string, { readonly nic: string; nRings: number }>();
  for (const { nics } of rings) {
    const [own, other] = [nics[rank], nics[peer]];
    if (own === undefined || other === undefined) continue;
    const key = `${own.dev} ${other.dev}`;
    const pair = pairs.get(key) ?? { nic: own.name, nRings: 0 };
    pair.nRings++;
    pairs.set(key, pair);
  }
  const found = [...pairs.values()];
  return { nics: found.map(({ nic }) => nic), turns: spread(found.map(({ nRings }) => nRings)) };
}

/**
 * Rings with different NICs, by turn: connections that use one ring each are dealt to them in these turns, without end. A ring
 * that has more of the channels has more turns.
 */
export function railTurns({ rings }: Channels): number[] {
  const rails = new Map<string, { readonly ring: number; nRings: number }>();
  rings.forEach(({ nics }, ring) => {
    const key = keyOf(nics);
    const rail = rails.get(key) ?? { ring, nRings: 0 };
    rail.nRings++;
    rails.set(key, rail);
  });
  const found = [...rails.values()];
  return spread(found.map(({ nRings }) => nRings)).map((index) => defined(found[index]).ring);
}

/** Gives indices turns in proportion to their weights, as few and as even as possible: weights 4 and 2 give 0, 1, 0. */
function spread(weights: readonly number[]): number[] {
  const unit = weights.reduce(greatestCommonDivisor, 0);
  const total = weights.reduce((sum, weight) => sum + weight / unit, 0);
  const owed = weights.map(() => 0);
  return Array.from({ length: total }, () => {
    weights.forEach((weight, index) => (owed[index] = defined(owed[index]) + weight / unit));
    const next = owed.indexOf(Math.max(...owed));
    owed[next] = defined(owed[next]) - total;
    return next;
  });
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

/** The most pairs of NICs that two ranks have. */
export function mostNicPairs({ rings }: Channels): number {
  return Math.max(1, new Set(rings.map(({ nics }) => keyOf(nics))).size);
}

/** The same for rings with the same NICs. */
function keyOf(nics: readonly PlannedNic[]): string {
  return nics.map((nic) => nic.dev).join();
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
