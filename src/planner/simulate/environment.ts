import type { Fabric } from './fabric.js';

/** Conditions that a call's time depends on besides its plan. */
export interface Environment {
  /**
   * Launch of calls. `queued` (default): many calls wait on the stream, which hides their launches; `graph`: from a CUDA graph.
   */
  readonly launch: 'queued' | 'graph';
  /**
   * GPUs that one thread launches on, one after the other (`-g` of nccl-tests). Calls that are shorter than all these
   * launches wait for them. Default: 1.
   */
  readonly gpusPerThread?: number;
  /** Difference between the ranks' start times, µs. Default: 0. */
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
