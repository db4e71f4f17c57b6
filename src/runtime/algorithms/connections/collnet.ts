import type { NetworkAlgorithm } from './algorithm.js';
import { collnetTrees, type Form } from './collnet-trees.js';
import { HEADER_BYTES } from './exchange.js';
import { fairSlice, type SlotLimits } from '../slices.js';
import { Trees, treesEnds } from './tree.js';

const slots: SlotLimits = { steps: 8, heldBytes: 16 * 2 ** 20, shortestBytes: 8 * 1024, buffers: 1 };

/**
 * The algorithms *collnet* and *collnetchain*: NCCL's CollNetDirect and CollNetChain. Aggregators (src/runtime/aggregator/) are
 * the network that reduces. A head adds the inputs of its host, and an aggregator the hosts' sums:
 *
 *     collnet        ranks ─────────► head of a share ◄──► aggregator       a share for each head of the plan
 *     collnetchain   rank ─► rank ──► head of a share ◄──► aggregator       a share for each chain of the plan
 *
 * So a share is a tree of all ranks whose root is an aggregator: peer `nRanks + a` stands for aggregator a.
 */
export const collnet = collnetIn('direct');
export const collnetChain = collnetIn('chain');

function collnetIn(form: Form): NetworkAlgorithm {
  return {
    fifo: (nRanks) => ({ steps: slots.steps, slotBytes: HEADER_BYTES + fairSlice(slots, nRanks) }),
    ends: (channels, rank) => treesEnds(collnetTrees(channels, form), channels.rings.length, rank),
    open: ({ combiner, channels, rank, connections }) =>
      new Trees(combiner, collnetTrees(channels, form), channels.rings.length, rank, connections),
  };
}
