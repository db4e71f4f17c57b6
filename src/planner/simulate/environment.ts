import type { Fabric } from './fabric.js';

/** Conditions that a call's time depends on besides its plan. */
export interface Environment {
  /**
   * Way in which calls are launched. `queued`: many calls wait on the stream, so that launching one is hidden behind the one
   * before (nccl-tests with one process). `processes`: the same from a process a GPU, whose launches are not at the
   * same time. `graph`: from a CUDA graph. Default: `queued`, as most measurements here were taken.
   */
  readonly launch: 'queued' | 'processes' | 'graph';
  /**
   * Difference between the ranks' start times, µs. Default: 0 for `queued` and `graph`; for `processes` the additional time
   * of published results over the same calls of one process (`processesUs` of the calibration).
   */
  readonly skewUs: number | undefined;
  /** Network plugin: InfiniBand verbs, AWS EFA, or sockets of the kernel. Default: `verbs`. */
  readonly network: 'verbs' | 'efa' | 'sockets';
  /**
   * Bandwidth of all hosts by that of the fabric above their switches, 1 for a fabric without a bottleneck.
   * Default: 1.
   */
  readonly oversubscription: number;
  /** The switches between hosts. Default: undefined, every NIC reaches every other at its full speed. */
  readonly fabric?: Fabric;
}

/** Queued calls, InfiniBand or RoCE through verbs, a fabric without oversubscription. */
export const defaultEnvironment: Environment = { launch: 'queued', skewUs: undefined, network: 'verbs', oversubscription: 1 };

/**
 * µs that a hop takes beyond one with verbs: EFA's and the kernel's own latency, as their makers publish it for small
 * messages.
 */
export const networkExtraUs: Readonly<Record<Environment['network'], number>> = { verbs: 0, efa: 12, sockets: 25 };
