import type { Parameters } from '../parameters.js';
import type { LocalSystem } from '../topology/local-systems.js';
import type { XmlElement } from '../topology/xml/tree.js';
import type { ChannelGraph, HostGraphs } from './graph.js';
import { givenGraph } from './graph-xml.js';
import { SearchHost } from './host.js';
import {
  collnetChainRequest,
  collnetDirectRequest,
  type GraphRequest,
  nvlsRequest,
  ringRequest,
  treeRequest,
} from './request.js';
import { searchGraph } from './search.js';
import type { SearchListener } from './trace.js';

/** Options of the search of a host. */
export interface SearchOptions {
  /** True if the network can reduce and is asked to (SHARP, `NCCL_COLLNET_ENABLE=1`). */
  readonly collnet?: boolean;
  /** The `<graphs>` of a file (`NCCL_GRAPH_FILE`): graphs in it are not searched. */
  readonly graphFile?: XmlElement;
  /** Called with each decision. */
  readonly trace?: SearchListener;
}

/**
 * Searches the graphs of a host in NCCL's order: rings first, because they determine the number of channels of trees.
 *
 * @throws InputError where NCCL fails, and for a graph file that does not fit the host
 */
export function searchHost(local: LocalSystem, parameters: Parameters, options: SearchOptions = {}): HostGraphs {
  const { collnet = false, graphFile, trace } = options;
  const host = new SearchHost(local, parameters);
  const find = (request: GraphRequest): ChannelGraph => {
    const given = graphFile === undefined ? undefined : givenGraph(graphFile, request.id, local, parameters.crossNic);
    return searchGraph(host, request, given, trace);
  };
  const { rules } = host;
  const ring = find(ringRequest(rules));
  return {
    ring,
    tree: find(treeRequest(ring.nChannels)),
    collnetChain: collnet ? find(collnetChainRequest(ring.nChannels)) : undefined,
    collnetDirect: collnet && rules.collnetHeadsSearched ? find(collnetDirectRequest(rules)) : undefined,
    nvls: local.nvls ? find(nvlsRequest(rules)) : undefined,
  };
}
