import type { Fabric } from './fabric.js';

/** Conditions that a call's time depends on besides its plan. */
export interface Environment {
  /**
   * Launch of calls. `queued` (default): many calls wait on the stream, which hides their launches (nccl-tests with one process);
   * `processes`: the same with a process for each GPU, whose launches differ in time; `graph`: from a CUDA graph.
   */
  readonly launch: 'queued' | 'processes' | 'graph';
  /**
   * Difference between the ranks' start times, µs. Default: 0 for `queued` and `graph`; for `processes` the additional time
   * of published results over the same calls of one process (`processesUs` of the calibration).
   */
  readonly skewUs: number | undefined;
  /** Network plugin: InfiniBand verbs, AWS EFA, or sockets of the kernel. Default: `verbs`. */
  readonly network: 'verbs' | 'efa' | 'sockets';
  /** Bandwidth of all hosts over that of the fabric above their switches. Default: 1, a fabric without a bottleneck. */
  readonly oversubscription: number;
  /** The switches between hosts. Default: undefined, every NIC reaches every other at its full speed. */
  readonly fabric?: Fabric;
}

/** Queued calls, InfiniBand or RoCE through verbs, a fabric without oversubscription. */
export const defaultEnvironment: Environment = { launch: 'queued', skewUs: undefined, network: 'verbs', oversubscription: 1 };

/** Additional µs of a hop over one with verbs: EFA's and the kernel's own latency, as published for small messages. */
export const networkExtraUs: Readonly<Record<Environment['network'], number>> = { verbs: 0, efa: 12, sockets: 25 };
