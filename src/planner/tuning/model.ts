import type { Parameters } from '../parameters.js';
import type { Rules } from '../versions/rules.js';
import type { TuningInput } from './input.js';
import type { Collective, DataTypeName, NcclAlgorithm, OperatorName, Protocol } from './names.js';
import type { Reason } from './reasons.js';
import type { ByCandidate } from './threads.js';

/** Bound on the bandwidth of a candidate. */
export type BandwidthLimit =
  /** The channels that the search found, times the efficiency of the protocol. */
  | 'graph'
  /** The limit of LL, by GPUs on one node, by CPUs between several. */
  | 'll'
  /** The limit of one channel with this algorithm and protocol on such GPUs. */
  | 'channel'
  /** Calls that the NVSwitch reduces. */
  | 'switch'
  /** Bandwidth of a head to other nodes. */
  | 'network';

export interface Bandwidth {
  /** GB/s of the data of the call. A C float. */
  readonly gbps: number;
  readonly limit: BandwidthLimit;
}

/** NCCL's belief about one collective with one algorithm and protocol. */
export interface Model {
  /** GB/s of the call's data for large calls; 0 if it is disabled. A C float. */
  readonly bandwidthGBps: number;
  /** µs for very small calls; 0 where NCCL computes none. A C float. */
  readonly latencyUs: number;
  /** The bandwidth before anything disables it. */
  readonly wouldBeGBps: number;
  /** Bound on that; null if it is 0. */
  readonly limit: BandwidthLimit | null;
  /** Reasons why it is disabled; empty if it is not. */
  readonly disabled: readonly Reason[];
}

export type ModelsOfCollective = Readonly<Record<NcclAlgorithm, Readonly<Record<Protocol, Model>>>>;
export type Models = Readonly<Record<Collective, ModelsOfCollective>>;

/** A call, as far as its time depends on it, but for its size. */
export interface CallKind {
  readonly input: TuningInput;
  readonly rules: Rules;
  readonly collective: Collective;
  readonly dataType: DataTypeName;
  readonly operator: OperatorName;
  /** Number of operations of a group that share a channel. */
  readonly operations: number;
}

/** A call whose time is asked for. */
export interface CostedCall extends CallKind {
  /** Channels that a candidate uses for a size. */
  readonly channelsOf: (algorithm: NcclAlgorithm, protocol: Protocol, bytes: number) => number;
}

/** Time of a call, in NCCL's floats. */
export interface Cost {
  readonly timeUs: number;
  readonly latencyUs: number;
  readonly bandwidthGBps: number;
}

/**
 * A model of time. NCCL has had two: a table of costs, up to 2.30, and a list of candidates with a model each, since 2.31.
 * `modelOf` says which a version has.
 */
export interface TuningModel {
  /**
   * NCCL's beliefs about all collectives, as computed once for a communicator.
   *
   * @throws InvalidUsageError where NCCL refuses a list of algorithms or protocols
   */
  models(input: TuningInput, parameters: Parameters): Models;
  maxThreads(input: TuningInput, parameters: Parameters): ByCandidate;
  threadThresholds(input: TuningInput, parameters: Parameters): ByCandidate;
  /** Reasons why a call cannot use an algorithm that the communicator has. */
  callReasons(call: CallKind, algorithm: NcclAlgorithm): Reason[];
  /** The time of a call of that size with an enabled candidate. */
  cost(call: CostedCall, algorithm: NcclAlgorithm, protocol: Protocol, model: Model, bytes: number): Cost;
  /** Bandwidth of a ring with that model if a call has no candidate; 0 if NCCL does not use it then. */
  lastResortGBps(model: Model, rules: Rules): number;
  /** Sizes besides powers of two where the time of a candidate is not linear. */
  bends(input: TuningInput): number[];
}

/** Absence of figures for one reason. */
export function absent(reason: Reason): Model {
  return { bandwidthGBps: 0, latencyUs: 0, wouldBeGBps: 0, limit: null, disabled: [reason] };
}

/** Figures of a candidate, disabled where there are reasons. One rank alone has none where data go around. */
export function modelWith(bandwidth: Bandwidth, latencyUs: number, disabled: readonly Reason[]): Model {
  const { limit } = bandwidth;
  const gbps = Number.isFinite(bandwidth.gbps) ? bandwidth.gbps : 0;
  return {
    bandwidthGBps: disabled.length > 0 ? 0 : gbps,
    latencyUs,
    wouldBeGBps: gbps,
    limit: gbps === 0 ? null : limit,
    disabled,
  };
}

/** Time that NCCL gives a candidate which is valid but only for want of others: half the largest C float. */
export const LAST_CHOICE_US = Math.fround(1.7014117331926443e38);
