import type { Merged } from '../graph/merge/merge.js';
import { kindOf, type NodeTable, numberNodes } from '../graph/merge/nodes.js';
import { crossingKinds, joinRings } from '../graph/merge/rings.js';
import { joinTrees } from '../graph/merge/trees.js';
import { ROUNDS_AT_ONCE } from '../schedule/pairs.js';
import type { Rules } from '../versions/rules.js';
import type { Fabric } from './fabric.js';
import { areHostsAlike, FOLDED_HOSTS } from './fold.js';

/** Two smaller clusters from whose times that of a large one follows: numbers of its hosts, ascending. */
export interface Smaller {
  readonly fewer: readonly number[];
  readonly more: readonly number[];
  /** Steps from the second one to the large cluster; each takes as long as that from the first to the second. */
  readonly steps: number;
}

/** Ranks up to which all hosts are simulated, and ranks of smaller clusters whose hosts do not fold. */
const FEW_RANKS = 128;
const MOST_RANKS = 400;

/** Least hosts of a smaller cluster, and least switches of each tier. */
const FEW_HOSTS = 8;
const FEW_SWITCHES = 2;

/**
 * Smaller clusters for rings and messages between pairs: each further host takes as long as the last one, if each rank has as
 * many data for each other one.
 *
 * - Messages take turns on the channels, and a turn of all channels is a number of ranks: the clusters have as many ranks
 *   beyond whole turns as the large one.
 * - Hosts at odd places swap crossed rails: they are odd numbers of hosts where the large one is.
 * - They have as many hosts beyond whole switches.
 *
 * @returns undefined where all hosts are simulated
 */
export function smallerClusters(nodes: NodeTable, nChannels: number, fabric: Fabric | undefined): Smaller | undefined {
  const { nRanks, nNodes, kinds, kindOfNode } = nodes;
  if (nRanks <= FEW_RANKS || !areHostsWhole(nodes)) return undefined;
  const ranksOfTurn = ROUNDS_AT_ONCE * nChannels;
  const switches = (fabric?.tiers ?? []).filter(({ oversubscription }) => oversubscription > 1).map(({ hosts }) => hosts);
  const isOdd = nNodes % FOLDED_HOSTS === 1;
  const mayFold = areHostsAlike(nodes) && !isOdd;
  const found: { readonly hosts: readonly number[]; readonly ranks: number }[] = [];
  let count = Math.max(FEW_HOSTS, kinds.length, ...switches.map((below) => FEW_SWITCHES * below));
  for (; count < nNodes && found.length < 2; count++) {
    if ([FOLDED_HOSTS, ...switches].some((step) => (nNodes - count) % step !== 0)) continue;
    const hosts = chosenHosts(kindOfNode, count);
    const ranks = hosts.reduce((sum, host) => sum + kindOf(nodes, host).ranks.length, 0);
    if (!mayFold && ranks > MOST_RANKS) break;
    if ((nRanks - ranks) % ranksOfTurn === 0) found.push({ hosts, ranks });
  }
  const [fewer, more] = found;
  if (fewer !== undefined && more !== undefined)
    return { fewer: fewer.hosts, more: more.hosts, steps: (nRanks - more.ranks) / (more.ranks - fewer.ranks) };
  return isOdd && areHostsAlike(nodes) ? evenClusters(nodes) : undefined;
}

/** The even numbers below an odd number of equal hosts. Messages are up to a tenth off: their order depends on the number. */
function evenClusters({ nNodes, kindOfNode }: NodeTable): Smaller {
  return { fewer: chosenHosts(kindOfNode, nNodes - 3), more: chosenHosts(kindOfNode, nNodes - 1), steps: 1 / 2 };
}

/** Hosts of the trees that stand for larger ones, where all are alike. */
const FEWER_HOSTS = 16;
const MORE_HOSTS = 32;

/** Ranks up to which trees over hosts of several kinds are simulated whole. */
const FEW_TREE_RANKS = 512;

/**
 * Smaller clusters for trees: each further level of the double tree takes as long as the last one. Of hosts of several kinds they
 * are a half and a quarter and so on, so that kinds keep their places in the tree.
 *
 * @returns undefined where all hosts are simulated
 */
export function smallerTrees(nodes: NodeTable, fabric: Fabric | undefined): Smaller | undefined {
  const { nRanks, nNodes, kinds, kindOfNode } = nodes;
  if (!areHostsWhole(nodes)) return undefined;
  let [fewer, more] = [FEWER_HOSTS, MORE_HOSTS];
  if (!areHostsAlike(nodes)) {
    for (more = nNodes; (more / nNodes) * nRanks > FEW_TREE_RANKS;) more = Math.ceil(more / 2);
    fewer = Math.ceil(more / 2);
  }
  if (more >= nNodes || fewer < kinds.length || !hasTypicalBranches(fewer, fabric)) return undefined;
  const levels = (hosts: number) => Math.ceil(Math.log2(hosts));
  return { fewer: chosenHosts(kindOfNode, fewer), more: chosenHosts(kindOfNode, more), steps: levels(nNodes) - levels(more) };
}

/** Time on a large cluster. @param timeOf time on some of its hosts */
export function timeOfLarge({ fewer, more, steps }: Smaller, timeOf: (hosts: readonly number[]) => number): number {
  const [less, time] = [timeOf(fewer), timeOf(more)];
  return time + steps * Math.max(0, time - less);
}

/** Hosts of which all NICs together carry the branches of both trees between the hosts below a switch and all others. */
const BRANCH_HOSTS = 3;

/** Switches of a tier that the smaller trees must have: how many branches leave a switch depends on its place in the tree. */
const LEAST_SWITCHES = 4;

/** True if so many hosts have several of a fabric's switches, or the links up from a switch carry all branches. */
function hasTypicalBranches(hosts: number, fabric: Fabric | undefined): boolean {
  return (fabric?.tiers ?? []).every(
    (tier) => LEAST_SWITCHES * tier.hosts <= hosts || tier.hosts >= BRANCH_HOSTS * tier.oversubscription,
  );
}

/** True if no host is split into several nodes. */
function areHostsWhole(nodes: NodeTable): boolean {
  const { rankBase, nRanks, nNodes } = nodes;
  return rankBase.every(
    (base, node) => (node + 1 < nNodes ? (rankBase[node + 1] ?? 0) : nRanks) - base === kindOf(nodes, node).ranks.length,
  );
}

/**
 * Hosts that stand for more: of each kind its part, at least one, at places like those of all.
 *
 *     ten hosts    A A A A B A A A A B
 *     five           A   A     A   A B
 *
 * @param kindOfNode kind of each host
 * @param count of hosts that are wanted: at least one for each kind
 * @returns numbers of the chosen hosts, ascending
 */
export function chosenHosts(kindOfNode: Int32Array, count: number): number[] {
  const all = new Map<number, number>();
  for (const kind of kindOfNode) all.set(kind, (all.get(kind) ?? 0) + 1);
  const chosen = partsOf(all, count);
  const seen = new Map<number, number>();
  return Array.from(kindOfNode, (kind, host) => ({ kind, host }))
    .filter(({ kind }) => {
      const place = seen.get(kind) ?? 0;
      seen.set(kind, place + 1);
      const [part, whole] = [chosen.get(kind) ?? 0, all.get(kind) ?? 1];
      return Math.floor(((place + 1) * part) / whole) > Math.floor((place * part) / whole);
    })
    .map(({ host }) => host);
}

/** Number of hosts of each kind, by largest remainders. */
function partsOf(all: ReadonlyMap<number, number>, count: number): Map<number, number> {
  const hosts = [...all.values()].reduce((sum, number) => sum + number, 0);
  const parts = new Map([...all].map(([kind, number]) => [kind, Math.max(1, Math.floor((number * count) / hosts))]));
  const lacks = (kind: number) => ((all.get(kind) ?? 0) * count) / hosts - (parts.get(kind) ?? 0);
  const byLack = () => [...all.keys()].sort((a, b) => lacks(b) - lacks(a));
  const add = (kind: number | undefined, number: number) =>
    kind !== undefined && parts.set(kind, (parts.get(kind) ?? 0) + number);
  let left = count - [...parts.values()].reduce((sum, number) => sum + number, 0);
  for (; left > 0; left--) add(byLack()[0], 1);
  for (; left < 0; left++)
    add(
      byLack().findLast((kind) => (parts.get(kind) ?? 0) > 1),
      -1,
    );
  return parts;
}

/** Some hosts of a cluster, in their order, with rings and trees of their own. */
export function withHosts(merged: Merged, chosen: readonly number[], rules: Rules): Merged {
  const { graphs, rings, trees } = merged;
  const { kinds, kindOfNode } = merged.nodes;
  const runs = chosen.map((node) => {
    const kind = kindOf(merged.nodes, node);
    return { host: { nRanks: kind.ranks.length, nodes: [kind] }, count: 1 };
  });
  // Kinds keep their numbers, which other parts of a plan use.
  const nodes = { ...numberNodes(runs), kinds, kindOfNode: Int32Array.from(chosen, (node) => kindOfNode[node] ?? 0) };
  return {
    ...merged,
    nodes,
    rings: joinRings(nodes, graphs.ring.nChannels, rings.count, crossingKinds(nodes, graphs, rules)),
    trees: joinTrees(nodes, graphs.ring.nChannels, trees.count),
  };
}
