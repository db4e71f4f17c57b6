import { callKinds } from '../device/kernels/kernels.js';
import { InternalError } from '../../errors.js';
import type { AlgorithmTraits, NetworkAlgorithm } from './algorithm.js';
import type { Algorithm, CallKind } from './call.js';
import { collnet, collnetChain } from './collnet.js';
import { hierarchical } from './hierarchical.js';
import { nvlsTree } from './nvls-tree.js';
import { pairs } from './pairs.js';
import { pat } from './pat.js';
import { ring } from './ring.js';
import { tree } from './tree.js';

const allKinds = Object.keys(callKinds) as CallKind[];

/** All algorithms. A new one gets its own file, a line here, and a name in call.ts (`algorithms`), which gives its wire code. */
export const registry: Readonly<Record<Algorithm, AlgorithmTraits | NetworkAlgorithm>> = {
  direct: { kinds: allKinds, mostRanks: Infinity, over: 'segment', defaultUpToBytes: () => 0 },
  nvls: { kinds: ['allReduce', 'allGather', 'reduceScatter'], mostRanks: Infinity, over: 'segment', defaultUpToBytes: () => 0 },
  ring,
  tree,
  pat,
  pairs,
  hierarchical,
  nvlstree: nvlsTree,
  collnet,
  collnetchain: collnetChain,
};

/** True if an algorithm supports a kind of call with this number of ranks. */
export function carriesOut(algorithm: Algorithm, kind: CallKind, nRanks: number): boolean {
  const { kinds, mostRanks } = registry[algorithm];
  return kinds.includes(kind) && nRanks <= mostRanks;
}

/** True if an algorithm works on connections; the others need one segment for all ranks. */
export function isOverConnections(algorithm: Algorithm): boolean {
  return registry[algorithm].over === 'connections';
}

/** @throws InternalError for an algorithm that has no connections */
export function networkAlgorithm(algorithm: Algorithm): NetworkAlgorithm {
  const entry = registry[algorithm];
  if (!('open' in entry)) throw new InternalError('INTERNAL', `${algorithm} has no connections`);
  return entry;
}
