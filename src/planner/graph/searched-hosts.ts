import type { Parameters } from '../parameters.js';
import { fingerprint } from '../topology/fingerprint.js';
import type { LocalSystem } from '../topology/local-systems.js';
import type { HostGraphs } from './graph.js';
import { SearchHost } from './host.js';
import { searchHost, type SearchOptions } from './search-host.js';
import { searchRuleNames } from './search-input.js';

/** Graphs of the hosts searched last, by all that their search reads; the oldest first. */
const searched = new Map<string, HostGraphs>();
let characters = 0;

/** The texts of hosts in memory have no more characters than this: those of some hundred hosts of eight GPUs. */
const MOST_CHARACTERS = 1 << 23;

/**
 * As {@link searchHost}, but searches only once what is equal for the search. Plans of variants of one cluster (another version,
 * another variable, other numbers of hosts) mostly search equal hosts. A host with a listener or a graph file is searched anew.
 *
 * @throws InputError as `searchHost`
 */
export function searchHostOnce(local: LocalSystem, parameters: Parameters, options: SearchOptions = {}): HostGraphs {
  if (options.trace !== undefined || options.graphFile !== undefined) return searchHost(local, parameters, options);
  const key = searchInput(local, parameters, options.collnet === true);
  const known = searched.get(key);
  if (known !== undefined) {
    searched.delete(key);
    searched.set(key, known);
    return known;
  }
  const graphs = searchHost(local, parameters, options);
  searched.set(key, graphs);
  characters += key.length;
  for (const oldest of searched.keys()) {
    if (characters <= MOST_CHARACTERS) break;
    searched.delete(oldest);
    characters -= oldest.length;
  }
  return graphs;
}

/** All that the search of a host reads, as text. */
function searchInput(local: LocalSystem, parameters: Parameters, collnet: boolean): string {
  const { routes, rules } = new SearchHost(local, parameters);
  const { crossNic, mnnvlRailPerHost, mnnvlScatterNets, netDevicesPolicy, scatterStartNet } = parameters;
  const { ranks, inter, maxGBps, totalGBps, nvls } = local;
  return [
    JSON.stringify([ranks, inter, maxGBps, totalGBps, nvls, collnet]),
    JSON.stringify([crossNic, mnnvlRailPerHost, mnnvlScatterNets, netDevicesPolicy, scatterStartNet]),
    JSON.stringify(searchRuleNames.map((name) => rules[name])),
    fingerprint(local.system),
    local.gpuOfNet.join(),
    local.paths.fingerprint(),
    routes.firstHop.join(),
    routes.link.join(),
    routes.hopLoad.join(),
  ].join(' ');
}
