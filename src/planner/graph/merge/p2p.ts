import type { Parameters } from '../../parameters.js';
import { CpuArch } from '../../topology/system.js';
import { mostChannelsInArguments } from './channel-count.js';
import { kindOf, type NodeTable } from './nodes.js';

/** Work for so many peers fits into one batch of a kernel's arguments. */
const peersPerBatch = 8;

/** A connection's buffer holds so many steps. */
const stepsPerBuffer = 8;

/** How much a connection buffers, by protocol, in bytes. */
export interface BufferBytes {
  readonly ll: number;
  readonly ll128: number;
  readonly simple: number;
}

export function bufferSizes(parameters: Parameters): BufferBytes {
  return {
    ll: parameters.llBufferBytes ?? 512 * 1024,
    ll128: parameters.ll128BufferBytes ?? 120 * 640 * 8 * 8,
    simple: parameters.bufferBytes ?? 4 * 1024 * 1024,
  };
}

/** What sizes of send and receive depend on. */
export interface P2pFacts {
  readonly nNodes: number;
  readonly nChannels: number;
  readonly cpuArch: number;
  readonly minCompCap: number;
  readonly allNvLink: boolean;
  /** The fewest channels that any rank gives a peer. */
  readonly channelsPerPeer: number;
  readonly maxPeers: number;
}

/** Channels and chunk of send and receive. */
export interface P2pSizes {
  readonly nChannels: number;
  readonly channelsPerPeer: number;
  readonly chunkBytes: number;
}

export function p2pSizes(facts: P2pFacts, buffers: BufferBytes, parameters: Parameters): P2pSizes {
  // Peers are mapped to channels by bits, so both numbers are powers of two.
  const wanted = Math.max(Math.min(facts.nChannels, parameters.maxP2pChannels), parameters.minP2pChannels);
  const nChannels = Math.min(powerOfTwoFrom(wanted), powerOfTwoUpTo(mostChannelsInArguments(parameters)));
  let channelsPerPeer = powerOfTwoFrom(facts.channelsPerPeer);
  const isAsked = parameters.channelsPerNetPeer !== undefined && parameters.channelsPerNetPeer > 0;
  if (facts.nNodes > 1 && !isAsked) {
    // The network is the bottleneck: rather serve all peers in one round than each by many channels.
    const batches = Math.ceil(facts.maxPeers / peersPerBatch);
    while (channelsPerPeer * batches > nChannels && channelsPerPeer > 1) channelsPerPeer /= 2;
  } else {
    channelsPerPeer = Math.min(nChannels, channelsPerPeer);
  }
  return { nChannels, channelsPerPeer, chunkBytes: Math.min(p2pChunkBytes(facts, parameters), Math.trunc(buffers.simple / stepsPerBuffer)) };
}

function p2pChunkBytes({ nNodes, cpuArch, minCompCap, allNvLink }: P2pFacts, parameters: Parameters): number {
  if (nNodes > 1) {
    // Grace Blackwell hosts have four GPUs, not eight, behind their NICs.
    return (cpuArch === CpuArch.ARM && minCompCap >= 100 ? 2 : 1) * parameters.p2pNetChunkBytes;
  }
  return allNvLink ? parameters.p2pNvlChunkBytes : parameters.p2pPciChunkBytes;
}

function powerOfTwoFrom(value: number): number {
  return 1 << (value <= 1 ? 0 : 32 - Math.clz32(value - 1));
}

function powerOfTwoUpTo(value: number): number {
  return 1 << Math.max(0, 31 - Math.clz32(value));
}

/**
 * How many ranks of a node are scheduled together: all of a single node, else at most `NCCL_P2P_SCHEDULE_GROUP_SIZE`,
 * and a number that divides the ranks of every node.
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

/** With whom a rank exchanges in each round when all exchange with all. */
export interface P2pSchedule {
  readonly send: Int32Array;
  readonly receive: Int32Array;
}

/**
 * The rounds of one rank. Groups meet at distances 0, 1, 3, 6, 10 … (triangular numbers modulo a power of two take each
 * value once), and within two groups each rank meets each. In a round, the rank that one sends to receives from it.
 */
export function p2pScheduleOf(table: NodeTable, groupSize: number, rank: number): P2pSchedule {
  const groups = rankGroups(table, groupSize);
  const nGroups = table.nRanks / groupSize;
  const node = table.rankToNode[rank] ?? 0;
  const localRank = table.rankToLocalRank[rank] ?? 0;
  const own = (groups.firstOfNode[node] ?? 0) + Math.floor(localRank / groupSize);
  const local = localRank % groupSize;

  const send = new Int32Array(table.nRanks);
  const receive = new Int32Array(table.nRanks);
  const distances = powerOfTwoFrom(nGroups);
  let round = 0;
  let distance = 0;
  for (let step = 1; step <= distances; step++) {
    if (distance < nGroups) {
      const to = ((own + distance) % nGroups) * groupSize;
      const from = ((own - distance + nGroups) % nGroups) * groupSize;
      for (let delta = 0; delta < groupSize; delta++) {
        send[round] = groups.ranks[to + ((local + delta) % groupSize)] ?? 0;
        receive[round] = groups.ranks[from + ((local - delta + groupSize) % groupSize)] ?? 0;
        round++;
      }
    }
    distance = (distance + step) & (distances - 1);
  }
  return { send, receive };
}

/** All ranks node by node, and the first group of each node. */
function rankGroups(table: NodeTable, groupSize: number): { readonly ranks: Int32Array; readonly firstOfNode: Int32Array } {
  const ranks = new Int32Array(table.nRanks);
  const firstOfNode = new Int32Array(table.nNodes);
  let next = 0;
  for (let node = 0; node < table.nNodes; node++) {
    firstOfNode[node] = next / groupSize;
    const base = table.rankBase[node] ?? 0;
    for (const rank of kindOf(table, node).ranks) ranks[next++] = base + rank;
  }
  return { ranks, firstOfNode };
}
