import { type Rules, rulesOf } from '../versions/rules.js';
import { patGoesThroughNvls } from './cost-model/pat.js';
import { sizeProduct } from './integers.js';
import type { NcclAlgorithm, Protocol } from './names.js';
import { MOST_THREADS } from './threads.js';
import type { Tuning } from './tune.js';

/** Less data gets fewer channels, then fewer threads in each. */
export function channelsAndThreads(
  tuning: Tuning,
  algorithm: NcclAlgorithm,
  protocol: Protocol,
  bytes: number,
): { readonly nChannels: number; readonly nThreads: number } {
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

const WARP = 32;

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
