import { type PathType, pathTypeNames } from '../topology/types.js';
import type { NcclAlgorithm, Collective, DataTypeName, OperatorName, Protocol } from './names.js';

/** Reason why a collective cannot use an algorithm with a protocol. */
export type Reason =
  /** There is one rank: nothing has to be exchanged. */
  | { readonly why: 'one-rank' }
  /** NCCL has no such algorithm for this collective. */
  | { readonly why: 'no-such-algorithm'; readonly collective: Collective; readonly algorithm: NcclAlgorithm }
  /** NCCL has the algorithm with protocol Simple only. */
  | { readonly why: 'simple-only'; readonly algorithm: NcclAlgorithm; readonly protocol: Protocol }
  /** A variable leaves it out. */
  | { readonly why: 'asked'; readonly variable: 'NCCL_ALGO' | 'NCCL_PROTO' | 'NCCL_SYM_KERNEL'; readonly value: string }
  /** The graph of the algorithm has no channels, or fewer than it takes. */
  | { readonly why: 'channels'; readonly algorithm: NcclAlgorithm; readonly nChannels: number; readonly fewest: number }
  /** It needs reduction in the network, which is off. */
  | { readonly why: 'no-collnet'; readonly algorithm: NcclAlgorithm }
  /** Heads of the chains are not among the heads that reach the network. */
  | { readonly why: 'collnet-chain-heads' }
  /** CollNet direct is for machines with NVSwitch. */
  | { readonly why: 'no-nvswitch' }
  /** Each rank needs a head of its own on its node, for all-gather and reduce-scatter between nodes. */
  | { readonly why: 'heads'; readonly heads: number; readonly localRanks: number }
  /** CollNet is for nodes of at most `most` ranks. */
  | { readonly why: 'collnet-local-ranks'; readonly localRanks: number; readonly most: number }
  /** The network cannot reduce this. */
  | { readonly why: 'collnet-operator'; readonly operator: OperatorName; readonly dataType: DataTypeName }
  /** NVLink SHARP is not available, or switched off. */
  | { readonly why: 'no-nvls' }
  /** NVLink SHARP with trees joins several nodes. */
  | { readonly why: 'one-node' }
  /** Outside of all-reduce, NVLink SHARP is for nodes of at most `most` ranks. */
  | { readonly why: 'nvls-local-ranks'; readonly localRanks: number; readonly most: number }
  /** Outside of all-reduce, the graph of NVLink SHARP may have at most `most` channels. */
  | { readonly why: 'nvls-channels'; readonly nChannels: number; readonly most: number }
  /** Outside of all-reduce, NVLink SHARP is for one node, in older versions. */
  | { readonly why: 'nvls-nodes'; readonly nNodes: number }
  /** The NVSwitch cannot reduce this. */
  | { readonly why: 'nvls-operator'; readonly operator: OperatorName; readonly dataType: DataTypeName }
  /** NCCL_PAT_ENABLE=0. */
  | { readonly why: 'pat-off' }
  /** PAT is for one rank a node unless NCCL_PAT_ENABLE=1. */
  | { readonly why: 'pat-local-ranks'; readonly nRanks: number; readonly nNodes: number }
  /** PAT on nodes of several ranks needs NVLink SHARP there, since 2.31. */
  | { readonly why: 'pat-no-nvls'; readonly nNodes: number }
  /** PAT on nodes of several ranks needs all of them as heads of NVLink SHARP. */
  | { readonly why: 'pat-heads'; readonly heads: number; readonly fewest: number; readonly most: number }
  | { readonly why: 'pat-old-gpu'; readonly compCap: number }
  | { readonly why: 'pat-operator'; readonly operator: OperatorName }
  /** LL128 needs paths that keep 128 bytes together. */
  | { readonly why: 'll128-path'; readonly between: 'GPUs' | 'GPU and NIC'; readonly type: PathType; readonly farthest: PathType }
  /** LL128 between GPUs of different generations only from Hopper on. */
  | { readonly why: 'll128-mixed-gpus'; readonly minCompCap: number; readonly maxCompCap: number }
  | { readonly why: 'll128-old-gpu'; readonly compCap: number }
  /** Reductions of 8-bit floats need Hopper or later; NCCL refuses the call. */
  | { readonly why: 'float8-old-gpu'; readonly compCap: number };

/** The reason as a sentence. */
export function describeReason(reason: Reason): string {
  switch (reason.why) {
    case 'one-rank':
      return 'There is one rank, so nothing is exchanged.';
    case 'no-such-algorithm':
      return `NCCL has no ${reason.algorithm} for ${reason.collective}.`;
    case 'simple-only':
      return `NCCL has ${reason.algorithm} with protocol Simple only, not with ${reason.protocol}.`;
    case 'asked':
      return `${reason.variable}=${reason.value} leaves it out.`;
    case 'channels': {
      const has = reason.nChannels === 0 ? 'no channel' : reason.nChannels === 1 ? 'one channel' : `${reason.nChannels} channels`;
      return `The graph for ${reason.algorithm} has ${has}${reason.fewest > 1 ? `; it takes ${reason.fewest}` : ''}.`;
    }
    case 'no-collnet':
      return `${reason.algorithm}${reason.algorithm === 'NVLS' ? ' between nodes' : ''} needs a network that reduces (SHARP), which is not there or not switched on (NCCL_COLLNET_ENABLE=1).`;
    case 'collnet-chain-heads':
      return 'Heads of the CollNet chains are not among the ranks that reach the reducing network.';
    case 'no-nvswitch':
      return 'CollNetDirect is used on machines with NVSwitch only.';
    case 'heads':
      return `Between nodes it takes a head for each rank of a node; there are ${reason.heads} heads for up to ${reason.localRanks} ranks.`;
    case 'collnet-local-ranks':
      return `CollNet serves at most ${reason.most} ranks a node; there are ${reason.localRanks}.`;
    case 'collnet-operator':
      return `The network cannot reduce ${reason.dataType} with ${reason.operator}.`;
    case 'no-nvls':
      return 'There is no NVLink SHARP (it takes NVSwitches and GPUs of compute capability 9.0, and NCCL_NVLS_ENABLE not 0).';
    case 'one-node':
      return 'NVLSTree joins several nodes; there is one.';
    case 'nvls-local-ranks':
      return `Outside of AllReduce, NVLink SHARP serves at most ${reason.most} ranks a node; there are ${reason.localRanks}.`;
    case 'nvls-channels':
      return `Outside of AllReduce, the graph of NVLink SHARP may have at most ${reason.most} channels; it has ${reason.nChannels}.`;
    case 'nvls-nodes':
      return `Outside of AllReduce, this version has NVLink SHARP on one node only; there are ${reason.nNodes}.`;
    case 'nvls-operator':
      return `The NVSwitch cannot reduce ${reason.dataType} with ${reason.operator}.`;
    case 'pat-off':
      return 'NCCL_PAT_ENABLE=0 switches PAT off.';
    case 'pat-local-ranks':
      return `PAT is used with one rank a node only; there are ${reason.nRanks} ranks on ${reason.nNodes} nodes (NCCL_PAT_ENABLE=1 would allow it).`;
    case 'pat-no-nvls':
      return reason.nNodes < 2
        ? 'PAT with several ranks a node joins several nodes; there is one.'
        : 'PAT with several ranks a node needs NVLink SHARP within nodes, which is not there.';
    case 'pat-heads': {
      const ranks = reason.fewest === reason.most ? `${reason.most}` : `${reason.fewest} to ${reason.most}`;
      return `PAT with several ranks a node needs each of them as a head of NVLink SHARP; there are ${reason.heads} heads and ${ranks} ranks a node.`;
    }
    case 'pat-old-gpu':
      return `PAT takes GPUs of compute capability 6.0; the oldest has ${capability(reason.compCap)}.`;
    case 'pat-operator':
      return `PAT does not scale, which ${reason.operator} needs.`;
    case 'll128-path':
      return `LL128 needs paths between ${reason.between} of type ${pathTypeNames[reason.farthest]} or nearer; here they are ${pathTypeNames[reason.type]}.`;
    case 'll128-mixed-gpus':
      return `LL128 joins different GPUs from compute capability 9.0 on only; here they go from ${capability(reason.minCompCap)} to ${capability(reason.maxCompCap)}.`;
    case 'll128-old-gpu':
      return `LL128 takes GPUs of compute capability 7.0; the oldest has ${capability(reason.compCap)}.`;
    case 'float8-old-gpu':
      return `NCCL reduces 8-bit floats from compute capability 9.0 on; the oldest GPU has ${capability(reason.compCap)}.`;
  }
}

/** `9.0` for 90. */
function capability(compCap: number): string {
  return (compCap / 10).toFixed(1);
}
