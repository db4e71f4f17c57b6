import { collnetDirectOf } from '../../../../src/planner/graph/merge/collnet.js';
import { chainLinks, nvlsLinks, ringNeighbours } from '../../../../src/planner/graph/merge/links.js';
import type { Merged } from '../../../../src/planner/graph/merge/merge.js';

/** Further lines of NCCL's log, which only tests compare with. NCCL cuts them where its buffer is full. */
const BUFFER = 1023;

/** `Ring 00 : 7 -> 0 -> 1` for all channels of a rank. */
export function ringNeighbourLines(merged: Merged, rank: number): string[] {
  return eachChannel(merged, (channel) => {
    const { prev, next } = ringNeighbours(merged, channel, rank);
    return `Ring ${twoDigits(channel)} : ${prev} -> ${rank} -> ${next}`;
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
  return `Connected Collnet Chains ${chains.slice(0, BUFFER - 1)}`;
}

/** `CollNetDirect channel 0 rank 0 down  1  2 nDown 2 up heads  0 nUp 0 nHeads 1 headRank 0 out 16 shift 0`. */
export function collnetDirectLine(merged: Merged, channel: number, rank: number): string {
  if (merged.collnet?.direct !== true) return '';
  const { headRank, out, nHeads, shift, heads, up, down } = collnetDirectOf(merged.nodes, merged.collnet, rank);
  const list = (ranks: readonly number[]) => ranks.map((other) => ` ${other} `).join('');
  const downPart = headRank < 0 ? '' : `down ${list(down)}nDown ${down.length} `;
  return `CollNetDirect channel ${channel} rank ${rank} ${downPart}up ${list(up)}heads ${list(heads)}nUp ${up.length} nHeads ${nHeads} headRank ${headRank} out ${out} shift ${shift}`;
}

function eachChannel(merged: Merged, line: (channel: number) => string): string[] {
  return Array.from({ length: merged.nChannels }, (_, channel) => line(channel));
}

function twoDigits(number: number): string {
  return String(number).padStart(2, '0');
}
