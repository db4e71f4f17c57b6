import { InvalidArgumentError } from '../../errors.js';
import { didYouMean } from '../../suggest.js';
import type { Fabric } from './fabric.js';

/** Ways to launch calls. */
export const launches = ['queued', 'single', 'graph'] as const;
/** Network plugins. */
export const networks = ['verbs', 'efa', 'sockets', 'tcpx'] as const;
/** One of {@link networks}. */
export type Network = (typeof networks)[number];

/** Conditions that a call's time depends on besides its plan. */
export interface Environment {
  /**
   * Launch of calls. `queued` (default): many calls wait on the stream, which hides their launches; `single`: each begins on an
   * empty stream, as PyTorch does it; `graph`: from a CUDA graph.
   */
  readonly launch: (typeof launches)[number];
  /**
   * GPUs that one thread launches on, one after the other (`-g` of nccl-tests). Calls that are shorter than all these
   * launches wait for them. Default: 1.
   */
  readonly gpusPerThread?: number;
  /** Difference between the ranks' start times, µs. Default: 0. */
  readonly skewUs: number | undefined;
  /** Network plugin: InfiniBand verbs, AWS EFA, sockets of the kernel, or Google's GPUDirect-TCPX and TCPXO. Default: `verbs`. */
  readonly network: Network;
  /** Bandwidth of all hosts over that of the fabric above their switches. Default: 1, a fabric without a bottleneck. */
  readonly oversubscription: number;
  /** The switches between hosts. Default: undefined, every NIC reaches every other at its full speed. */
  readonly fabric?: Fabric;
}

/** Queued calls, InfiniBand or RoCE through verbs, a fabric without oversubscription. */
export const defaultEnvironment: Environment = { launch: 'queued', skewUs: undefined, network: 'verbs', oversubscription: 1 };

/**
 * Additional µs of a hop over one with verbs: EFA's and the kernel's own latency, as published for small messages, and a round
 * figure for TCPXO: an all-reduce of 8 bytes on two a3-megagpu-8g takes 123 µs.
 */
export const networkExtraUs: Readonly<Record<Network, number>> = { verbs: 0, efa: 12, sockets: 25, tcpx: 20 };

/**
 * A word of a list, as one of {@link launches} or {@link networks}.
 *
 * @param what the kind of word, for the error
 * @throws InvalidArgumentError `UNKNOWN_NAME` for another word
 */
export function wordOf<Word extends string>(text: string, words: readonly Word[], what: string): Word {
  const word = text.trim().toLowerCase();
  const known = words.find((each) => each === word);
  if (known !== undefined) return known;
  throw new InvalidArgumentError(
    'UNKNOWN_NAME',
    `no ${what} '${text}'${didYouMean(word, words)} (there are ${words.join(', ')})`,
  );
}
