import { collnetDirectOf } from './collnet.js';
import { chainLinks, nvlsLinks, ringFrom, ringNeighbours, treeLinks } from './links.js';
import type { Merged } from './merge.js';
import { nvlsHeadRanks } from './nvls.js';

/**
 * The lines that NCCL writes with `NCCL_DEBUG=INFO`, without what stands before the colon-separated head of each
 * (`host:pid:tid [0] NCCL INFO `). Where NCCL cuts a line because its buffer is full, so do these, unless told not to.
 */
export interface PrintOptions {
  /** Whole lines, however long. */
  readonly whole?: boolean;
}

/** NCCL's buffers for a ring and for the trees of a rank, in characters. */
const RING_BUFFER = 128;
const TREES_BUFFER = 1023;

/** `Channel 00/24 : 0 7 6 …` for all channels; NCCL writes them at rank 0. */
export function ringLines(merged: Merged, options: PrintOptions = {}): string[] {
  const width = String(merged.nodes.nRanks - 1).length;
  return eachChannel(merged, (channel) => {
    const ranks = [...ringFrom(merged, channel, 0)].map((rank) => ` ${String(rank).padStart(width)}`);
    const line = `Channel ${twoDigits(channel)}/${twoDigits(merged.nChannels)} :${ranks.join('')}`;
    return options.whole === true || line.length < RING_BUFFER ? line : `${line.slice(0, RING_BUFFER - 4)}...`;
  });
}

/** `Trees [0] 1/-1/-1->0->-1 [1] …`: children, rank and parent on all channels. */
export function treesLine(merged: Merged, rank: number, options: PrintOptions = {}): string {
  const trees = eachChannel(merged, (channel) => {
    const { up, down } = treeLinks(merged, channel, rank);
    return ` [${channel}] ${down.join('/')}->${rank}->${up}`;
  }).join('');
  return `Trees${options.whole === true ? trees : trees.slice(0, TREES_BUFFER - 1)}`;
}

/** `Ring 00 : 7 -> 0 -> 1` for all channels of a rank. */
export function ringNeighbourLines(merged: Merged, rank: number): string[] {
  return eachChannel(merged, (channel) => {
    const { prev, next } = ringNeighbours(merged, channel, rank);
    return `Ring ${twoDigits(channel)} : ${prev} -> ${rank} -> ${next}`;
  });
}

/** `NVLS Head  0:  0  8`: which ranks are each head, on the first 20 nodes; NCCL writes them where there are several nodes. */
export function nvlsHeadLines({ nodes, nvls }: Merged): string[] {
  if (nvls === undefined || nodes.nNodes === 1) return [];
  return Array.from({ length: nvls.nHeads }, (_, head) => {
    const ranks = nvlsHeadRanks(nodes, nvls, head, 20).map((rank) => ` ${String(rank).padStart(2)}`);
    return `NVLS Head ${String(head).padStart(2)}:${ranks.join('')}`;
  });
}

/** `NVLS Trees : 17/8/-1->0->-1 17/-1/-1->0->8`: a rank's links on even and on odd channels; empty without several nodes. */
export function nvlsTreesLine(merged: Merged, rank: number): string {
  if (merged.nvls === undefined || merged.nodes.nNodes === 1) return '';
  const trees = [0, 1]
    .filter((channel) => channel < (merged.nvls?.nChannels ?? 0))
    .map((channel) => {
      const links = nvlsLinks(merged, channel, rank);
      return links === undefined ? '' : `${links.treeDown.join('/')}->${rank}->${links.treeUp}`;
    });
  return `NVLS Trees : ${trees.join(' ')}`;
}

/** `Connected Collnet Chains  [0] 1->0->16 …`; empty where chains are not used. */
export function collnetChainsLine(merged: Merged, rank: number): string {
  if (merged.collnet?.chainSupport !== true) return '';
  const chains = eachChannel(merged, (channel) => {
    const links = chainLinks(merged, channel, rank);
    return links === undefined ? '' : ` [${channel}] ${links.down}->${rank}->${links.up}`;
  }).join('');
  return `Connected Collnet Chains ${chains.slice(0, TREES_BUFFER - 1)}`;
}

/** `CollNetDirect channel 0 rank 0 down  1  2 nDown 2 up heads  0 nUp 0 nHeads 1 headRank 0 out 16 shift 0`. */
export function collnetDirectLine(merged: Merged, channel: number, rank: number): string {
  if (merged.collnet?.direct !== true) return '';
  const { headRank, out, nHeads, shift, heads, up, down } = collnetDirectOf(merged.nodes, merged.collnet, rank);
  const list = (ranks: readonly number[]) => ranks.map((other) => ` ${other} `).join('');
  const downPart = headRank < 0 ? '' : `down ${list(down)}nDown ${down.length} `;
  return `CollNetDirect channel ${channel} rank ${rank} ${downPart}up ${list(up)}heads ${list(heads)}nUp ${up.length} nHeads ${nHeads} headRank ${headRank} out ${out} shift ${shift}`;
}

/** `16 coll channels, 16 collnet channels, 16 nvls channels, 16 p2p channels, 4 p2p channels per peer`. */
export function channelCountLine({ nChannels, nvls, p2p }: Merged): string {
  return `${nChannels} coll channels, ${nChannels} collnet channels, ${nvls?.nChannels ?? 0} nvls channels, ${p2p.nChannels} p2p channels, ${p2p.channelsPerPeer} p2p channels per peer`;
}

function eachChannel(merged: Merged, line: (channel: number) => string): string[] {
  return Array.from({ length: merged.nChannels }, (_, channel) => line(channel));
}

function twoDigits(number: number): string {
  return String(number).padStart(2, '0');
}
