import type { Candidate } from './candidate.js';
import { Pattern } from './graph.js';
import type { SearchRules } from './search-input.js';
import type { Improvement } from './trace.js';

/**
 * Compares a candidate that has just completed a channel with the best so far: more bandwidth over all channels is better, then
 * fewer hops. For NVLS more heads count first, because each is one more GPU that reduces.
 */
export function improvement(
  candidate: Candidate,
  best: Candidate,
  { crossingBonus, nvlsBandwidthCounts }: SearchRules,
): Improvement | undefined {
  if (candidate.nChannels < candidate.minChannels) return undefined;
  if (candidate.pattern === Pattern.NVLS) {
    if (candidate.nChannels > best.nChannels && candidate.nChannels <= candidate.gpuCount)
      return best.nChannels === 0 ? 'first' : 'heads';
    if (!nvlsBandwidthCounts) return undefined;
    return total(candidate.nChannels, candidate.bwInter) > total(best.nChannels, best.bwInter) ? 'bandwidth' : undefined;
  }
  const gbps = total(candidate.nChannels, candidate.bwIntra);
  const target = Math.fround(1 - (best.crossNic - candidate.crossNic) * crossingBonus);
  const bestGbps = Math.fround(total(best.nChannels, best.bwIntra) * target);
  if (gbps > bestGbps) return best.nChannels === 0 ? 'first' : 'bandwidth';
  if (gbps < bestGbps) return undefined;
  const alike = candidate.pattern === best.pattern && candidate.crossNic === best.crossNic;
  return alike && candidate.nHops < best.nHops ? 'hops' : undefined;
}

/** GB/s of all channels together, in C floats. */
export function total(nChannels: number, gbps: number): number {
  return Math.fround(nChannels * gbps);
}
