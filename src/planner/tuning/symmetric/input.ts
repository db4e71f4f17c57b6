import type { Parameters } from '../../parameters.js';
import type { Windows } from '../../windows.js';

/** Inputs of the choice of symmetric kernels, besides those of other calls. */
export interface SymmetricInput {
  readonly windows: Windows;
  /** True if the GPUs of rank 0's node copy to each other peer-to-peer. */
  readonly allDirectP2p: boolean;
  /** True if they are joined by NVLink directly. */
  readonly allDirectNvLink: boolean;
  /** Ranks that load from and store to each other: the greatest common divisor of the ranks of nodes. */
  readonly domainRanks: number;
  /** True if each rank has a NIC. */
  readonly hasNics: boolean;
  readonly settings: SymmetricSettings;
}

/** Variables that decide about symmetric kernels and copy engines. */
export type SymmetricSettings = Pick<
  Parameters,
  | 'windowEnable'
  | 'ctaPolicy'
  | 'ginEnable'
  | 'minCtas'
  | 'maxCtas'
  | 'algorithms'
  | 'protocols'
  | 'symmetricKernel'
  | 'symmetricCtas'
  | 'symmetricWithoutWindows'
  | 'symmetricRails'
  | 'symmetricRailChunkBytes'
  | 'symmetricTma'
  | 'copyEngineThreshold'
>;

/** The settings among all parameters. */
export function symmetricSettings(parameters: Parameters): SymmetricSettings {
  const { windowEnable, ctaPolicy, ginEnable, minCtas, maxCtas, algorithms, protocols } = parameters;
  const { symmetricKernel, symmetricCtas, symmetricWithoutWindows, symmetricTma } = parameters;
  const { symmetricRails, symmetricRailChunkBytes, copyEngineThreshold } = parameters;
  return {
    ...{ windowEnable, ctaPolicy, ginEnable, minCtas, maxCtas, algorithms, protocols },
    ...{ symmetricKernel, symmetricCtas, symmetricWithoutWindows, symmetricTma },
    ...{ symmetricRails, symmetricRailChunkBytes, copyEngineThreshold },
  };
}

/** The greatest common divisor of numbers of ranks. */
export function commonDivisor(counts: readonly number[]): number {
  const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b));
  return counts.reduce(divisor, 0);
}
