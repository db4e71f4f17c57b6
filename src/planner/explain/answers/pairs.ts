import { counted } from '../../../counted.js';
import { pairsWay } from '../../schedule/from-plan.js';
import { rulesOf } from '../../versions/rules.js';
import { formatBytes } from '../../plan/overview/format.js';
import type { Draft } from '../answer.js';
import type { Situation } from '../situation.js';

const messageSizes = [4 * 2 ** 10, 2 ** 20, 64 * 2 ** 20];

/** Explains the channels of send and receive, which differ from those of rings and trees. */
export function answerPairChannels({ plan, parameters }: Situation, expected: number | undefined): Draft {
  const { p2p, nChannels, nodes } = plan;
  const ways = messageSizes.map((bytes) => ({ bytes, way: pairsWay(plan, { collective: 'SendRecv', bytes, root: 0 }) }));
  const isWrong = expected !== undefined && expected !== p2p.nChannels && expected !== p2p.channelsPerPeer;
  const isMore = p2p.nChannels !== nChannels;
  const byBandwidth = nodes.nNodes > 1 && rulesOf(parameters).p2pNetChannels === 'by bandwidth';
  return {
    title: `${counted(p2p.nChannels, 'channel')} for send and receive, ${p2p.channelsPerPeer} for each peer`,
    sentences: [
      `${isWrong ? `Not ${expected}: send` : 'Send'} and receive have ${counted(p2p.nChannels, 'channel')}${isMore ? `, rings and trees ${nChannels}: the number for send and receive is a power of two` : ', as many as rings and trees'}.`,
      `A peer gets at most ${counted(p2p.channelsPerPeer, 'channel')}${byBandwidth ? `: as many as the NICs of a GPU fill at ${parameters.p2pPerChannelNetGBps} GB/s each (NCCL_P2P_PER_CHANNEL_NET_BW), fewer where there are many peers` : ''}.`,
      `A message takes fewer where it is small: ${ways.map(({ bytes, way }) => `${formatBytes(bytes)} ${way.channelsPerMessage} with ${way.protocol}`).join(', ')}.`,
      `NCCL_MIN_P2P_NCHANNELS and NCCL_MAX_P2P_NCHANNELS bound the number of channels${nodes.nNodes > 1 ? ', and NCCL_NCHANNELS_PER_NET_PEER sets that for a peer on another host' : ''}.`,
    ],
    evidence: {
      nChannels: p2p.nChannels,
      channelsPerPeer: p2p.channelsPerPeer,
      chunkBytes: p2p.chunkBytes,
      messages: ways.map(({ bytes, way }) => ({ bytes, protocol: way.protocol, channels: way.channelsPerMessage })),
    },
  };
}
