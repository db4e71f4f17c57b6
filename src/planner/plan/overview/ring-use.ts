import type { NodeContribution } from '../../graph/merge/contribution.js';
import type { LocalSystem } from '../../topology/local-systems.js';
import type { Plan } from '../plan.js';
import { type LinkLoad, ringLoads } from './fullest-link.js';
import { carriedGBps } from '../../topology/system.js';

/** The rings of a plan on one kind of node. */
export interface RingUse {
  /** Channels of the node's search whose rings the plan uses, ascending. */
  readonly rings: readonly number[];
  /** Bandwidth of these rings together, GB/s, at the speed that all nodes agree on; no more than the NICs carry. */
  readonly ringGBps: number;
  /** Bandwidth of the rings that the search of this node found, GB/s. */
  readonly searchedGBps: number;
  /** Reason why the plan uses less than that. */
  readonly heldBackBy: 'trees' | 'channels' | 'other nodes' | undefined;
  /** Loads of the node's links by these rings, the fullest first. */
  readonly loads: readonly LinkLoad[];
}

/** The rings that a plan uses on a node: fewer than its search found where trees, a variable or other nodes allow fewer. */
export function ringUse({ graphs, nodes, ringOfChannel }: Plan, kind: NodeContribution, local: LocalSystem): RingUse {
  const { ring: agreed } = graphs;
  const { ring, tree } = kind.graphs;
  const isOut = nodes.nNodes > 1;
  const nicsGBps = isOut ? carriedGBps(local.system.nets) : Infinity;
  const rings = [...new Set(ringOfChannel)].sort((a, b) => a - b);
  const carried = (count: number, speed: { readonly bwIntra: number; readonly bwInter: number }) =>
    Math.min(count * (isOut ? speed.bwInter : speed.bwIntra), nicsGBps);
  const ringGBps = carried(rings.length, agreed);
  const searchedGBps = carried(ring.nChannels, ring);
  return {
    rings,
    ringGBps,
    searchedGBps,
    heldBackBy:
      ringGBps >= searchedGBps
        ? undefined
        : rings.length < agreed.nChannels
          ? 'channels'
          : tree.nChannels < ring.nChannels && tree.nChannels === agreed.nChannels
            ? 'trees'
            : 'other nodes',
    loads: ringLoads(local, ring, rings, agreed),
  };
}

/** The rest of a sentence on the bandwidth of rings: why the plan has less than the search found. */
export function heldBackText({ rings, heldBackBy }: Pick<RingUse, 'rings' | 'heldBackBy'>): string {
  const few = rings.length === 1 ? 'one channel' : `${rings.length} channels`;
  switch (heldBackBy) {
    case 'trees':
      return `trees have only ${few}, and rings no more than trees`;
    case 'channels':
      return `the plan has only ${few}`;
    case 'other nodes':
      return 'all nodes keep to the weakest';
    case undefined:
      return '';
  }
}
