import type { LocalSystem } from '../topology/local-systems.js';
import { nodeName } from '../topology/system.js';
import { pathTypeNames } from '../topology/types.js';
import type { ChannelGraph } from './graph.js';
import { channelRanks, netName } from './graph-json.js';

/**
 * A graph as lines of NCCL's log (`NCCL_DEBUG=INFO`, `NCCL_DEBUG_SUBSYS=GRAPH`), without their prefix:
 *
 *     Pattern 4, crossNic 0, nChannels 2, bw 20.000000/20.000000, type NVL/PIX, sameChannels 1
 *      0 : NET/0-0 GPU/0-1000 GPU/0-2000 NET/0-0
 *      1 : …
 */
export function graphLines(graph: ChannelGraph, { system, inter }: LocalSystem): string[] {
  const gpuNames = new Map(system.gpus.map((gpu) => [gpu.rank, nodeName(gpu)]));
  const lines = [
    `Pattern ${graph.pattern}, crossNic ${graph.crossNic}, nChannels ${graph.nChannels}, ` +
      `bw ${graph.bwIntra.toFixed(6)}/${graph.bwInter.toFixed(6)}, ` +
      `type ${pathTypeNames[graph.typeIntra]}/${pathTypeNames[graph.typeInter]}, sameChannels ${graph.sameChannels ? 1 : 0}`,
  ];
  for (let channel = 0; channel < graph.nChannels; channel++) {
    const names = channelRanks(graph, channel).map((rank) => gpuNames.get(rank) ?? `rank ${rank}`);
    if (inter) names.unshift(netName(graph.inter[2 * channel]));
    if (inter) names.push(netName(graph.inter[2 * channel + 1]));
    lines.push(`${String(channel).padStart(2)} : ${names.join(' ')}`);
  }
  return lines;
}
