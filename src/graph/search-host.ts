import type { Parameters } from '../parameters.js';
import type { LocalSystem } from '../topology/local-systems.js';
import type { HostGraphs } from './graph.js';
import { SearchHost } from './host.js';
import { collnetChainRequest, collnetDirectRequest, nvlsRequest, ringRequest, treeRequest } from './request.js';
import { searchGraph } from './search.js';
import type { SearchListener } from './trace.js';

export interface SearchOptions {
  /** Whether the network can reduce and is asked to (SHARP, `NCCL_COLLNET_ENABLE=1`). */
  readonly collnet?: boolean;
  /** Hears of each decision. */
  readonly trace?: SearchListener;
}

/**
 * Searches the graphs of a host, in the order in which NCCL does: rings first, since they tell how many channels trees
 * have to have.
 *
 * @throws InputError where NCCL fails
 */
export function searchHost(local: LocalSystem, parameters: Parameters, { collnet = false, trace }: SearchOptions = {}): HostGraphs {
  const host = new SearchHost(local, parameters);
  const ring = searchGraph(host, ringRequest, trace);
  return {
    ring,
    tree: searchGraph(host, treeRequest(ring.nChannels), trace),
    collnetChain: collnet ? searchGraph(host, collnetChainRequest(ring.nChannels), trace) : undefined,
    collnetDirect: collnet ? searchGraph(host, collnetDirectRequest, trace) : undefined,
    nvls: local.nvls ? searchGraph(host, nvlsRequest, trace) : undefined,
  };
}
