import type { SearchRules } from './search-input.js';
import { GraphId, Pattern } from './graph.js';

/** Request of one search. */
export interface GraphRequest {
  readonly id: GraphId;
  readonly pattern: Pattern;
  /** Only NICs that can reduce. */
  readonly collNet: boolean;
  /** Fewer channels than that are no solution. */
  readonly minChannels: number;
  readonly maxChannels: number;
}

/** Half of all channels: copies of each can be made later. */
export function ringRequest({ mostChannels }: SearchRules): GraphRequest {
  return { id: GraphId.RING, pattern: Pattern.RING, collNet: false, minChannels: 1, maxChannels: mostChannels / 2 };
}

/** As many trees as there are rings: a channel is one of each. */
export function treeRequest(rings: number): GraphRequest {
  return { id: GraphId.TREE, pattern: Pattern.BALANCED_TREE, collNet: false, minChannels: rings, maxChannels: rings };
}

export function collnetChainRequest(rings: number): GraphRequest {
  return { id: GraphId.COLLNET_CHAIN, pattern: Pattern.TREE, collNet: true, minChannels: rings, maxChannels: rings };
}

export function collnetDirectRequest({ mostChannels }: SearchRules): GraphRequest {
  return {
    id: GraphId.COLLNET_DIRECT,
    pattern: Pattern.COLLNET_DIRECT,
    collNet: true,
    minChannels: 1,
    maxChannels: mostChannels,
  };
}

export function nvlsRequest({ mostChannels }: SearchRules): GraphRequest {
  return { id: GraphId.NVLS, pattern: Pattern.NVLS, collNet: false, minChannels: 1, maxChannels: mostChannels };
}
