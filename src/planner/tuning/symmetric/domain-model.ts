import type { Rules } from '../../versions/rules.js';
import { softMinimum } from '../formulas.js';
import type { TuningInput } from '../input.js';
import { type SymmetricKernel, traitsOf } from './kernels.js';

/** NCCL's model of symmetric kernels within one NVLink domain, in its numbers: doubles, with times as C floats. */

/** Time and CTAs of a kernel. */
export interface Estimate {
  /** µs, a C float. */
  readonly timeUs: number;
  readonly ctas: number;
}

/** Most CTAs of a symmetric kernel. */
export const MOST_CTAS = 64;

/** LL moves twice the bytes, and costs work besides. */
const LL_FACTOR = 9;

/** 2^30 bytes a second, in bytes a µs. */
const GIBPS = 2 ** 30 / 1e6;

const { fround, trunc } = Math;

/** Fewest and most CTAs that settings allow. */
export interface CtaRange {
  readonly fewest: number;
  readonly most: number;
}

/** The CTAs of a kernel that takes `most` at most. */
export function ctaRange({ symmetric: { settings } }: TuningInput, most: number, rules: Rules): CtaRange {
  const { symmetricCtas, minCtas = 1, maxCtas = MOST_CTAS } = settings;
  if (symmetricCtas > 0) return { fewest: Math.min(MOST_CTAS, symmetricCtas), most: Math.min(MOST_CTAS, symmetricCtas) };
  const range = { fewest: minCtas, most: Math.min(most, maxCtas) };
  if (rules.symmetricModel === 'first') return range;
  const fewest = Math.min(range.fewest, range.most);
  if (fewest === range.most) return { fewest, most: fewest };
  return { fewest: fewest === 1 ? 1 : fewest + (fewest % 2), most: range.most === 1 ? 1 : range.most - (range.most % 2) };
}

/** Estimate with the fewest CTAs that come within 2.5 % of the time of the most. @param bytes as the model counts them */
export function domainEstimate(
  input: TuningInput,
  kernel: SymmetricKernel,
  bytes: number,
  { fewest, most }: CtaRange,
  rules: Rules,
): Estimate {
  const figures = figuresOf(input, kernel, bytes, rules);
  const timeWith = (ctas: number) => {
    const bandwidth = softMinimum(ctas * figures.ctaBandwidth * figures.multiple, figures.peakBandwidth, figures.ctaBandwidth);
    return figures.baseUs + softPositive(figures.busBytes / bandwidth - 1);
  };
  const leastUs = fround(timeWith(most));
  const step = rules.symmetricModel === 'first' ? () => 1 : (ctas: number) => (ctas === 1 ? 1 : 2);
  for (let ctas = fewest; ctas < most; ctas += step(ctas)) {
    const timeUs = timeWith(ctas);
    if (timeUs <= 1.025 * leastUs) return { timeUs: fround(timeUs), ctas };
  }
  return { timeUs: leastUs, ctas: most };
}

/** Most CTAs of a kernel by its kind: multicast has the NVSwitch do the work. */
export function mostCtasOf({ nRanks, minCompCap }: TuningInput, kernel: SymmetricKernel): number {
  const { isLl, multicast } = traitsOf(kernel);
  return multicast === 'none' || isLl ? MOST_CTAS : Math.ceil((minCompCap < 100 ? 16 : 32) / nRanks);
}

interface Figures {
  /** Bytes that a GPU sends or receives, whichever is more. */
  readonly busBytes: number;
  readonly multiple: number;
  readonly baseUs: number;
  /** Bytes a µs of one CTA, and of the link. */
  readonly ctaBandwidth: number;
  readonly peakBandwidth: number;
}

function figuresOf({ nRanks, minCompCap }: TuningInput, kernel: SymmetricKernel, bytes: number, rules: Rules): Figures {
  const { collective, isLl, multicast, isTma } = traitsOf(kernel);
  const ownModelOfTma = isTma && rules.symmetricTma === 'own model';
  const reduces = collective === 'AllReduce';
  const scatters = collective === 'ReduceScatter';
  const busBytes = isLl
    ? trunc(nRanks * bytes * LL_FACTOR)
    : !reduces
      ? (nRanks - 1) * bytes
      : multicast === 'none'
        ? trunc((2 * bytes * (nRanks - 1)) / nRanks)
        : trunc(bytes / nRanks) + bytes;
  const multiple = multicast === 'none' ? 1 : isLl ? 1.1 : reduces ? nRanks : (ownModelOfTma ? 0.99 : 1) * (0.55 * nRanks);
  const throughSwitch = kernel === 'AllReduce_RSxLDMC_AGxSTMC';
  if (minCompCap < 100) {
    return {
      busBytes,
      multiple,
      baseUs: isLl ? 4.5 : 7.8,
      ctaBandwidth: (reduces ? 65 : 44) * GIBPS,
      peakBandwidth: (throughSwitch ? 480 : 320) * GIBPS,
    };
  }
  const newer = rules.symmetricModel === 'even';
  const llUs = collective === 'AllGather' ? 8.5 : scatters && newer ? 10.5 : 11;
  const gatherByTma = ownModelOfTma && kernel === 'AllGather_TmaST';
  const peak = throughSwitch ? 1000 : scatters && newer ? 650 : gatherByTma ? 700 : 600;
  return {
    busBytes,
    multiple,
    baseUs: (isLl ? llUs : reduces ? 19.5 : 13) + (ownModelOfTma ? 4 : 0) + (gatherByTma ? 19 : 0),
    ctaBandwidth: 55 * GIBPS,
    peakBandwidth: peak * GIBPS * (ownModelOfTma && kernel !== 'AllGather_TmaSTMC' ? 1.07 : 1),
  };
}

/** The value where it is positive, else 0, with a smooth corner of 1 µs. */
function softPositive(value: number): number {
  return value >= 100 ? value : Math.log1p(Math.exp(value));
}
