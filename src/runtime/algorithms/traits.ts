import { callKinds } from '../device/kernels/kernels.js';
import { ALIGNMENT } from './alignment.js';
import type { Algorithm, CallKind } from './call.js';
import { BUFFER_SLICE_BYTES } from './slices.js';

/** Properties of an algorithm that decide which calls may use it. */
interface AlgorithmTraits {
  readonly kinds: readonly CallKind[];
  /** Largest number of ranks it works with. */
  readonly mostRanks: number;
  /** `segment`: all ranks share one segment. `connections`: it sends messages, over shared memory or sockets. */
  readonly over: 'segment' | 'connections';
  /**
   * Largest call in bytes that uses this algorithm by default among ranks that use connections; 0 for none. A call uses the
   * algorithm of the smallest range that contains it.
   */
  readonly defaultUpToBytes: (nRanks: number) => number;
}

/** With more ranks, a message of PAT would not have room for a pair of cache lines of each block. */
const PAT_RANKS = (2 * BUFFER_SLICE_BYTES) / ALIGNMENT;
/** Largest block of a rank for which PAT's few messages are faster than a ring's many; measured (docs/notes/algorithms.md). */
const PAT_BYTES = 16 * 1024;
/**
 * Largest call, one slice of a tree, for which a tree's few messages are faster than a ring's many; measured
 * (docs/notes/algorithms.md).
 */
const TREE_BYTES = 8 * 1024;
const allKinds = Object.keys(callKinds) as CallKind[];

/** All algorithms. A new one gets a name in call.ts, which gives its wire code, a line here, and its own file in registry.ts. */
export const traits: Readonly<Record<Algorithm, AlgorithmTraits>> = {
  direct: { kinds: allKinds, mostRanks: Infinity, over: 'segment', defaultUpToBytes: () => 0 },
  nvls: { kinds: ['allReduce', 'allGather', 'reduceScatter'], mostRanks: Infinity, over: 'segment', defaultUpToBytes: () => 0 },
  ring: {
    kinds: ['allReduce', 'broadcast', 'barrier', 'reduce', 'allGather', 'reduceScatter', 'allGatherV', 'reduceScatterV'],
    mostRanks: Infinity,
    over: 'connections',
    defaultUpToBytes: () => Infinity,
  },
  tree: {
    kinds: ['allReduce', 'broadcast', 'barrier', 'reduce'],
    mostRanks: Infinity,
    over: 'connections',
    // With two ranks, tree and ring are the same.
    defaultUpToBytes: (nRanks) => (nRanks > 2 ? TREE_BYTES : 0),
  },
  pat: {
    kinds: ['allGather', 'reduceScatter'],
    mostRanks: PAT_RANKS,
    over: 'connections',
    defaultUpToBytes: (nRanks) => (nRanks > 3 ? PAT_BYTES : 0),
  },
  pairs: {
    kinds: ['allToAll', 'gather', 'scatter', 'allToAllV', 'scan', 'exscan'],
    mostRanks: Infinity,
    over: 'connections',
    defaultUpToBytes: () => Infinity,
  },
  hierarchical: {
    kinds: ['allReduce', 'barrier', 'reduceScatter', 'reduceScatterV', 'allGather', 'allGatherV', 'broadcast', 'reduce'],
    mostRanks: Infinity,
    over: 'connections',
    // See choose-algorithm.ts.
    defaultUpToBytes: () => 0,
  },
  nvlstree: { kinds: ['allReduce'], mostRanks: Infinity, over: 'connections', defaultUpToBytes: () => 0 },
  collnet: { kinds: ['allReduce'], mostRanks: Infinity, over: 'connections', defaultUpToBytes: () => 0 },
  collnetchain: { kinds: ['allReduce'], mostRanks: Infinity, over: 'connections', defaultUpToBytes: () => 0 },
};

/** True if an algorithm supports a kind of call with this number of ranks. */
export function carriesOut(algorithm: Algorithm, kind: CallKind, nRanks: number): boolean {
  const { kinds, mostRanks } = traits[algorithm];
  return kinds.includes(kind) && nRanks <= mostRanks;
}

/** True if an algorithm works on connections; the others need one segment for all ranks. */
export function isOverConnections(algorithm: Algorithm): boolean {
  return traits[algorithm].over === 'connections';
}
