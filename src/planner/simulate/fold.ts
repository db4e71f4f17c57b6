import type { Merged } from '../graph/merge/merge.js';
import { joinTrees } from '../graph/merge/trees.js';
import type { Fabric } from './fabric.js';
import { type ScheduledConnection, ConnectionTable, type Schedule, type Worker } from '../schedule/schedule.js';

/** Hosts that stand for all: of crossed rails, hosts at odd places take the other. */
export const FOLDED_HOSTS = 2;

/** A schedule of the hosts that stand for all. */
export interface FoldedSchedule extends Schedule {
  readonly fold: Fold;
}

/** Properties of the whole cluster that the schedule of the hosts that stand for all lacks. */
export interface Fold {
  readonly hosts: number;
  /** Number of hosts from the sender's on to the receiver's, by connection. */
  readonly hostsApart: readonly number[];
}

/**
 * Replaces hosts that all do the same by two: the data that a rank receives from the previous hosts are those that it sends to
 * the next. Connections that differ only by the hosts become one. Drawn with one instead of two:
 *
 *     … ─► host 0: 0 ─► 1 ─► 2 ─► 3 ─► host 1 …        becomes        ┌─► 0 ─► 1 ─► 2 ─► 3 ─┐
 *                                                                     └─────────────────────┘
 *
 * @param perHost ranks of two hosts
 */
export function foldHosts(schedule: Schedule, perHost: number): FoldedSchedule {
  const { nRanks, connections } = schedule;
  const hosts = nRanks / perHost;
  const hostOf = (rank: number) => Math.floor(rank / (perHost / FOLDED_HOSTS));
  const allHosts = hosts * FOLDED_HOSTS;
  const hostsApart: number[] = [];
  const table = new ConnectionTable();
  const numbers = new Map<string, number>();
  const images = new Int32Array(connections.length).fill(-1);
  connections.forEach(({ from, to, channel, via, phase }, number) => {
    const touches = from < perHost || to < perHost;
    if (!touches) return;
    const distance = (Math.floor(to / perHost) - Math.floor(from / perHost) + hosts) % hosts;
    const key = `${from % perHost} ${to % perHost} ${distance} ${channel} ${via}`;
    let image = numbers.get(key);
    if (image === undefined) {
      numbers.set(key, (image = table.add(from % perHost, (to % perHost) + (distance === 0 ? 0 : perHost), channel, via, phase)));
      hostsApart.push((hostOf(to) - hostOf(from) + allHosts) % allHosts);
    }
    images[number] = image;
  });
  const imagesOf = (all: readonly number[]) => all.map((number) => images[number] ?? -1);
  const workers = schedule.workers
    .filter(({ rank }) => rank < perHost)
    .map((worker): Worker => ({
      ...worker,
      moves: function* () {
        for (const move of worker.moves()) yield { ...move, receive: imagesOf(move.receive), send: imagesOf(move.send) };
      },
    }));
  return { ...schedule, connections: table.all, workers, fold: { hosts: allHosts, hostsApart } };
}

/** True if all hosts have the same machine and the same number of ranks, in order. */
export function areHostsAlike({ kinds, nRanks, nNodes, rankBase }: Merged['nodes']): boolean {
  const perHost = nRanks / nNodes;
  return kinds.length === 1 && Number.isInteger(perHost) && rankBase.every((base, node) => base === node * perHost);
}

/** Sizes of the trees that stand for larger ones, in hosts. */
const FEWER_HOSTS = 16;
const MORE_HOSTS = 32;

/**
 * Time of a tree over many equal hosts, from two smaller ones: each further level takes the time that the last one added.
 *
 * @param timeOf time of a tree by number of hosts
 */
export function timeOfDeepTree(hosts: number, timeOf: (hosts: number) => number): number {
  const [fewer, more] = [timeOf(FEWER_HOSTS), timeOf(MORE_HOSTS)];
  const levels = Math.ceil(Math.log2(hosts)) - Math.log2(MORE_HOSTS);
  return more + (levels * Math.max(0, more - fewer)) / Math.log2(MORE_HOSTS / FEWER_HOSTS);
}

/** Hosts of which all NICs together carry the branches of both trees between the hosts below a switch and all others. */
const BRANCH_HOSTS = 3;

/** Switches of a tier that the smaller trees must have: how many branches leave a switch depends on its place in the tree. */
const LEAST_SWITCHES = 4;

/**
 * True if trees over this many hosts are extrapolated from smaller ones: of a fabric, the smaller ones must have several of its
 * switches, or the links up from a switch must carry all branches.
 */
export function isDeepTree(hosts: number, fabric: Fabric | undefined): boolean {
  const isScaled = fabric?.tiers.every(
    (tier) => LEAST_SWITCHES * tier.hosts <= FEWER_HOSTS || tier.hosts >= BRANCH_HOSTS * tier.oversubscription,
  );
  return hosts > MORE_HOSTS && isScaled !== false;
}

/** Least odd number of hosts whose time is extrapolated. */
const LEAST_ODD = 33;

/** True for odd numbers of hosts that even ones stand for: hosts at odd places swap crossed rails, so odd numbers do not fold. */
export function isOddCluster(hosts: number): boolean {
  return hosts % 2 === 1 && hosts >= LEAST_ODD;
}

/** Time on an odd number of equal hosts, from the two even numbers below. @param timeOf time by number of hosts */
export function timeOfOddCluster(hosts: number, timeOf: (hosts: number) => number): number {
  const [fewer, more] = [timeOf(hosts - 3), timeOf(hosts - 1)];
  return more + (more - fewer) / 2;
}

/** The first hosts of a cluster of equal hosts, with rings and trees of their own. */
export function withFirstHosts(merged: Merged, hosts: number): Merged {
  const { nodes, graphs, rings, trees } = merged;
  const nRanks = (nodes.nRanks / nodes.nNodes) * hosts;
  const few = {
    ...nodes,
    nRanks,
    nNodes: hosts,
    kindOfNode: nodes.kindOfNode.subarray(0, hosts),
    rankBase: nodes.rankBase.subarray(0, hosts),
    rankToNode: nodes.rankToNode.subarray(0, nRanks),
    rankToLocalRank: nodes.rankToLocalRank.subarray(0, nRanks),
  };
  // The hosts that are left keep their places.
  const order = rings.order.filter((rank) => rank < nRanks);
  const position = new Int32Array(order.length);
  order.forEach((rank, place) => (position[place - (place % nRanks) + rank] = place % nRanks));
  return {
    ...merged,
    nodes: few,
    rings: { count: rings.count, order, position },
    trees: joinTrees(few, graphs.ring.nChannels, trees.count),
  };
}

/**
 * One channel for all equal ones, whose connections have the same rates in the same order.
 *
 * @param describe text of the properties of a connection that its time depends on
 */
export function channelsThatDiffer(
  connections: readonly ScheduledConnection[],
  describe: (connection: number) => string,
): ReadonlySet<number> {
  const signatures = new Map<number, string[]>();
  connections.forEach(({ channel }, number) => {
    const parts = signatures.get(channel);
    if (parts === undefined) signatures.set(channel, [describe(number)]);
    else parts.push(describe(number));
  });
  const first = new Map<string, number>();
  for (const [channel, parts] of signatures) {
    const key = parts.join(' ');
    if (!first.has(key)) first.set(key, channel);
  }
  return new Set(first.values());
}
