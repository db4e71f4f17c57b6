import { PathType } from '../../topology/types.js';
import type { Rules } from '../../versions/rules.js';
import { ringSteps } from '../formulas.js';
import type { TuningInput } from '../input.js';
import type { Collective } from '../names.js';

const { floor, fround, max, min } = Math;

/** Latency of a ring with Simple, which has a plateau at sizes from 64 bytes a rank and channel on. */
export function ringPlateau(
  input: TuningInput,
  calls: Rules['ringPlateau'],
  collective: Collective,
  latencyUs: number,
  bytes: number,
): number {
  const { nChannels, nRanks, nNodes, minCompCap, graphs } = input;
  const share = floor(bytes / (nChannels * nRanks));
  if (share < 64) return latencyUs;
  const factor = minCompCap < 80 ? 1.9 : 1.4;
  const bySize = calls === 'blackwell by size';
  if (nNodes > 1) {
    if (collective !== 'AllReduce') return latencyUs;
    return fround(latencyUs * (bySize ? fround(factor) : factor));
  }
  const isBlackwell = minCompCap >= 100 && graphs.ring.typeIntra === PathType.NVL;
  if (calls === 'between nodes' || !isBlackwell) return latencyUs;
  const gathers = collective === 'AllGather' || collective === 'ReduceScatter';
  if (!bySize) return gathers ? fround(latencyUs * factor) : latencyUs;
  if (!gathers && collective !== 'AllReduce') return latencyUs;
  return fround(latencyUs * plateauOfNode(fround(factor), ringSteps(collective, nRanks), share));
}

const DELTA = fround(0.1);
const KIB = 1024;

/** A ring of one step has no plateau; each further step brings the factor nearer to the full one. Large shares lower it. */
function plateauOfNode(factor: number, nSteps: number, share: number): number {
  const most = fround(factor - 1);
  const scale = fround(1 - fround(fround(DELTA / most) ** max(0, nSteps - 1)));
  const size = share > 256 * KIB ? min(1, fround(fround(share - 256 * KIB) / fround(256 * KIB))) : 0;
  const delta = size === 0 ? most : fround(most - fround(DELTA * size));
  return fround(1 + fround(scale * delta));
}
