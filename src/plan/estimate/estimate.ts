import { busFactor, type Choice, choose } from '../../tuning/choose.js';
import { type Generation, generationOf } from '../../tuning/constants.js';
import type { TuningInput } from '../../tuning/input.js';
import type { Collective } from '../../tuning/names.js';
import { type CallOptions, predict } from '../../tuning/predict.js';
import type { Tuning } from '../../tuning/tune.js';

/** What a call will take in truth, as far as published measurements tell. */
export interface Estimate {
  /** As NCCL chooses, rightly or wrongly. */
  readonly algorithm: Choice['algorithm'];
  readonly protocol: Choice['protocol'];
  /** Time of a call as nccl-tests takes it, calls launched one after the other without a CUDA graph; µs. */
  readonly timeUs: number;
  /** Size by time, GB/s. */
  readonly algorithmGBps: number;
  /** What links carry then, as nccl-tests counts it, GB/s. */
  readonly busGBps: number;
}

/** µs that a call costs beside what NCCL's model counts: launching the kernel, above all. */
const launchUs = 12;

/** How many rounds of chunks pass before all links are busy and after the first stops being so. */
const fillRounds = 1.2;

/**
 * What links reach of the bandwidth that NCCL believes in, each from the largest size of one published result:
 * NVLinks under a ring, NVLinks and NVSwitches that reduce, and those with trees between nodes. What is not here, nobody
 * was found to have measured, and counts as 1.
 */
const reach: Readonly<Record<'Ring' | 'NVLS' | 'NVLSTree', Partial<Record<Generation, number>>>> = {
  Ring: { ampere: 0.97, hopper: 1.031, blackwell: 0.952 },
  NVLS: { hopper: 1.012, blackwell: 0.924 },
  NVLSTree: { hopper: 1.056 },
};

/** The same for NICs under rings and trees. */
const networkReach = 0.992;

/** The same for LL128 between two Blackwell GPUs, where NCCL's figure for a channel is far too high. */
const pairReach = 0.615;

/**
 * Our estimate for one call, beside what NCCL believes (`choose`). It starts from NCCL's choice, latency and bandwidth,
 * and corrects three things by parameters that are the same for all machines:
 *
 *     time = launch + latency + (size + rounds × data on its way) / (bandwidth × reach)
 *
 * The launch of a kernel is not in NCCL's model. Data moves in chunks: until the first has come round and while the last
 * does, links idle, which at middle sizes costs as much as the transfer. And links reach a little more or less than NCCL
 * has in its tables. docs/accuracy.md tells how the parameters were found and how far the estimate is off.
 *
 * @param bytes size as nccl-tests counts it: for AllGather and ReduceScatter the data of all ranks together
 * @returns undefined where NCCL has nothing to choose from, and for one rank, which exchanges nothing
 * @throws InvalidArgumentError for a size that is not a whole number above 0, or an unknown name
 */
export function estimate(tuning: Tuning, collective: Collective, bytes: number, options: CallOptions = {}): Estimate | undefined {
  const { input } = tuning;
  const choice = choose(tuning, collective, bytes, options);
  if (choice === undefined || input.nRanks === 1) return undefined;
  const { algorithm, protocol } = choice;
  const believed = predict(tuning, collective, bytes, options).find((way) => way.algorithm === algorithm && way.protocol === protocol);
  if (believed === undefined || believed.latencyUs === null || believed.bandwidthGBps === null) return undefined;

  const gbps = believed.bandwidthGBps * reachOf(input, choice);
  const factor = busFactor(collective, input.nRanks);
  // A ring's links carry each part of the data several times, all others once in each direction.
  const linkGBps = algorithm === 'Ring' ? gbps * factor : gbps;
  const fillUs = (fillRounds * bytesOnTheirWay(input, collective, bytes, choice)) / linkGBps / 1000;
  const timeUs = launchUs + believed.latencyUs + fillUs + bytes / gbps / 1000;
  const algorithmGBps = bytes / timeUs / 1000;
  return { algorithm, protocol, timeUs, algorithmGBps, busGBps: algorithmGBps * factor };
}

function reachOf({ minCompCap, nNodes, nRanks }: TuningInput, { algorithm, protocol }: Choice): number {
  const generation = generationOf(minCompCap);
  if (algorithm === 'NVLS' || algorithm === 'NVLSTree') return reach[algorithm][generation] ?? 1;
  if (protocol === 'LL') return 1;
  if (algorithm === 'Ring' && protocol === 'LL128') return nRanks === 2 && nNodes === 1 && generation === 'blackwell' ? pairReach : 1;
  if (nNodes > 1) return networkReach;
  return algorithm === 'Ring' ? reach.Ring[generation] ?? 1 : 1;
}

/** A chunk in each channel, with NVLink SHARP one for each head too; smaller where there is less data than that. */
function bytesOnTheirWay({ nRanks, nvls }: TuningInput, collective: Collective, bytes: number, { algorithm, nChannels, chunkBytes }: Choice): number {
  const heads = algorithm === 'NVLS' || algorithm === 'NVLSTree' ? nvls?.nHeads ?? 1 : 1;
  const isCut = algorithm === 'Ring' && collective !== 'Broadcast' && collective !== 'Reduce';
  return Math.min(nChannels * heads * chunkBytes, isCut ? bytes / nRanks : bytes);
}
