import type { NcclAlgorithm, Collective, Protocol } from '../../tuning/names.js';

/**
 * The table that the example tuner plugin of NCCL reads (`plugins/tuner/example`), a row a line:
 *
 *     collective,minbytes,maxbytes,algorithm,protocol,channels,nNodes,nRanks[,numPipeOps[,regBuff]]
 *     allreduce,0,65535,tree,ll,0,2,16
 *
 * The first row that fits a call and that the communicator can do decides. A call that none fits is done NCCL's way, but on
 * ONE channel: the plugin asks for one where it says nothing, and NCCL obeys.
 */
export interface TunerRow {
  readonly collective: Collective;
  readonly minBytes: number;
  /** The last size that the row is for; `Infinity` for all that there are. */
  readonly maxBytes: number;
  readonly algorithm: NcclAlgorithm;
  readonly protocol: Protocol;
  /** The most channels; 0 leaves it to NCCL, -1 leaves the plugin's one. */
  readonly nChannels: number;
  /** -1 for all, as with the next ones. */
  readonly nNodes: number;
  readonly nRanks: number;
  /** Operations of a group that share a channel. */
  readonly nOperations: number;
  /** 1: only for buffers that are registered with the network or NVLink SHARP; 0: only for others. */
  readonly registered: number;
}

/** Words of the table. */
export const collectiveWords: Readonly<Record<Collective, string>> = {
  Broadcast: 'broadcast',
  Reduce: 'reduce',
  AllGather: 'allgather',
  ReduceScatter: 'reducescatter',
  AllReduce: 'allreduce',
};
export const algorithmWords: Readonly<Record<NcclAlgorithm, string>> = {
  Tree: 'tree',
  Ring: 'ring',
  CollNetDirect: 'collnet_direct',
  CollNetChain: 'collnet_chain',
  NVLS: 'nvls',
  NVLSTree: 'nvls_tree',
  PAT: 'pat',
};
export const protocolWords: Readonly<Record<Protocol, string>> = { LL: 'll', LL128: 'll128', Simple: 'simple' };

/** The plugin's reader takes lines of so many characters; the rest of a longer one is a line of its own to it. */
export const MOST_CHARACTERS = 255;
/** Fields that a row needs. */
export const LEAST_FIELDS = 8;
/** Fields that a row may have; more are not read. */
export const MOST_FIELDS = 10;
/** `size_t`'s largest. */
const LAST_SIZE = '18446744073709551615';

/** A row as the plugin reads it. */
export function rowLine(row: TunerRow): string {
  const { collective, minBytes, maxBytes, algorithm, protocol, nChannels, nNodes, nRanks, nOperations, registered } = row;
  const optional = registered !== -1 ? [nOperations, registered] : nOperations === -1 ? [] : [nOperations];
  return [
    collectiveWords[collective],
    minBytes,
    maxBytes < Number(LAST_SIZE) ? maxBytes : LAST_SIZE,
    algorithmWords[algorithm],
    protocolWords[protocol],
    nChannels,
    nNodes,
    nRanks,
    ...optional,
  ].join(',');
}
