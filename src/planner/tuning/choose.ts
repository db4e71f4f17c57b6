import { channelsAndThreads } from './channels.js';
import { chunkBytes } from './chunk.js';
import type { Way } from './flips.js';
import type { NcclAlgorithm, Collective, Protocol } from './names.js';
import { type PredictOptions, CallCosts } from './predict.js';
import type { Tuning } from './tune.js';

/** NCCL's choice for a call. */
export interface Choice {
  readonly algorithm: NcclAlgorithm;
  readonly protocol: Protocol;
  /** Time that NCCL believes, µs. A C float. */
  readonly timeUs: number;
  /** Maximum number of channels of the call. */
  readonly nChannels: number;
  /** Threads of each channel. */
  readonly nThreads: number;
  /** Bytes that move from rank to rank at a time if all channels take equal parts; 0 with one rank, which only copies. */
  readonly chunkBytes: number;
  /** Size by time, GB/s; 0 where no time passes. */
  readonly algorithmGBps: number;
  /** Bus bandwidth as nccl-tests counts it, GB/s. */
  readonly busGBps: number;
}

/**
 * NCCL's choice for one call: the candidate of least predicted time, and then channels and threads by size.
 *
 * @param bytes size as nccl-tests counts it: for AllGather and ReduceScatter the data of all ranks together
 * @returns undefined without a candidate, which NCCL fails; `predict` gives the reasons
 * @throws InvalidArgumentError for a size that is not a whole number above 0, or an unknown name
 */
export function choose(tuning: Tuning, collective: Collective, bytes: number, options: PredictOptions = {}): Choice | undefined {
  const best = new CallCosts(tuning, collective, options).best(bytes);
  return best && choiceOf(tuning, collective, bytes, best);
}

/** A choice for a call from elsewhere than NCCL's model. */
export interface GivenWay extends Way {
  /** Maximum number of channels of the call; default: NCCL's number for this candidate and size. */
  readonly nChannels?: number;
}

/**
 * NCCL's decisions for one call with a given algorithm and protocol, such as a tuner plugin's.
 *
 * @returns undefined if the candidate is impossible; `predict` gives the reasons
 * @throws InvalidArgumentError for a size that is not a whole number above 0, or an unknown name
 */
export function chooseWay(
  tuning: Tuning,
  collective: Collective,
  bytes: number,
  way: GivenWay,
  options: PredictOptions = {},
): Choice | undefined {
  const { algorithm, protocol } = way;
  const candidate = new CallCosts(tuning, collective, options)
    .predict(bytes)
    .find((each) => each.algorithm === algorithm && each.protocol === protocol);
  const timeUs = candidate?.timeUs ?? null;
  return timeUs === null ? undefined : choiceOf(tuning, collective, bytes, { ...way, timeUs });
}

/** Channels that a communicator has for an algorithm. */
export function mostChannels({ input }: Tuning, algorithm: NcclAlgorithm): number {
  return algorithm === 'NVLS' || algorithm === 'NVLSTree' ? (input.nvls?.nChannels ?? 0) : input.nChannels;
}

/** NCCL's choice if it took this algorithm and protocol. */
export function choiceOf(
  tuning: Tuning,
  collective: Collective,
  bytes: number,
  { algorithm, protocol, timeUs, nChannels: asked }: GivenWay & { readonly timeUs: number },
): Choice {
  const { nRanks } = tuning.input;
  const own = channelsAndThreads(tuning, algorithm, protocol, bytes);
  const { nThreads } = own;
  const nChannels = asked === undefined ? own.nChannels : Math.min(asked, mostChannels(tuning, algorithm));
  const algorithmGBps = timeUs === 0 ? 0 : bytes / timeUs / 1000;
  return {
    algorithm,
    protocol,
    timeUs,
    nChannels,
    nThreads,
    chunkBytes: nRanks === 1 ? 0 : chunkBytes(tuning, { collective, algorithm, protocol, bytes, nChannels }),
    algorithmGBps,
    busGBps: algorithmGBps * busFactor(collective, nRanks),
  };
}

/** Bus bandwidth over algorithm bandwidth: the share of the data that each rank's link carries. */
export function busFactor(collective: Collective, nRanks: number): number {
  switch (collective) {
    case 'AllReduce':
      return (2 * (nRanks - 1)) / nRanks;
    case 'AllGather':
    case 'ReduceScatter':
      return (nRanks - 1) / nRanks;
    case 'Broadcast':
    case 'Reduce':
      return 1;
  }
}
