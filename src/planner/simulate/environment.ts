import { InvalidArgumentError } from '../../errors.js';
import { didYouMean } from '../../suggest.js';
import type { Fabric } from './fabric.js';
import type { Physics } from './physics.js';

/** Ways to launch calls. */
export const launches = ['queued', 'single', 'graph'] as const;
/** Kinds of networks between hosts. */
export const networks = ['verbs', 'infiniband', 'roce', 'efa', 'efa-v1', 'slingshot', 'sockets', 'tcpx'] as const;
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
  /**
   * Network: InfiniBand, RoCE, or `verbs` for one of both; AWS EFA, `efa-v1` for its first generation, without RDMA writes (p4d);
   * Slingshot; sockets of the kernel; Google's GPUDirect-TCPX and TCPXO. Default: `verbs`.
   */
  readonly network: Network;
  /** Bandwidth of all hosts over that of the fabric above their switches. Default: 1, a fabric without a bottleneck. */
  readonly oversubscription: number;
  /** The switches between hosts. Default: undefined, every NIC reaches every other at its full speed. */
  readonly fabric?: Fabric;
}

/** Queued calls, InfiniBand or RoCE through verbs, a fabric without oversubscription. */
export const defaultEnvironment: Environment = { launch: 'queued', skewUs: undefined, network: 'verbs', oversubscription: 1 };

/** Times of a network beyond those of InfiniBand, µs. */
interface NetworkCosts {
  readonly hopUs: number;
  /** For each message of a NIC. */
  readonly stepUs: number;
  /** For a hop of a message that is not sent at once (`EAGER_BYTES`). */
  readonly rendezvousUs: number;
}

/** Wire bytes from which on AWS's plugin of libfabric waits for the receiver (OFI_NCCL_EAGER_MAX_SIZE, less a header). */
export const EAGER_BYTES = 8192;
const none: NetworkCosts = { hopUs: 0, stepUs: 0, rendezvousUs: 0 };

/** Costs of a network beyond those of InfiniBand. */
export function networkCosts(network: Network, common: Physics['common']): NetworkCosts {
  switch (network) {
    case 'infiniband':
      return none;
    case 'roce':
      return { ...none, hopUs: common.roceHopUs };
    case 'verbs':
      return { ...none, hopUs: common.roceHopUs / 2 };
    case 'slingshot':
      return { hopUs: common.slingshotHopUs, stepUs: common.slingshotStepUs, rendezvousUs: common.slingshotRendezvousUs };
    case 'efa':
      return { hopUs: common.efaHopUs, stepUs: common.efaStepUs, rendezvousUs: common.efaRendezvousUs };
    case 'efa-v1':
      return { ...none, hopUs: common.efaFirstHopUs, stepUs: common.efaFirstStepUs };
    // Not fitted. Sockets: the kernel's own latency, as published for small messages.
    case 'sockets':
      return { ...none, hopUs: 25 };
    // A round figure for TCPXO: an all-reduce of 8 bytes on two a3-megagpu-8g takes 123 µs.
    case 'tcpx':
      return { ...none, hopUs: 20 };
  }
}

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
