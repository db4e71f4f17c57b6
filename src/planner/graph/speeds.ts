/**
 * The speeds that the search tries for a channel, in GB/s, fastest first. They are NCCL's, tuned by hand: what NVLink,
 * PCI and NICs of a generation can be divided into without much loss.
 */
interface Speeds {
  /** Lowest compute capability × 10 of the GPUs from which on these speeds are used. */
  readonly fromSm: number;
  readonly withinHost: Float32Array;
  readonly betweenHosts: Float32Array;
}

const generations: readonly Speeds[] = [
  {
    fromSm: 100,
    withinHost: Float32Array.of(90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18),
    betweenHosts: Float32Array.of(96, 86, 80, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12),
  },
  {
    fromSm: 90,
    withinHost: Float32Array.of(60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3),
    betweenHosts: Float32Array.of(48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12),
  },
  {
    fromSm: 0,
    withinHost: Float32Array.of(40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3),
    betweenHosts: Float32Array.of(48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12),
  },
];

/** @param sm lowest compute capability × 10 of the GPUs */
export function speedsFor(sm: number, inter: boolean): Float32Array {
  const speeds = generations.find(({ fromSm }) => sm >= fromSm);
  return (inter ? speeds?.betweenHosts : speeds?.withinHost) ?? new Float32Array();
}

/** Position of the first speed that `fits`, or of the slowest. */
export function fastest(speeds: Float32Array, fits: (gbps: number) => boolean): number {
  const found = speeds.findIndex(fits);
  return found < 0 ? speeds.length - 1 : found;
}
