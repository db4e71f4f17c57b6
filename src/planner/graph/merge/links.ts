import { InvalidArgumentError } from '../../../errors.js';
import { type CollnetDirect, collnetDirectOf } from './collnet.js';
import type { Merged } from './merge.js';
import { kindOf, type NodeTable } from './nodes.js';
import { type NvlsLinks, nvlsLinksOf } from './nvls.js';
import { type P2pSchedule, p2pScheduleOf } from './p2p-schedule.js';
import { TREE_ARITY } from './trees.js';

/**
 * Neighbours of one rank in the channels. Every function throws InvalidArgumentError for a rank or channel that does not
 * exist.
 */

export interface RingNeighbours {
  /** Receives from. */
  readonly prev: number;
  /** Sends to. */
  readonly next: number;
}

/** Neighbours of a rank in a tree. */
export interface TreeLinks {
  /** Parent, or -1 for the root. */
  readonly up: number;
  /** Children; -1 stands for none. */
  readonly down: readonly [number, number, number];
}

/** Neighbours of a rank in a CollNet chain. */
export interface ChainLinks {
  /** Parent; `nRanks`, the network, for the head. */
  readonly up: number;
  /** Child, or -1. */
  readonly down: number;
}

/** All ranks in the order of a channel's ring, from a rank on. */
export function ringFrom(merged: Merged, channel: number, rank: number): Int32Array {
  const { first, nRanks } = ringPlace(merged, channel, rank);
  const start = first + (merged.rings.position[first + rank] ?? 0);
  const order = new Int32Array(nRanks);
  order.set(merged.rings.order.subarray(start, first + nRanks));
  order.set(merged.rings.order.subarray(first, start), first + nRanks - start);
  return order;
}

/**
 * The ranks before and after a rank in the ring of a channel.
 *
 * @throws InvalidArgumentError where there is no such channel or rank
 */
export function ringNeighbours(merged: Merged, channel: number, rank: number): RingNeighbours {
  const { first, nRanks } = ringPlace(merged, channel, rank);
  const { order, position } = merged.rings;
  const own = position[first + rank] ?? 0;
  return { prev: order[first + ((own - 1 + nRanks) % nRanks)] ?? 0, next: order[first + ((own + 1) % nRanks)] ?? 0 };
}

/**
 * Parent and children of a rank in the tree of a channel.
 *
 * @throws InvalidArgumentError where there is no such channel or rank
 */
export function treeLinks(merged: Merged, channel: number, rank: number): TreeLinks {
  checkPlace(merged, channel, rank);
  const { up, down } = merged.trees;
  const index = (merged.treeOfChannel[channel] ?? 0) * merged.nodes.nRanks + rank;
  const child = (number: number) => down[index * TREE_ARITY + number] ?? -1;
  return { up: up[index] ?? -1, down: [child(0), child(1), child(2)] };
}

/** Undefined where the network does not reduce. */
export function chainLinks(merged: Merged, channel: number, rank: number): ChainLinks | undefined {
  const { first } = ringPlace(merged, channel, rank);
  const { collnet } = merged;
  return collnet && { up: collnet.chainUp[first + rank] ?? -1, down: collnet.chainDown[first + rank] ?? -1 };
}

/** The same on every channel; undefined where the network does not reduce. */
export function directLinks(merged: Merged, rank: number): CollnetDirect | undefined {
  checkPlace(merged, 0, rank);
  return merged.collnet && collnetDirectOf(merged.nodes, merged.collnet, rank);
}

/** Links on one of the channels of NVLink SHARP, which are numbered independently of other channels; undefined without it. */
export function nvlsLinks(merged: Merged, channel: number, rank: number): NvlsLinks | undefined {
  checkPlace(merged, 0, rank);
  const { nvls } = merged;
  if (nvls === undefined) return undefined;
  if (!(channel >= 0 && channel < nvls.nChannels)) throw noChannel(channel, nvls.nChannels);
  return nvlsLinksOf(merged.nodes, nvls, merged.collnet !== undefined, rank, channel);
}

/**
 * The order in which a rank sends to and receives from all others.
 *
 * @throws InvalidArgumentError where there is no such rank
 */
export function p2pSchedule(merged: Merged, rank: number): P2pSchedule {
  checkPlace(merged, 0, rank);
  return p2pScheduleOf(merged.nodes, merged.p2p, rank);
}

/** The ranks of a node, ascending. */
export function ranksOfNode(nodes: NodeTable, node: number): number[] {
  const base = nodes.rankBase[node] ?? 0;
  return kindOf(nodes, node).ranks.map((rank) => base + rank);
}

function ringPlace(merged: Merged, channel: number, rank: number): { readonly first: number; readonly nRanks: number } {
  checkPlace(merged, channel, rank);
  const { nRanks } = merged.nodes;
  return { first: (merged.ringOfChannel[channel] ?? 0) * nRanks, nRanks };
}

function checkPlace({ nodes, nChannels }: Merged, channel: number, rank: number): void {
  if (!(Number.isInteger(rank) && rank >= 0 && rank < nodes.nRanks)) {
    throw new InvalidArgumentError('ARGUMENT_RANGE', `no rank ${rank}: ranks are 0 to ${nodes.nRanks - 1}`);
  }
  if (!(Number.isInteger(channel) && channel >= 0 && channel < nChannels)) throw noChannel(channel, nChannels);
}

function noChannel(channel: number, count: number): InvalidArgumentError {
  return new InvalidArgumentError('ARGUMENT_RANGE', `no channel ${channel}: channels are 0 to ${count - 1}`);
}
