import type { Driver } from '../../src/runtime/device/cuda/functions.js';
import { deviceAttributes } from '../../src/runtime/device/cuda/functions.js';
import { Gpu } from './gpu.js';

export type Verdict = 'right' | 'wrong' | 'slow' | 'skipped';

/** Something that was checked: what was seen, what is wrong, or why it was not checked. */
export interface Seen {
  readonly name: string;
  readonly text: string;
  /** `right` where it is missing. */
  readonly verdict?: Verdict;
  /** Measured values by their names, with units. */
  readonly figures?: Readonly<Record<string, number>>;
}

export interface Setting {
  readonly driver: Driver;
  /** Number of the GPU. */
  readonly ordinal: number;
  /** Kernels whose names contain it. */
  readonly only: string;
  /** The driver is a program: sizes are small, and nothing is called slow. */
  readonly isFake: boolean;
}

/** A part of the checks, which runs in a process of its own. */
export interface Part {
  /** Seconds after which it counts as hanging. */
  readonly limitS: number;
  /** Reason for which the fake driver cannot run it. */
  readonly notOnFake?: string;
  readonly run: (setting: Setting) => Iterable<Seen> | AsyncIterable<Seen>;
}

/** Opens the GPU for checks, and closes it after them. */
export function* withGpu(
  { driver, ordinal }: Pick<Setting, 'driver' | 'ordinal'>,
  run: (gpu: Gpu) => Iterable<Seen>,
): Generator<Seen> {
  const gpu = new Gpu(driver, ordinal);
  yield* run(gpu);
  gpu.close();
}

/** The number in `sm_75`. */
export function architectureOf({ context }: Gpu): number {
  return 10 * context.attribute(deviceAttributes.capabilityMajor) + context.attribute(deviceAttributes.capabilityMinor);
}
