import { doubleTree } from '../graph/merge/double-tree.js';
import { p2pSchedule, ranksOfNode, treeLinks } from '../graph/merge/links.js';
import type { Merged } from '../graph/merge/merge.js';
import { collnetDirectOf } from '../graph/merge/collnet.js';
import { STEPS_PER_BUFFER } from '../graph/merge/p2p.js';
import { nvlsHeadRanks } from '../graph/merge/nvls.js';
import type { NcclAlgorithm } from '../tuning/names.js';
import { collnetChainSchedule, collnetDirectSchedule } from './collnet.js';
import { nvlsSchedule } from './nvls.js';
import { pairsSchedule } from './pairs.js';
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
export function pairsWay({ nodes: { nRanks, nNodes }, p2p, buffers }: Merged, { collective, bytes }: ScheduledCall): PairsWay {
  const messageBytes = collective === 'SendRecv' ? bytes : bytes / nRanks;
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
  const protocol =
    messageBytes <= (isByPeer ? most : channelsFor(p2p.chunkBytes)) * LL_THRESHOLD_BYTES ? 'LL' : ('Simple' as const);
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
  const { nRanks, nNodes } = merged.nodes;
  const groupSize = merged.p2p.scheduleGroupSize;
  const perBatch = 8;
  return pairsSchedule(call, {
    nRanks,
    ...(ranks === undefined ? {} : { ranks }),
    ...(channels === undefined ? {} : { channels }),
    rounds: (rank) => p2pSchedule(merged, rank),
    nChannels: way.nChannels,
    channelsFor: () => way.channelsPerMessage,
    channelOfRound: (round) => {
      if (nNodes === 1) return round;
      const batchesOfGroup = Math.ceil(groupSize / perBatch);
      return Math.floor(round / groupSize) * batchesOfGroup + Math.floor((round % groupSize) / perBatch);
    },
    chunkBytes: way.chunkBytes,
  });
}
