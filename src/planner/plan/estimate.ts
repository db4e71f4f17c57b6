import { busFactor, type Choice, choose } from '../tuning/choose.js';
import { generationOf } from '../tuning/constants.js';
import type { TuningInput } from '../tuning/input.js';
import type { Collective } from '../tuning/names.js';
import { type PredictOptions, predict } from '../tuning/predict.js';
import type { Tuning } from '../tuning/tune.js';

/** Expected time of a call, from published measurements. */
export interface Estimate {
  /** NCCL's choice, even if another candidate is faster. */
  readonly algorithm: Choice['algorithm'];
  readonly protocol: Choice['protocol'];
  /** Time of a call as nccl-tests measures it, calls launched one after the other without a CUDA graph; µs. */
  readonly timeUs: number;
  /** Size by time, GB/s. */
  readonly algorithmGBps: number;
  /** Bus bandwidth as nccl-tests counts it, GB/s. */
  readonly busGBps: number;
}

/**
 * Links with a measured share of NCCL's believed bandwidth: NVLinks under rings, NVSwitches that reduce, those with trees between
 * nodes, NICs under rings and trees, and LL128 between two Blackwell GPUs.
 */
export type ReachName =
  | 'Ring ampere'
  | 'Ring hopper'
  | 'Ring blackwell'
  | 'NVLS hopper'
  | 'NVLS blackwell'
  | 'NVLSTree hopper'
  | 'network'
  | 'LL128 pair';

/** Corrections of NCCL's belief; the same for all machines. */
export interface EstimateParameters {
  /** µs of a call that NCCL's model does not count, mostly the launch of the kernel. */
  readonly launchUs: number;
  /** Rounds of chunks that pass before all links are busy and after the first is idle again. */
  readonly rounds: number;
  /** Bandwidth of links over NCCL's belief. Links without a published measurement are left out and count as 1. */
  readonly reach: Readonly<Record<ReachName, number>>;
}

/** Fitted to the published results marked `fit` (`fitParameters`, docs/notes/accuracy.md). */
export const measuredParameters: EstimateParameters = {
  launchUs: 12,
  rounds: 1.2,
  reach: {
    'Ring ampere': 0.97,
    'Ring hopper': 1.031,
    'Ring blackwell': 0.952,
    'NVLS hopper': 1.012,
    'NVLS blackwell': 0.924,
    'NVLSTree hopper': 1.056,
    network: 0.992,
    'LL128 pair': 0.615,
  },
};

/** Inputs of the estimate of one call. */
export interface EstimateTerms {
  readonly choice: Choice;
  readonly bytes: number;
  /** NCCL's latency, µs, and bandwidth of the call's data, GB/s. */
  readonly latencyUs: number;
  readonly believedGBps: number;
  /** Data in flight in one round, in bytes of the call's data with the same time. */
  readonly roundBytes: number;
  readonly reach: ReachName | undefined;
}

/**
 * Our estimate for one call, beside NCCL's belief (`choose`). It starts from NCCL's choice, latency and bandwidth, and corrects
 * them by parameters that are the same for all machines:
 *
 *     time = launch + latency + (size + rounds × data on its way) / (bandwidth × reach)
 *
 * The launch of a kernel is not in NCCL's model; links idle before the first chunk has gone round and during the last one; and
 * they reach a little more or less than NCCL's tables. docs/notes/accuracy.md has the fit and the errors.
 *
 * @param bytes size as nccl-tests counts it: for AllGather and ReduceScatter the data of all ranks together
 * @returns undefined where NCCL has no candidate, and for one rank, which exchanges nothing
 * @throws InvalidArgumentError for a size that is not a whole number above 0, or an unknown name
 */
export function estimate(
  tuning: Tuning,
  collective: Collective,
  bytes: number,
  options: PredictOptions = {},
): Estimate | undefined {
  const terms = estimateTerms(tuning, collective, bytes, options);
  if (terms === undefined) return undefined;
  const { algorithm, protocol } = terms.choice;
  const timeUs = estimateTimeUs(terms, measuredParameters);
  const algorithmGBps = bytes / timeUs / 1000;
  return { algorithm, protocol, timeUs, algorithmGBps, busGBps: algorithmGBps * busFactor(collective, tuning.input.nRanks) };
}

/** The formula of {@link estimate}. */
export function estimateTimeUs(
  { bytes, latencyUs, believedGBps, roundBytes, reach }: EstimateTerms,
  parameters: EstimateParameters,
): number {
  const gbps = believedGBps * (reach === undefined ? 1 : parameters.reach[reach]);
  return parameters.launchUs + latencyUs + (bytes + parameters.rounds * roundBytes) / gbps / 1000;
}

/** Returns undefined and throws as {@link estimate}. */
export function estimateTerms(
  tuning: Tuning,
  collective: Collective,
  bytes: number,
  options: PredictOptions,
): EstimateTerms | undefined {
  const { input } = tuning;
  const choice = choose(tuning, collective, bytes, options);
  if (choice === undefined || input.nRanks === 1) return undefined;
  const { algorithm, protocol } = choice;
  const believed = predict(tuning, collective, bytes, options).find(
    (way) => way.algorithm === algorithm && way.protocol === protocol,
  );
  if (believed === undefined || believed.latencyUs === null || believed.bandwidthGBps === null) return undefined;
  return {
    choice,
    bytes,
    latencyUs: believed.latencyUs,
    believedGBps: believed.bandwidthGBps,
    // A ring's links carry each part of the data several times, all others once in each direction.
    roundBytes:
      bytesOnTheirWay(input, collective, bytes, choice) / (algorithm === 'Ring' ? busFactor(collective, input.nRanks) : 1),
    reach: reachOf(input, choice),
  };
}

function reachOf({ minCompCap, nNodes, nRanks }: TuningInput, { algorithm, protocol }: Choice): ReachName | undefined {
  const generation = generationOf(minCompCap);
  const name = `${algorithm} ${generation}`;
  if (algorithm === 'NVLS' || algorithm === 'NVLSTree') return isReachName(name) ? name : undefined;
  if (protocol === 'LL') return undefined;
  if (algorithm === 'Ring' && protocol === 'LL128')
    return nRanks === 2 && nNodes === 1 && generation === 'blackwell' ? 'LL128 pair' : undefined;
  if (nNodes > 1) return 'network';
  return isReachName(name) ? name : undefined;
}

function isReachName(name: string): name is ReachName {
  return Object.hasOwn(measuredParameters.reach, name);
}

/** A chunk in each channel, with NVLink SHARP also for each head; less where the call has less data. */
function bytesOnTheirWay(
  { nRanks, nvls }: TuningInput,
  collective: Collective,
  bytes: number,
  { algorithm, nChannels, chunkBytes }: Choice,
): number {
  const heads = algorithm === 'NVLS' || algorithm === 'NVLSTree' ? (nvls?.nHeads ?? 1) : 1;
  const isCut = algorithm === 'Ring' && collective !== 'Broadcast' && collective !== 'Reduce';
  return Math.min(nChannels * heads * chunkBytes, isCut ? bytes / nRanks : bytes);
}
