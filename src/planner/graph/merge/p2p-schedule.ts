import type { Rules } from '../../versions/rules.js';
import { kindOf, type NodeTable } from './nodes.js';
import { powerOfTwoFrom } from './p2p.js';

/** Order of the rounds; a rule of the version. */
export type P2pOrder = Rules['p2pOrder'];

/** The peers of a rank in each round when all exchange with all. */
export interface P2pSchedule {
  readonly send: Int32Array;
  readonly receive: Int32Array;
}

/** Ranks in groups of the same size: whole nodes, parts of them, or all ranks as one. */
interface Groups {
  readonly size: number;
  /** Group by group. */
  readonly ranks: ArrayLike<number>;
  /** Group and place in it of the rank that asks. */
  readonly group: number;
  readonly place: number;
}

/**
 * The rounds of one rank: group after group, and in each rank after rank; a rank's target in a round receives from it in the same
 * round. Distances between groups are 0, 1, 3, 6, 10 … (triangular numbers modulo a power of two take each value once).
 *
 * @param order `groups`: parts of nodes, ranks in turn; `quadratic`: whole nodes, or all ranks where nodes differ in size,
 *   ranks at triangular distances too
 */
export function p2pScheduleOf(
  table: NodeTable,
  { order, scheduleGroupSize }: { readonly order: P2pOrder; readonly scheduleGroupSize: number },
  rank: number,
): P2pSchedule {
  switch (order) {
    case 'groups':
      return exchange(groupsOf(table, scheduleGroupSize, rank), inTurn(scheduleGroupSize));
    case 'quadratic': {
      const groups = wholeNodes(table, rank);
      return exchange(groups, triangular(groups.size));
    }
    case 'by node':
      return nearestFirst(table, rank);
  }
}

function exchange({ size, ranks, group, place }: Groups, places: readonly number[]): P2pSchedule {
  const nGroups = ranks.length / size;
  const send = new Int32Array(ranks.length);
  const receive = new Int32Array(ranks.length);
  let round = 0;
  for (const distance of triangular(nGroups)) {
    const to = ((group + distance) % nGroups) * size;
    const from = ((group - distance + nGroups) % nGroups) * size;
    for (const delta of places) {
      send[round] = ranks[to + ((place + delta) % size)] ?? 0;
      receive[round] = ranks[from + ((place - delta + size) % size)] ?? 0;
      round++;
    }
  }
  return { send, receive };
}

function inTurn(count: number): number[] {
  return Array.from({ length: count }, (_, distance) => distance);
}

/** Each distance below `count` once, in the order of triangular numbers. */
function triangular(count: number): number[] {
  const steps = powerOfTwoFrom(count);
  const distances: number[] = [];
  let distance = 0;
  for (let step = 1; step <= steps; step++) {
    if (distance < count) distances.push(distance);
    distance = (distance + step) & (steps - 1);
  }
  return distances;
}

function groupsOf(table: NodeTable, size: number, rank: number): Groups {
  const node = table.rankToNode[rank] ?? 0;
  const local = table.rankToLocalRank[rank] ?? 0;
  const before = Array.from({ length: node }, (_, each) => kindOf(table, each).ranks.length).reduce(
    (sum, count) => sum + count,
    0,
  );
  return { size, ranks: nodeByNode(table), group: before / size + Math.floor(local / size), place: local % size };
}

function wholeNodes(table: NodeTable, rank: number): Groups {
  const sizes = new Set(table.kinds.map(({ ranks }) => ranks.length));
  const [size = 1] = sizes;
  if (sizes.size === 1)
    return { size, ranks: nodeByNode(table), group: table.rankToNode[rank] ?? 0, place: table.rankToLocalRank[rank] ?? 0 };
  return { size: table.nRanks, ranks: inTurn(table.nRanks), group: 0, place: rank };
}

/** All ranks, node by node. */
function nodeByNode(table: NodeTable): Int32Array {
  const ranks = new Int32Array(table.nRanks);
  let next = 0;
  for (let node = 0; node < table.nNodes; node++) {
    const base = table.rankBase[node] ?? 0;
    for (const rank of kindOf(table, node).ranks) ranks[next++] = base + rank;
  }
  return ranks;
}

/** Number of peers that fit into one kernel; nodes fill or divide it. */
const PEERS_PER_KERNEL = 8;

/**
 * Node by node at distances 0, then half of all, then ±1 and the nodes around the opposite one, and so on; in each node
 * rank after rank. Nodes that are smaller than the largest have gaps, -1.
 */
function nearestFirst(table: NodeTable, rank: number): P2pSchedule {
  const { nNodes } = table;
  const steps = stepsOfNode(Math.max(...table.kinds.map(({ ranks }) => ranks.length)));
  const node = table.rankToNode[rank] ?? 0;
  const local = table.rankToLocalRank[rank] ?? 0;
  const rankAt = (other: number, place: number) => {
    const own = kindOf(table, other).ranks[place];
    return own === undefined ? -1 : (table.rankBase[other] ?? 0) + own;
  };
  const send: number[] = [];
  const receive: number[] = [];
  for (const distance of aroundBothEnds(nNodes)) {
    for (let step = 0; step < steps; step++) {
      send.push(rankAt((node + distance) % nNodes, (local + step) % steps));
      receive.push(rankAt((node + nNodes - distance) % nNodes, (local - step + steps) % steps));
    }
  }
  return { send: Int32Array.from(send), receive: Int32Array.from(receive) };
}

function stepsOfNode(mostLocalRanks: number): number {
  if (mostLocalRanks > PEERS_PER_KERNEL) return Math.ceil(mostLocalRanks / PEERS_PER_KERNEL) * PEERS_PER_KERNEL;
  return Math.floor(PEERS_PER_KERNEL / Math.floor(PEERS_PER_KERNEL / mostLocalRanks));
}

/** Each distance below `count` once: d, -d, half - d, d - half. */
function aroundBothEnds(count: number): number[] {
  const half = Math.floor(count / 2);
  const distances: number[] = [];
  for (let distance = 0; distance <= Math.floor(count / 4); distance++) {
    const four = [distance, (count - distance) % count, half - distance, (count - (half - distance)) % count] as const;
    distances.push(four[0]);
    if (four[1] !== four[0]) distances.push(four[1]);
    if (four[2] !== four[0]) distances.push(four[2]);
    if (four[3] !== four[2] && four[3] !== four[1]) distances.push(four[3]);
  }
  return distances;
}
