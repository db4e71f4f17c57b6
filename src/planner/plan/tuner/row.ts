import type { NcclAlgorithm, Collective, Protocol } from '../../tuning/names.js';

/**
 * A row of the table of NCCL's example tuner plugin (`plugins/tuner/example`), one for each line:
 *
 *     collective,minbytes,maxbytes,algorithm,protocol,channels,nNodes,nRanks[,numPipeOps[,regBuff]]
 *     allreduce,0,65535,tree,ll,0,2,16
 *
 * The table is the same for each version of the plugin's interface: since v6 a plugin may set chunks, too, for which it has no
 * field, and v7 adds figures of Rubin to NCCL's constants. The first row that matches a call and that the communicator supports
 * decides. A call without a row gets NCCL's choice, but ONE channel, because the plugin requests one by default.
 */
export interface TunerRow {
  readonly collective: Collective;
  readonly minBytes: number;
  /** The last size of the row; `Infinity` without an upper bound. */
  readonly maxBytes: number;
  readonly algorithm: NcclAlgorithm;
  readonly protocol: Protocol;
  /** Maximum number of channels; 0 leaves it to NCCL, -1 leaves the plugin's one. */
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

/** Longest line that the plugin reads; it treats the rest of a longer one as another line. */
export const MOST_CHARACTERS = 255;
/** Fields that a row needs. */
export const LEAST_FIELDS = 8;
/** Fields that a row may have; more are not read. */
export const MOST_FIELDS = 10;
/** Last release whose example plugin is written in C; the later one in C++ reads faulty rows in another way. */
export const LAST_C_PLUGIN = '2.30.7';
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
