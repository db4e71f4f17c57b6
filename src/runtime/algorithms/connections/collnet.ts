import { collnetTrees } from './collnet-trees.js';
import { overTrees, shareFifo } from './tree.js';

/**
 * The algorithms *collnet* and *collnetchain*: NCCL's CollNetDirect and CollNetChain. Aggregators (src/runtime/aggregator/) are
 * the network that reduces. A head adds the inputs of its host, and an aggregator the hosts' sums:
 *
 *     collnet        ranks ─────────► head of a share ◄──► aggregator       a share for each head of the plan
 *     collnetchain   rank ─► rank ──► head of a share ◄──► aggregator       a share for each chain of the plan
 *
 * So a share is a tree of all ranks whose root is an aggregator: peer `nRanks + a` stands for aggregator a.
 */
export const collnet = overTrees(shareFifo, (channels) => collnetTrees(channels, 'direct'));
export const collnetChain = overTrees(shareFifo, (channels) => collnetTrees(channels, 'chain'));
