import type { Parameters } from '../../parameters.js';
import { CpuArch } from '../../topology/system.js';
import { type Rules, rulesOf } from '../../versions/rules.js';
import { ofRanks } from './agreement.js';
import { mostChannelsInArguments } from './channel-count.js';
import { kindOf, type NodeTable } from './nodes.js';

/** Number of peers whose work fits into one batch of a kernel's arguments. */
const PEERS_PER_BATCH = 8;

/** Steps of a connection's buffer. */
export const STEPS_PER_BUFFER = 8;

/** Buffer of a connection by protocol, in bytes. */
export interface BufferBytes {
  readonly ll: number;
  readonly ll128: number;
  readonly simple: number;
}

export function bufferSizes(parameters: Parameters, cpuArch: number): BufferBytes {
  const isSmall = cpuArch === CpuArch.ARM && rulesOf(parameters).smallBuffersOnArm;
  return {
    ll: parameters.llBufferBytes ?? 512 * 1024,
    ll128: parameters.ll128BufferBytes ?? 120 * 640 * 8 * 8,
    simple: parameters.bufferBytes ?? (isSmall ? 1 : 4) * 1024 * 1024,
  };
}

/** Inputs of the sizes of send and receive. */
interface P2pFacts {
  readonly nNodes: number;
  readonly nChannels: number;
  readonly cpuArch: number;
  readonly minCompCap: number;
  readonly allNvLink: boolean;
  readonly nodes: NodeTable;
  readonly maxPeers: number;
  /** Those of the communicator whose resources it shares. */
  readonly parent?: P2pSizes | undefined;
}

/** Channels and chunk of send and receive. */
export interface P2pSizes {
  readonly nChannels: number;
  readonly channelsPerPeer: number;
  readonly chunkBytes: number;
}

/** Rules of the version by which a message between two ranks is divided. */
export interface P2pSplit {
  readonly ll: Rules['p2pLl'];
  readonly parts: Rules['p2pParts'];
}

export function p2pSplit(parameters: Parameters): P2pSplit {
  const { p2pLl, p2pParts } = rulesOf(parameters);
  return { ll: p2pLl, parts: p2pParts };
}

export function p2pSizes(facts: P2pFacts, buffers: BufferBytes, parameters: Parameters): P2pSizes {
  // Peers are mapped to channels by bits, so both numbers are powers of two.
  const { parent } = facts;
  const own = Math.max(Math.min(facts.nChannels, parameters.maxP2pChannels), parameters.minP2pChannels);
  const wanted = Math.min(own, parent?.nChannels ?? Infinity);
  const nChannels = Math.min(powerOfTwoFrom(wanted), powerOfTwoUpTo(mostChannelsInArguments(parameters)));
  const rules = rulesOf(parameters);
  const byBandwidth = rules.p2pNetChannels === 'by bandwidth';
  let channelsPerPeer = powerOfTwoFrom(
    byBandwidth ? Math.min(...ofRanks(facts.nodes.kinds, 'p2pChannelsPerPeer')) : ownChannelsPerPeer(facts, wanted, parameters),
  );
  const isAsked = parameters.channelsPerNetPeer !== undefined && parameters.channelsPerNetPeer > 0;
  if (facts.nNodes > 1 && !isAsked && byBandwidth) {
    // The network is the bottleneck, so all peers in one round are better than many channels for each.
    const batches = Math.ceil(facts.maxPeers / PEERS_PER_BATCH);
    while (channelsPerPeer * batches > nChannels && channelsPerPeer > 1) channelsPerPeer /= 2;
  } else {
    channelsPerPeer = Math.min(nChannels, channelsPerPeer);
  }
  const asked = p2pChunkBytes(facts, parameters);
  const chunkBytes = rules.p2pChunkInBuffer ? Math.min(asked, Math.trunc(buffers.simple / STEPS_PER_BUFFER)) : asked;
  return { nChannels, channelsPerPeer, chunkBytes: Math.min(chunkBytes, parent?.chunkBytes ?? Infinity) };
}

/** The rule of versions before 2.29: each node for itself, fewer with many ranks. */
function ownChannelsPerPeer({ nodes }: P2pFacts, nChannels: number, parameters: Parameters): number {
  const { byRank } = kindOf(nodes, 0);
  const inside = Math.min(nChannels, ...byRank.map((rank) => rank.p2pChannelsPerPeer));
  if (byRank.length === nodes.nRanks) return inside;
  return Math.min(inside, ...byRank.map(({ netCount }) => channelsPerNetPeer(netCount, nodes.nRanks, nChannels, parameters)));
}

function channelsPerNetPeer(netCount: number, nRanks: number, nChannels: number, parameters: Parameters): number {
  const asked = parameters.channelsPerNetPeer;
  if (asked !== undefined && asked !== -1) return asked;
  let most = 2;
  if (rulesOf(parameters).p2pNetChannels === 'fixed') return most;
  while (most * nRanks > nChannels * 4 && most > 1) most = Math.floor(most / 2);
  return Math.max(netCount, most);
}

function p2pChunkBytes({ nNodes, cpuArch, minCompCap, allNvLink }: P2pFacts, parameters: Parameters): number {
  if (nNodes > 1) {
    // Grace Blackwell hosts have four GPUs, not eight, behind their NICs.
    return (
      (cpuArch === CpuArch.ARM && minCompCap >= 100 && rulesOf(parameters).p2pChunkOfGraceBlackwell ? 2 : 1) *
      parameters.p2pNetChunkBytes
    );
  }
  return allNvLink ? parameters.p2pNvlChunkBytes : parameters.p2pPciChunkBytes;
}

/** The least power of two that is not below `value`. */
export function powerOfTwoFrom(value: number): number {
  return 1 << (value <= 1 ? 0 : 32 - Math.clz32(value - 1));
}

function powerOfTwoUpTo(value: number): number {
  return 1 << Math.max(0, 31 - Math.clz32(value));
}

/**
 * Number of ranks of a node that are scheduled together: all of a single node, otherwise at most `NCCL_P2P_SCHEDULE_GROUP_SIZE`,
 * and a divisor of the ranks of every node.
 */
export function p2pGroupSize(table: NodeTable, maxLocalRanks: number, parameters: Parameters): number {
  let size = table.nNodes > 1 ? parameters.p2pScheduleGroupSize : maxLocalRanks;
  for (let node = 0; node < table.nNodes; node++) {
    const localRanks = kindOf(table, node).ranks.length;
    if (localRanks % size !== 0) size = greatestCommonDivisor(size, localRanks);
  }
  return size;
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
