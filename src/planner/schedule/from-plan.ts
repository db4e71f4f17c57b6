import { doubleTree } from '../graph/merge/double-tree.js';
import { p2pSchedule, ranksOfNode, treeLinks } from '../graph/merge/links.js';
import type { Merged } from '../graph/merge/merge.js';
import { collnetDirectOf } from '../graph/merge/collnet.js';
import { STEPS_PER_BUFFER } from '../graph/merge/p2p.js';
import { nvlsHeadRanks } from '../graph/merge/nvls.js';
import type { NcclAlgorithm } from '../tuning/names.js';
import { collnetChainSchedule, collnetDirectSchedule } from './collnet.js';
import { nvlsSchedule } from './nvls.js';
import { type PairMessage, pairsSchedule } from './pairs.js';
import { patSchedule } from './pat.js';
import { ncclRingCut, ringSchedule } from './ring.js';
import type { Schedule, ScheduledCall } from './schedule.js';
import { treeSchedule } from './tree.js';

/** The way of a collective, as far as its schedule depends on it; `Choice` of tuning/ is one. */
export interface ScheduledWay {
  readonly algorithm: NcclAlgorithm;
  readonly nChannels: number;
  readonly chunkBytes: number;
}

/**
 * The schedule of a collective on the channels of a plan.
 *
 * @throws RangeError for an algorithm without channels in the plan, or that does not support the collective
 */
export function collectiveSchedule(merged: Merged, call: ScheduledCall, way: ScheduledWay): Schedule {
  const { nRanks, nNodes } = merged.nodes;
  const { chunkBytes, nChannels } = way;
  const channels = Array.from({ length: nChannels }, (_, channel) => channel);
  const nodes = Array.from({ length: nNodes }, (_, node) => node);
  switch (way.algorithm) {
    case 'Ring': {
      const ringOf = (channel: number) => (merged.ringOfChannel[channel] ?? 0) * nRanks;
      return ringSchedule(call, {
        rings: channels.map((channel) => merged.rings.order.subarray(ringOf(channel), ringOf(channel) + nRanks)),
        cut: ncclRingCut(chunkBytes),
      });
    }
    case 'Tree': {
      const trees = channels.map((channel) => ({
        up: (rank: number) => treeLinks(merged, channel, rank).up,
        down: (rank: number) => treeLinks(merged, channel, rank).down,
      }));
      return treeSchedule(call, { nRanks, trees, chunkBytes });
    }
    case 'PAT':
      return patSchedule(call, nRanks, nChannels, chunkBytes);
    case 'NVLS':
    case 'NVLSTree': {
      const { nvls } = merged;
      if (nvls === undefined) throw new RangeError('the plan has no channels for NVLink SHARP');
      const heads = Array.from({ length: nvls.nHeads }, (_, head) => nvlsHeadRanks(merged.nodes, nvls, head, nNodes));
      return nvlsSchedule(call, {
        nRanks,
        nChannels,
        chunkBytes,
        nodes: nodes.map((node) => ranksOfNode(merged.nodes, node)),
        heads: nodes.map((node) => heads.map((ranks) => ranks[node] ?? 0)),
        tree: way.algorithm === 'NVLS' ? undefined : (channel, node) => doubleTree(nNodes, node)[channel % 2 === 0 ? 0 : 1],
      });
    }
    case 'CollNetChain': {
      const { collnet } = merged;
      if (collnet === undefined) throw new RangeError('the plan has no network that reduces');
      const graphChannels = collnet.chainUp.length / nRanks;
      const chains = channels.map((channel) =>
        nodes.map((node) => {
          const first = (channel % graphChannels) * nRanks;
          const chain: number[] = [];
          for (
            let rank = ranksOfNode(merged.nodes, node).find((local) => collnet.chainUp[first + local] === nRanks) ?? -1;
            rank >= 0;
            rank = collnet.chainDown[first + rank] ?? -1
          )
            chain.push(rank);
          return chain;
        }),
      );
      return collnetChainSchedule(call, { nRanks, chains, chunkBytes });
    }
    case 'CollNetDirect': {
      const { collnet } = merged;
      if (collnet === undefined) throw new RangeError('the plan has no network that reduces');
      return collnetDirectSchedule(call, {
        nRanks,
        nChannels,
        chunkBytes,
        nodes: nodes.map((node) => {
          const ranks = ranksOfNode(merged.nodes, node);
          return { ranks, heads: [...collnetDirectOf(merged.nodes, collnet, ranks[0] ?? 0).heads].sort((a, b) => a - b) };
        }),
      });
    }
  }
}

/** Largest message that uses LL, by channel (`NCCL_P2P_LL_THRESHOLD`). */
const LL_THRESHOLD_BYTES = 16_384;

/** NCCL's way to send a message between two ranks. */
export interface PairsWay {
  readonly protocol: 'LL' | 'Simple';
  readonly nChannels: number;
  /** The channels of one message. */
  readonly channelsPerMessage: number;
  readonly chunkBytes: number;
}

/** NCCL's decision for messages of the same size between all ranks of a call. */
export function pairsWay(merged: Merged, { collective, bytes }: ScheduledCall): PairsWay {
  return messageWay(merged, collective === 'SendRecv' ? bytes : bytes / merged.nodes.nRanks);
}

/** NCCL's decision for one message. @param protocol in place of that of the message's size */
function messageWay(
  { nodes: { nRanks, nNodes }, p2p, buffers }: Merged,
  messageBytes: number,
  protocol?: PairsWay['protocol'],
): PairsWay {
  const isNet = nNodes > 1;
  const isLarge = p2p.split.parts === 'large between nodes';
  const most = p2p.channelsPerPeer;
  let fewest = most;
  // All channels, with one operation each.
  while ((isLarge || !isNet) && fewest * nRanks > p2p.nChannels && fewest > 1) fewest /= 2;
  const channelsFor = (stepBytes: number) => {
    const [leastPart, mostPart] = isNet ? [stepBytes / (isLarge ? 2 : 8), stepBytes] : [stepBytes / 8, stepBytes * 32];
    let count = Math.min(fewest, Math.max(1, Math.ceil(messageBytes / leastPart)));
    while (Math.max(leastPart, messageBytes / count) > mostPart && count <= most / 2) count *= 2;
    return count;
  };
  const isByPeer = p2p.split.ll === 'by peer';
  protocol ??= messageBytes <= (isByPeer ? most : channelsFor(p2p.chunkBytes)) * LL_THRESHOLD_BYTES ? 'LL' : 'Simple';
  const stepBytes = protocol === 'LL' ? buffers.ll / STEPS_PER_BUFFER : p2p.chunkBytes;
  // The network gets small messages in smaller chunks, so that it can begin earlier.
  const pieces = !isNet ? 1 : protocol === 'Simple' && messageBytes < stepBytes ? 4 : messageBytes < 8 * stepBytes ? 2 : 1;
  return {
    protocol,
    nChannels: p2p.nChannels,
    channelsPerMessage: channelsFor(isByPeer ? stepBytes : p2p.chunkBytes),
    // With LL half of what a slot holds are flags.
    chunkBytes: stepBytes / pieces / (protocol === 'LL' ? 2 : 1),
  };
}

/**
 * The schedule of messages between pairs of ranks.
 *
 * @param ranks whose part of the schedule is wanted; all by default
 */
export function messagesSchedule(
  merged: Merged,
  call: ScheduledCall,
  way: PairsWay,
  ranks?: readonly number[],
  channels?: ReadonlySet<number>,
): Schedule {
  return pairsSchedule(call, {
    ...roundsOfPlan(merged),
    ...(ranks === undefined ? {} : { ranks }),
    ...(channels === undefined ? {} : { channels }),
    channelsFor: () => way.channelsPerMessage,
    chunkBytesFor: () => way.chunkBytes,
  });
}

/** Messages of different sizes that one kernel of each rank carries. */
export interface Exchange {
  /** The way of the largest one. NCCL chooses for each message; here all have its protocol. */
  readonly way: PairsWay;
  readonly largestBytes: number;
  /** The most ranks that one rank sends to or receives from, besides itself. */
  readonly peers: number;
  /**
   * The schedule of the messages.
   *
   * @param share of its bytes that each message has, 0 to 1: it is cut as if it were whole
   */
  readonly schedule: (share: number) => Schedule;
}

/**
 * NCCL's way for any messages between ranks: sends and receives of a group, or an all-to-all with parts of different sizes.
 * Messages between the same two ranks are put together.
 *
 * @throws RangeError for a rank that the plan lacks
 */
export function exchangeOf(merged: Merged, messages: readonly PairMessage[]): Exchange {
  const { nRanks } = merged.nodes;
  const bytesOf = new Map<number, number>();
  for (const { from, to, bytes } of messages) {
    if (!(from >= 0 && from < nRanks && to >= 0 && to < nRanks))
      throw new RangeError(`a message from rank ${from} to rank ${to} of ${nRanks} ranks`);
    if (bytes > 0) bytesOf.set(from * nRanks + to, (bytesOf.get(from * nRanks + to) ?? 0) + bytes);
  }
  const largestBytes = [...bytesOf.values()].reduce((most, bytes) => Math.max(most, bytes), 0);
  const way = messageWay(merged, largestBytes);
  const ways = new Map([...bytesOf].map(([key, bytes]) => [key, messageWay(merged, bytes, way.protocol)]));
  const wayOf = (from: number, to: number) => ways.get(from * nRanks + to) ?? way;
  const pairs = [...bytesOf.keys()].map((key): readonly [number, number] => [Math.floor(key / nRanks), key % nRanks]);
  const counts = new Int32Array(2 * nRanks);
  for (const [from, to] of pairs) if (from !== to) for (const end of [from, nRanks + to]) counts[end] = (counts[end] ?? 0) + 1;
  const ranks = [...new Set(pairs.flat())];
  return {
    way,
    largestBytes,
    peers: counts.reduce((most, count) => Math.max(most, count), 0),
    schedule: (share) =>
      pairsSchedule(
        { collective: 'AllToAll', bytes: largestBytes * nRanks, root: 0 },
        {
          ...roundsOfPlan(merged),
          ranks: ranks.sort((a, b) => a - b),
          channelsFor: (_, from, to) => wayOf(from, to).channelsPerMessage,
          chunkBytesFor: (from, to) => wayOf(from, to).chunkBytes,
          messageOf: (from, to) => {
            const bytes = bytesOf.get(from * nRanks + to);
            return bytes === undefined ? undefined : { input: 0, output: 0, bytes: Math.max(1, Math.round(bytes * share)) };
          },
        },
      ),
  };
}

/** Rounds of peers and their channels, which all messages of a plan have in common. */
function roundsOfPlan(
  merged: Merged,
): Pick<Parameters<typeof pairsSchedule>[1], 'nRanks' | 'rounds' | 'nChannels' | 'channelOfRound'> {
  const { nRanks, nNodes } = merged.nodes;
  const { scheduleGroupSize: groupSize, nChannels } = merged.p2p;
  const perBatch = 8;
  return {
    nRanks,
    nChannels,
    rounds: (rank) => p2pSchedule(merged, rank),
    channelOfRound: (round) => {
      if (nNodes === 1) return round;
      const batchesOfGroup = Math.ceil(groupSize / perBatch);
      return Math.floor(round / groupSize) * batchesOfGroup + Math.floor((round % groupSize) / perBatch);
    },
  };
}
