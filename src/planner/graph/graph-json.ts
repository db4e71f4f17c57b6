import type { LocalSystem } from '../topology/local-systems.js';
import { nodeName } from '../topology/system.js';
import { NodeType, pathTypeNames } from '../topology/types.js';
import { type ChannelGraph, GraphId } from './graph.js';

/** A graph as plain JSON: types by name, channels as lists of ranks and NET names. */
export interface GraphJson {
  readonly id: number;
  readonly pattern: number;
  readonly crossNic: number;
  readonly collNet: number;
  readonly minChannels: number;
  readonly maxChannels: number;
  readonly nChannels: number;
  readonly bwIntra: number;
  readonly bwInter: number;
  readonly latencyInter: number;
  readonly typeIntra: string;
  readonly typeInter: string;
  readonly sameChannels: number;
  readonly nHops: number;
  /** Ranks by channel; only the head for NVLS. */
  readonly intra: readonly (readonly number[])[];
  /** Two NETs by channel, as `NET/0-1`; no channel where all ranks are on one host. */
  readonly inter: readonly (readonly string[])[];
}

/** A graph as plain JSON, as `tccl graph --json` prints it; `inter` as its host was searched. */
export function graphToJson(graph: ChannelGraph, { inter }: Pick<LocalSystem, 'inter'>): GraphJson {
  const channels = Array.from({ length: graph.nChannels }, (_, channel) => channel);
  return {
    id: graph.id,
    pattern: graph.pattern,
    crossNic: graph.crossNic,
    collNet: graph.collNet ? 1 : 0,
    minChannels: graph.minChannels,
    maxChannels: graph.maxChannels,
    nChannels: graph.nChannels,
    bwIntra: graph.bwIntra,
    bwInter: graph.bwInter,
    latencyInter: graph.latencyInter,
    typeIntra: pathTypeNames[graph.typeIntra],
    typeInter: pathTypeNames[graph.typeInter],
    sameChannels: graph.sameChannels ? 1 : 0,
    nHops: graph.nHops,
    intra: channels.map((channel) => channelRanks(graph, channel)),
    inter: inter ? channels.map((channel) => [netName(graph.inter[2 * channel]), netName(graph.inter[2 * channel + 1])]) : [],
  };
}

/** The ranks that a channel visits; only the head for NVLS. */
export function channelRanks(graph: Pick<ChannelGraph, 'id' | 'gpuCount' | 'intra'>, channel: number): number[] {
  const length = graph.id === GraphId.NVLS ? 1 : graph.gpuCount;
  return [...graph.intra.subarray(channel * graph.gpuCount, channel * graph.gpuCount + length)];
}

/** `NET/0-1` for an id. */
export function netName(id = -1n): string {
  const unsigned = BigInt.asUintN(64, id);
  return nodeName({ type: NodeType.NET, systemId: Number(unsigned >> 56n), localId: BigInt.asUintN(56, unsigned) });
}
