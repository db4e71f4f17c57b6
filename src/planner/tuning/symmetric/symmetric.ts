import { type Rules, rulesOf } from '../../versions/rules.js';
import { busFactor, type Choice, choose } from '../choose.js';
import type { CallKind } from '../model.js';
import { type Collective, elementBytes } from '../names.js';
import type { PredictOptions } from '../predict.js';
import type { Tuning } from '../tune.js';
import { ctaRange, domainEstimate, type Estimate, mostCtasOf } from './domain-model.js';
import { gatherByCopyEnginesUs } from './copy-engines.js';
import { kernelsOf, type SymmetricKernel, traitsOf } from './kernels.js';
import { railEstimate } from './rail-model.js';
import type { KernelReason, NoSymmetricReason } from './reasons.js';
import { fewestTmaBytes, isForced, kernelReasons, noSymmetricKernels, noSymmetricMemory } from './support.js';

/** A symmetric kernel for a call, with NCCL's belief. */
export interface KernelPrediction {
  readonly kernel: SymmetricKernel;
  /** Time that NCCL's model gives it, µs; null if it cannot do the call. A C float. */
  readonly timeUs: number | null;
  /** CTAs, each of 512 threads; null like `timeUs`. */
  readonly ctas: number | null;
  /** Reasons against it; empty if `timeUs` is a number. */
  readonly reasons: readonly KernelReason[];
}

/** The kernels or engines that do a call. */
export type CallWay =
  | { readonly kind: 'general'; readonly choice: Choice | undefined; readonly because: NoSymmetricReason }
  | (KernelTimes & { readonly kind: 'symmetric'; readonly kernel: SymmetricKernel; readonly ctas: number })
  /** Copy engines of the GPUs, and no kernel. */
  | (KernelTimes & { readonly kind: 'copy engines' });

/** Time of a call without a general kernel. */
interface KernelTimes {
  /** µs. A C float. */
  readonly timeUs: number;
  /** Bus bandwidth as nccl-tests counts it, GB/s. */
  readonly busGBps: number;
}

/**
 * Chooses for a call whose buffers may lie in symmetric windows: a symmetric kernel, copy engines, or a general kernel with the
 * choice of {@link choose}.
 *
 *     const parameters = { ...defaultParameters, windows: 'both' };
 *     chooseWithWindows(tune(made, parameters), 'AllReduce', 1 << 20)     // { kind: 'symmetric', kernel: 'AllReduce_…', … }
 *
 * NCCL's rules are read from its source; no recorded answer shows them.
 *
 * @param bytes size as nccl-tests counts it: for AllGather and ReduceScatter the data of all ranks together
 * @throws InvalidArgumentError as {@link choose} does
 */
export function chooseWithWindows(tuning: Tuning, collective: Collective, bytes: number, options: PredictOptions = {}): CallWay {
  const call = callOf(tuning, collective, options);
  const { input, rules } = call;
  if (takesCopyEngines(call, bytes)) {
    const timeUs = gatherByCopyEnginesUs(input, bytes / input.nRanks);
    return { kind: 'copy engines', timeUs, busGBps: busGBps(call, bytes, timeUs) };
  }
  const general = (because: NoSymmetricReason): CallWay => ({
    kind: 'general',
    choice: choose(tuning, collective, bytes, options),
    because,
  });
  const missing = noSymmetricKernels(call);
  if (missing !== undefined) return general(missing);
  const best = bestKernel(predictKernels(tuning, collective, bytes, options), rules);
  if (best === undefined) return general({ why: 'no-kernel' });
  const withoutLl = fallsBack(tuning, call, best.kernel, bytes, options);
  if (withoutLl !== undefined) return general(withoutLl);
  return { kind: 'symmetric', ...best, busGBps: busGBps(call, bytes, best.timeUs) };
}

/** All symmetric kernels of a version for one call, in NCCL's order, with the time that its model gives each. */
export function predictKernels(
  tuning: Tuning,
  collective: Collective,
  bytes: number,
  options: PredictOptions = {},
): KernelPrediction[] {
  const call = callOf(tuning, collective, options);
  const { input, rules } = call;
  const ofRank = bytesOfRank(call, bytes);
  return kernelsOf(rules)
    .filter((kernel) => traitsOf(kernel).collective === collective)
    .map((kernel): KernelPrediction => {
      const reasons = kernelReasons(call, kernel, ofRank);
      if (reasons.length > 0) return { kernel, timeUs: null, ctas: null, reasons };
      const estimate = traitsOf(kernel).isBetweenDomains
        ? railEstimate(input, kernel, ofRank, rules)
        : domainEstimate(input, kernel, ofRank, tmaRange(call, kernel, ofRank), rules);
      return { kernel, ...estimate, reasons };
    });
}

/** The CTAs of a kernel; those that copy by TMA have no more than can each do a step. */
function tmaRange({ input, rules }: CallKind, kernel: SymmetricKernel, bytes: number) {
  const range = ctaRange(input, mostCtasOf(input, kernel), rules);
  if (!traitsOf(kernel).isTma || rules.symmetricTma !== 'own model') return range;
  if (bytes < fewestTmaBytes(input, kernel, range.fewest)) return range;
  let { most } = range;
  while (most > range.fewest && bytes < fewestTmaBytes(input, kernel, most)) most -= most === 2 ? 1 : 2;
  return { ...range, most };
}

function callOf(
  { input }: Tuning,
  collective: Collective,
  { dataType = 'float32', operator = 'sum', operations = 1 }: PredictOptions,
): CallKind {
  return { input, rules: rulesOf(input), collective, dataType, operator, operations };
}

/** The size of a call as the model of symmetric kernels counts it: that of one rank's part. */
function bytesOfRank({ input: { nRanks }, rules, collective }: CallKind, bytes: number): number {
  const own = collective === 'AllReduce' ? bytes : Math.ceil(bytes / nRanks);
  return rules.symmetricCells ? Math.ceil(own / CELL_BYTES) * CELL_BYTES : own;
}

const CELL_BYTES = 1024;

/** Each CTA makes a kernel 2.5 % less welcome. */
const CTA_PENALTY = Math.fround(0.025);

function bestKernel(
  predictions: readonly KernelPrediction[],
  { tieGoesTo }: Rules,
): (Estimate & { readonly kernel: SymmetricKernel }) | undefined {
  const { fround } = Math;
  let best: (Estimate & { readonly kernel: SymmetricKernel }) | undefined;
  let least = Infinity;
  for (const { kernel, timeUs, ctas } of tieGoesTo === 'first' ? predictions : predictions.toReversed()) {
    if (timeUs === null || ctas === null) continue;
    const weighed = fround(timeUs * fround(1 + fround(CTA_PENALTY * ctas)));
    if (weighed >= least) continue;
    least = weighed;
    best = { kernel, timeUs, ctas };
  }
  return best;
}

/** Reason why a call takes a general kernel although a symmetric LL kernel is the fastest. */
function fallsBack(
  tuning: Tuning,
  call: CallKind,
  kernel: SymmetricKernel,
  bytes: number,
  options: PredictOptions,
): NoSymmetricReason | undefined {
  const { rules, input } = call;
  const { windows, settings } = input.symmetric;
  if (!traitsOf(kernel).isLl || rules.symmetricLl === 'always' || isForced(call)) return undefined;
  if (windows === 'both' && rules.symmetricLl === 'both or general ll') return undefined;
  if (windows === 'none' && settings.symmetricWithoutWindows === 0) return { why: 'no-windows' };
  const choice = choose(tuning, call.collective, bytes, options);
  if (choice?.protocol === 'LL') return undefined;
  return { why: 'general-not-ll', general: choice === undefined ? 'nothing' : `${choice.algorithm} ${choice.protocol}` };
}

/** Elements of a rank above which AllGather takes copy engines by itself. */
const GATHER_ELEMENTS = 8 * 2 ** 20;

/** True where copy engines do an AllGather; AllToAll, Gather and Scatter have no model in NCCL. */
function takesCopyEngines(call: CallKind, bytes: number): boolean {
  const { input, rules, collective, dataType } = call;
  const { symmetric, nRanks, minCompCap, nvls } = input;
  const { windows, settings, domainRanks } = symmetric;
  if (rules.copyEngines === 'never' || collective !== 'AllGather' || nRanks === 1) return false;
  if (windows === 'none' || windows === 'send' || noSymmetricMemory(input, rules) !== undefined) return false;
  const byPolicy = settings.ctaPolicy === 'zero';
  if (rules.copyEngines === 'policy') return byPolicy && windows === 'both';
  if (domainRanks < nRanks) return byPolicy && rules.copyEngines !== 'large gathers' && windows === 'both';
  if (byPolicy) return true;
  const multicasts = nvls !== null && domainRanks >= rules.symmetricMulticastRanks;
  const copiesByTma = settings.symmetricTma !== 0 && minCompCap >= 100;
  const factor = rules.copyEngines === 'later' && !multicasts && copiesByTma ? 4 : 1;
  const threshold = settings.copyEngineThreshold ?? factor * GATHER_ELEMENTS;
  return minCompCap >= 100 && bytes / nRanks / elementBytes(dataType) > threshold;
}

function busGBps({ collective, input }: CallKind, bytes: number, timeUs: number): number {
  return (bytes / timeUs / 1000) * busFactor(collective, input.nRanks);
}
