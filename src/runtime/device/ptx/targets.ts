/**
 * Architectures since which a text of a kernel differs. A GPU takes the text of the highest level that it has:
 *
 *     75   Turing: float16
 *     80   Ampere: bfloat16, minima and maxima that keep NaN
 *     89   Ada: conversions of float8
 *     90   Hopper: multicast memory (NVLink SHARP)
 */
export const levels = [75, 80, 89, 90] as const;
export type Level = (typeof levels)[number];

/** Architectures of all GPUs that CUDA 13 compiles for, by the number in `sm_75`: servers, workstations, Jetson and Spark. */
export const targets = [75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121] as const;
export type Target = (typeof targets)[number];

/** The first version of PTX that has all instructions of the level, which an older driver may not know. */
export const ptxVersions: Readonly<Record<Level, string>> = { 75: '6.3', 80: '7.0', 89: '8.1', 90: '8.2' };
