import type { SearchRules } from './search-input.js';

/**
 * The speeds that the search tries for a channel of GPUs before Hopper, in GB/s, fastest first. They are NCCL's, tuned by hand to
 * divide NVLink, PCI and NICs of a generation without much loss. Those of later GPUs are rules, since they changed with versions.
 */
const withinHost = [40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3];
const betweenHosts = [48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12];

/** @param sm lowest compute capability × 10 of the GPUs */
export function speedsFor(sm: number, inter: boolean, rules: SearchRules): Float32Array {
  if (sm >= 100) return Float32Array.from(inter ? rules.blackwellSpeedsBetween : rules.blackwellSpeedsWithin);
  if (sm >= 90) return Float32Array.from(inter ? rules.hopperSpeedsBetween : rules.hopperSpeedsWithin);
  return Float32Array.from(inter ? betweenHosts : withinHost);
}

/** Position of the first speed that `fits`, or of the slowest. */
export function fastest(speeds: Float32Array, fits: (gbps: number) => boolean): number {
  const found = speeds.findIndex(fits);
  return found < 0 ? speeds.length - 1 : found;
}
