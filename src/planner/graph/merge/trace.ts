import { counted } from '../../../counted.js';
import type { GraphHeader, GraphName } from '../graph.js';

/** Reason for a change of the number of channels. */
export type ChannelStep =
  /** Each channel of the graphs becomes two: both halves of the double binary tree. */
  | 'doubled'
  /** Half as many again, because the network reduces slower than GPUs exchange within a host. */
  | 'collnet'
  /** Twice as many, because Hopper and later need four channels to fill a fast link. */
  | 'hopper'
  /** Twice as many, because GPUs put together what the network received. */
  | 'unpack'
  | 'maximum'
  /** No more than the communicator whose resources are shared has. */
  | 'parent'
  /** As many as NVLink SHARP has, in older versions. */
  | 'nvls'
  | 'minimum';

/** A decision of the merge. */
export type MergeEvent =
  /** One host counts as several nodes, because some of its ranks reach each other only over the network. */
  | { readonly kind: 'split-host'; readonly host: number; readonly nodes: readonly (readonly number[])[] }
  /** Nodes differ in a graph; all take the worst. `byKind` has one header for each kind of node. */
  | { readonly kind: 'aligned'; readonly graph: GraphName; readonly header: GraphHeader; readonly byKind: readonly GraphHeader[] }
  | { readonly kind: 'mixed-cpus'; readonly what: 'architecture' | 'vendor' }
  | {
      readonly kind: 'no-collnet';
      readonly because: 'no-channel' | 'few-nodes' | 'large-node';
      readonly nNodes: number;
      readonly threshold: number;
    }
  /** Some nodes have NVLink SHARP, others no channel for it. */
  | { readonly kind: 'no-nvls' }
  /** Rings of these many nodes change places in pairs, so that traffic stays on its rail. */
  | { readonly kind: 'rails-swapped'; readonly nodes: number }
  | { readonly kind: 'channels'; readonly step: ChannelStep; readonly before: number; readonly after: number };

/** Called with each decision as it is made. */
export type MergeListener = (event: MergeEvent) => void;

/** The event as a sentence. */
export function describeMergeEvent(event: MergeEvent): string {
  switch (event.kind) {
    case 'split-host':
      return `Host ${event.host} counts as ${event.nodes.length} nodes, because ranks ${event.nodes.map((ranks) => ranks.join(' ')).join(' | ')} reach each other only over the network.`;
    case 'aligned': {
      const { nChannels, bwIntra, bwInter } = event.header;
      return `Nodes differ in their ${event.graph} graphs; all use what every one has: ${nChannels} channels of ${bwIntra}/${bwInter} GB/s within and between hosts.`;
    }
    case 'mixed-cpus':
      return `CPUs of different ${event.what === 'architecture' ? 'architectures' : 'vendors'}: the tuning model takes them as mixed.`;
    case 'no-collnet':
      return `No reduction in the network: ${noCollnetReason(event)}.`;
    case 'no-nvls':
      return 'No NVLink SHARP: some node has no channel for it.';
    case 'rails-swapped':
      return `On ${counted(event.nodes, 'node at an odd place', 'nodes at odd places')} each pair of rings changes places, so that a ring that leaves by one rail enters by the same.`;
    case 'channels':
      return `${event.before} channels become ${event.after}: ${stepReasons[event.step]}.`;
  }
}

function noCollnetReason({ because, nNodes, threshold }: Extract<MergeEvent, { readonly kind: 'no-collnet' }>): string {
  switch (because) {
    case 'few-nodes':
      return `${nNodes} nodes are fewer than NCCL_COLLNET_NODE_THRESHOLD, ${threshold}`;
    case 'large-node':
      return 'a node has more than eight ranks, which this version does not serve';
    case 'no-channel':
      return 'some node has no channel for it';
  }
}

const stepReasons: Readonly<Record<ChannelStep, string>> = {
  doubled: 'each is used twice, once for each half of the double binary tree',
  collnet: 'GPUs exchange faster within a host than the network reduces',
  hopper: 'from compute capability 9.0 on it takes more channels to fill fast links between several hosts',
  unpack: 'GPUs put together what GPUDirect-TCPX received',
  parent: 'the communicator that it was split from has no more',
  nvls: 'NVLink SHARP has as many',
  maximum: 'the most that NCCL_MAX_NCHANNELS, NCCL_MAX_CTAS or NCCL_WORK_ARGS_BYTES allow',
  minimum: 'NCCL_MIN_NCHANNELS or NCCL_MIN_CTAS asks for more, so the first are copied',
};
