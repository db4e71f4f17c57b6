import type { Parameters } from '../parameters.js';
import { localityRules } from '../topology/paths/locality.js';
import type { RuleName, Rules } from '../versions/rules.js';

/** The rules that the search of a host reads; its types let it read no others, so hosts that agree in these have equal graphs. */
export const searchRuleNames = [
  ...localityRules,
  'alikeThroughAmd',
  'balancedTreesFromFar',
  'blackwellSpeedsBetween',
  'blackwellSpeedsWithin',
  'byNumberWithSwitches',
  'c2cLinks',
  'collnetHeadsSearched',
  'crossNicOfAllGraphs',
  'crossingBonus',
  'fasterChannels',
  'firstGpus',
  'hopperSpeedsBetween',
  'hopperSpeedsWithin',
  'linksBackByType',
  'loneGpuIsLimited',
  'mostDirectHeads',
  'mostNicsOfPolicy',
  'mostNvlsHeads',
  'nicsInTurn',
  'nvlsBandwidthCounts',
  'nvlsHeadNics',
  'pairedPatterns',
  'refusesUnconnected',
  'replayWhereAlike',
  'simpleOrderNics',
  'stepsOfSearch',
  'switchNeighbours',
  'twoRingsForIslands',
  'typesOfMachine',
] as const satisfies readonly RuleName[];

/** Values of the rules that the search reads. */
export type SearchRules = Pick<Rules, (typeof searchRuleNames)[number]>;

/** Settings that the search reads. Of the version it reads {@link SearchRules}. */
export type SearchParameters = Pick<
  Parameters,
  'crossNic' | 'mnnvlRailPerHost' | 'mnnvlScatterNets' | 'netDevicesPolicy' | 'scatterStartNet' | 'ncclVersion'
>;
