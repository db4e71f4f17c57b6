import { InternalError } from '../../../errors.js';
import type { NetworkAlgorithm } from './algorithm.js';
import type { Algorithm } from '../call.js';
import { collnet, collnetChain } from './collnet.js';
import { hierarchical } from './hierarchical.js';
import { nvlsTree } from './nvls-tree.js';
import { pairs } from './pairs.js';
import { pat } from './pat.js';
import { ring } from './ring.js';
import { tree } from './tree.js';

/** The algorithms over connections, apart from their traits: ranks that share memory never load them. */
export const registry: Readonly<Partial<Record<Algorithm, NetworkAlgorithm>>> = {
  ring,
  tree,
  pat,
  pairs,
  hierarchical,
  nvlstree: nvlsTree,
  collnet,
  collnetchain: collnetChain,
};

/** @throws InternalError for an algorithm that has no connections */
export function networkAlgorithm(algorithm: Algorithm): NetworkAlgorithm {
  const entry = registry[algorithm];
  if (entry === undefined) throw new InternalError('INTERNAL', `${algorithm} has no connections`);
  return entry;
}
