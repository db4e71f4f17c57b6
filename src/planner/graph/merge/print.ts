import { ringFrom, treeLinks } from './links.js';
import type { Merged } from './merge.js';
import { nvlsHeadRanks } from './nvls.js';

/**
 * Options of lines of NCCL's log (`NCCL_DEBUG=INFO`), which are made without the prefix `host:pid:tid [0] NCCL INFO `. Lines
 * are cut where NCCL's buffer is full, unless `whole`.
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

/** `NVLS Head  0:  0  8`: which ranks are each head, on the first 20 nodes; NCCL writes them where there are several nodes. */
export function nvlsHeadLines({ nodes, nvls }: Merged): string[] {
  if (nvls === undefined || nodes.nNodes === 1) return [];
  return Array.from({ length: nvls.nHeads }, (_, head) => {
    const ranks = nvlsHeadRanks(nodes, nvls, head, 20).map((rank) => ` ${String(rank).padStart(2)}`);
    return `NVLS Head ${String(head).padStart(2)}:${ranks.join('')}`;
  });
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
