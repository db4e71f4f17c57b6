import { type Rules, rulesOf } from '../versions/rules.js';
import { chunkBytes } from './chunk.js';
import { patGoesThroughNvls } from './cost-model/pat.js';
import type { Way } from './flips.js';
import { sizeProduct } from './integers.js';
import type { NcclAlgorithm, Collective, Protocol } from './names.js';
import { type PredictOptions, CallCosts } from './predict.js';
import { MOST_THREADS } from './threads.js';
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

const WARP = 32;

/** Less data gets fewer channels, then fewer threads in each. */
function channelsAndThreads(
  tuning: Tuning,
  algorithm: NcclAlgorithm,
  protocol: Protocol,
  bytes: number,
): Pick<Choice, 'nChannels' | 'nThreads'> {
  const { input } = tuning;
  const most = tuning.maxThreads[algorithm][protocol];
  const threshold = tuning.threadThresholds[algorithm][protocol];
  switch (algorithm) {
    case 'CollNetDirect':
      return { nChannels: collnetDirectChannels(tuning, bytes, most, threshold), nThreads: most };
    case 'NVLS':
    case 'NVLSTree': {
      const nvlsChannels = input.nvls?.nChannels ?? 0;
      const withNetwork = algorithm === 'NVLS' && input.nNodes > 1 && rulesOf(input).nvlsChannelsOfNodes;
      return { nChannels: withNetwork ? Math.min(nvlsChannels, input.nChannels) : nvlsChannels, nThreads: most };
    }
    default: {
      if (algorithm === 'PAT' && patGoesThroughNvls(input))
        return { nChannels: Math.min(input.nChannels, input.nvls?.nChannels ?? 0), nThreads: MOST_THREADS };
      let nChannels = input.callChannels;
      let nThreads = most;
      const isTooLittle = () => bytes < sizeProduct(nChannels, nThreads, threshold);
      while (nChannels >= 2 && isTooLittle()) nChannels--;
      while (nThreads % 128 === 0 && isTooLittle()) nThreads /= 2;
      return { nChannels, nThreads: kernelThreads(algorithm, protocol, nThreads, rulesOf(input)) };
    }
  }
}

/** With Simple, a ring has a WARP that synchronises, and a tree four; kernels of PAT, and mostly of trees, have all threads. */
function kernelThreads(algorithm: NcclAlgorithm, protocol: Protocol, nThreads: number, rules: Rules): number {
  if (algorithm === 'PAT' || (algorithm === 'Tree' && rules.treesUseAllThreads)) return MOST_THREADS;
  const syncWarps = protocol !== 'Simple' ? 0 : algorithm === 'Ring' ? 1 : algorithm === 'Tree' ? 4 : 0;
  return Math.max(3 * WARP, nThreads + syncWarps * WARP);
}

/** Down to 16 channels at the threshold, to 8 at half of it, and so on; NCCL halves it on the way, at 24, 12, 6 … channels. */
function collnetDirectChannels({ input }: Tuning, bytes: number, nThreads: number, fullThreshold: number): number {
  const heads = input.collnet?.directHeads ?? 0;
  let nChannels = input.callChannels;
  let threshold = fullThreshold;
  for (let fewest = 16; fewest >= 1; fewest = Math.floor(fewest / 2)) {
    while (nChannels > fewest && bytes < sizeProduct(nChannels, nThreads, heads, threshold)) {
      if (nChannels === fewest + Math.floor(fewest / 2)) threshold = Math.floor(threshold / 2);
      nChannels--;
    }
  }
  return nChannels;
}
