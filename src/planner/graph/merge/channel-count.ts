import type { Parameters } from '../../parameters.js';
import { rulesOf } from '../../versions/rules.js';
import type { AlignedGraphs } from './align.js';
import type { ChannelStep, MergeListener } from './trace.js';

/** Inputs of the number of channels. */
interface ChannelFacts {
  readonly nRanks: number;
  readonly nNodes: number;
  readonly minCompCap: number;
  readonly graphs: AlignedGraphs;
  /** True if the network reduces. */
  readonly collnet: boolean;
  /** As many as NVLink SHARP has, in versions that copy channels until there are as many. */
  readonly nvlsChannels: number;
  /** The communicator whose resources it shares. */
  readonly parent?: { readonly nChannels: number; readonly nvls: unknown } | undefined;
}

/**
 * Number of channels, and the graph channel that each copies. With n channels in the graphs, the first n use the first
 * tree between hosts, the next n the second; all further ones repeat earlier ones.
 *
 *     graphs 0 1 2 ─► doubled 0 1 2 3 4 5 ─► at most 4: 0 1 2 3 ─► at least 6: 0 1 2 3 0 1
 *
 * @returns by channel, the number below 2n of the one that it is or repeats; and how many there were before those for
 *   NVLink SHARP
 */
export function countChannels(
  facts: ChannelFacts,
  parameters: Parameters,
  listen?: MergeListener,
): { readonly channels: number[]; readonly collChannels: number } {
  const { nRanks, nNodes, graphs, collnet, nvlsChannels, minCompCap, parent } = facts;
  const { mostChannels, channelsDoubledFor, channelsDoubledToUnpack, nvlsChannelsWithinParent } = rulesOf(parameters);
  let channels = Array.from({ length: Math.min(mostChannels, 2 * graphs.ring.nChannels) }, (_, channel) => channel);
  const become = (step: ChannelStep, count: number) => {
    const before = channels.length;
    channels = Array.from({ length: count }, (_, channel) => channels[channel % before] ?? 0);
    if (count !== before) listen?.({ kind: 'channels', step, before, after: count });
  };
  listen?.({ kind: 'channels', step: 'doubled', before: graphs.ring.nChannels, after: channels.length });

  const chain = graphs.collnetChain;
  if (collnet && chain.bwIntra > chain.bwInter && nRanks > nNodes) {
    become('collnet', Math.min(mostChannels, channels.length + (channels.length >> 1)));
  }
  const isNew = channelsDoubledFor === 'newer' ? minCompCap >= 90 : minCompCap === 90;
  const most16 = channelsDoubledFor === 'hopper, up to 16' ? 16 : 15;
  if (isNew && nNodes > 1 && graphs.ring.bwIntra > 45 && channels.length <= most16) become('hopper', 2 * channels.length);

  const unpacks = channelsDoubledToUnpack && parameters.unpacksOnGpu && parameters.unpackDoubleChannels !== 0;
  if (unpacks && nNodes > 1 && channels.length < 16) become('unpack', 2 * channels.length);

  const { fewest, most } = channelLimits(parameters);
  const shared = parent?.nChannels ?? Infinity;
  become('maximum', Math.min(channels.length, most));
  become('parent', Math.min(channels.length, shared));
  become('minimum', Math.max(channels.length, Math.min(fewest, shared)));
  const collChannels = channels.length;
  const withNvls = Math.max(channels.length, nvlsChannels);
  become('nvls', nvlsChannelsWithinParent && parent?.nvls !== undefined ? Math.min(withNvls, shared) : withNvls);
  return { channels, collChannels };
}

/** The limits that the parameters set; the maximum is applied first, so a greater minimum wins. */
function channelLimits(parameters: Parameters): { readonly fewest: number; readonly most: number } {
  const { mostChannels } = rulesOf(parameters);
  const ctas = ctaLimits(parameters);
  const fewest = Math.max(0, Math.min(parameters.minChannels ?? parameters.minRings ?? 0, mostChannels));
  const asked = parameters.maxChannels ?? parameters.maxRings ?? mostChannels;
  const most = Math.max(1, Math.min(asked, mostChannelsInArguments(parameters)));
  return { fewest: Math.max(fewest, ctas.fewest), most: Math.min(most, ctas.most) };
}

/** The limits in the configuration of the communicator. */
export function ctaLimits(parameters: Parameters): { readonly fewest: number; readonly most: number } {
  const { mostChannels } = rulesOf(parameters);
  const positive = (value: number | undefined, otherwise: number) =>
    Math.min(value !== undefined && value > 0 ? value : otherwise, mostChannels);
  const most = positive(parameters.maxCtas, mostChannels);
  return { fewest: Math.min(positive(parameters.minCtas, 1), most), most };
}

/** A kernel's arguments begin with a header and hold one batch of work a channel. */
const ARGUMENTS_HEADER_BYTES = 32;
const BATCH_BYTES = 16;

/** Number of channels that fit into the arguments of a kernel; NCCL takes a size below the header as unlimited. */
export function mostChannelsInArguments({ workArgsBytes, ncclVersion }: Parameters): number {
  const { mostChannels, channelsFitArguments } = rulesOf({ ncclVersion });
  if (workArgsBytes < ARGUMENTS_HEADER_BYTES || !channelsFitArguments) return mostChannels;
  return Math.min(mostChannels, Math.floor((workArgsBytes - ARGUMENTS_HEADER_BYTES) / BATCH_BYTES));
}
