import { InvalidArgumentError } from '../../../errors.js';
import type { HostContribution, NodeContribution } from './contribution.js';
import type { MergeListener } from './trace.js';

/** A run of identical hosts. */
export interface HostRun {
  readonly host: HostContribution;
  /** Number of such hosts in a row. */
  readonly count: number;
}

/**
 * Positions of ranks. Ranks are numbered host by host; nodes by the lowest rank that each has.
 *
 *     host       0              1                        2             rank = rankBase of its node + rank within its host
 *     ranks      0 1 2 3        4 5 6 7                  8 9 10 11
 *     node       0 0 0 0        1 2 1 2                  3 3 3  3      host 1 is split: two nodes with the same rankBase
 */
export interface NodeTable {
  readonly nRanks: number;
  readonly nNodes: number;
  /** The different nodes that there are. */
  readonly kinds: readonly NodeContribution[];
  /** By node: which of `kinds`. */
  readonly kindOfNode: Int32Array;
  /** By node: rank 0 of its host. */
  readonly rankBase: Int32Array;
  /** By rank. */
  readonly rankToNode: Int32Array;
  /** By rank: its position among the ranks of its node. */
  readonly rankToLocalRank: Int32Array;
}

/**
 * @throws InvalidArgumentError where there is no rank, a count is not a whole number above 0, or nodes do not divide the ranks of
 *   their host
 */
export function numberNodes(runs: readonly HostRun[], listen?: MergeListener): NodeTable {
  const kinds: NodeContribution[] = [];
  const kindNumbers = new Map<NodeContribution, number>();
  for (const { host, count } of runs) {
    if (!Number.isInteger(count) || count < 1) {
      throw new InvalidArgumentError('ARGUMENT_RANGE', `a run of ${count} hosts: the count must be a whole number above 0`);
    }
    const ranks = host.nodes.flatMap((node) => node.ranks).sort((a, b) => a - b);
    if (ranks.length !== host.nRanks || ranks.some((rank, position) => rank !== position)) {
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `the nodes of a host of ${host.nRanks} ranks have ranks ${ranks.join(' ')}: together they must have 0 to ${host.nRanks - 1}, each once`,
      );
    }
    for (const node of host.nodes) {
      if (!kindNumbers.has(node)) kindNumbers.set(node, kinds.push(node) - 1);
    }
  }
  const nRanks = runs.reduce((sum, { host, count }) => sum + host.nRanks * count, 0);
  const nNodes = runs.reduce((sum, { host, count }) => sum + host.nodes.length * count, 0);
  if (nRanks === 0)
    throw new InvalidArgumentError('ARGUMENT_RANGE', 'the cluster has no ranks: give at least one host with a GPU');

  const table: NodeTable = {
    nRanks,
    nNodes,
    kinds,
    kindOfNode: new Int32Array(nNodes),
    rankBase: new Int32Array(nNodes),
    rankToNode: new Int32Array(nRanks),
    rankToLocalRank: new Int32Array(nRanks),
  };
  let hostNumber = 0;
  let node = 0;
  let base = 0;
  for (const { host, count } of runs) {
    for (let repeat = 0; repeat < count; repeat++) {
      if (host.nodes.length > 1)
        listen?.({
          kind: 'split-host',
          host: hostNumber,
          nodes: host.nodes.map(({ ranks }) => ranks.map((rank) => base + rank)),
        });
      for (const kind of host.nodes) {
        table.kindOfNode[node] = kindNumbers.get(kind) ?? 0;
        table.rankBase[node] = base;
        kind.ranks.forEach((rank, localRank) => {
          table.rankToNode[base + rank] = node;
          table.rankToLocalRank[base + rank] = localRank;
        });
        node++;
      }
      base += host.nRanks;
      hostNumber++;
    }
  }
  return table;
}

/** Input of the node's ranks to the merge. */
export function kindOf(table: NodeTable, node: number): NodeContribution {
  const kind = table.kinds[table.kindOfNode[node] ?? -1];
  if (kind === undefined) throw new InvalidArgumentError('ARGUMENT_RANGE', `no node ${node}: there are ${table.nNodes}`);
  return kind;
}
