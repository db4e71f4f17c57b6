import { InvalidArgumentError } from '../../errors.js';
import { didYouMean } from '../../suggest.js';
import { rulesOf } from '../versions/rules.js';
import { channelsAndThreads } from './channels.js';
import type { Cost, CostedCall, Model, TuningModel } from './model.js';
import { tuningModelOf } from './models.js';
import {
  type NcclAlgorithm,
  algorithms,
  type Collective,
  collectives,
  dataTypes,
  type DataTypeName,
  type OperatorName,
  operators,
  type Protocol,
  protocols,
} from './names.js';
import type { Reason } from './reasons.js';
import type { Tuning } from './tune.js';

/** Properties of a call besides collective and size. */
export interface PredictOptions {
  /** float32 when not given. */
  readonly dataType?: DataTypeName;
  /** sum when not given. */
  readonly operator?: OperatorName;
  /** Number of operations of a group that share a channel (NCCL's `numPipeOps`); 1 when not given. */
  readonly operations?: number;
}

/** A candidate for a call: algorithm and protocol, with NCCL's belief. */
export interface Prediction {
  readonly algorithm: NcclAlgorithm;
  readonly protocol: Protocol;
  /** Time that NCCL believes, µs; null if the call cannot be done this way. A C float. */
  readonly timeUs: number | null;
  /** The part of it that does not grow with size, corrected by NCCL for this size; null like `timeUs`. */
  readonly latencyUs: number | null;
  /** GB/s of the rest, with NCCL's corrections for this size; null like `timeUs`. */
  readonly bandwidthGBps: number | null;
  /** Reasons against it; empty if `timeUs` is a number. */
  readonly reasons: readonly Reason[];
}

/**
 * All algorithms and protocols for one call, in NCCL's order, with the time that NCCL's model gives each.
 *
 * @param bytes size as nccl-tests counts it: for AllGather and ReduceScatter the data of all ranks together
 * @throws InvalidArgumentError for a size that is not a whole number above 0, or an unknown name
 */
export function predict(tuning: Tuning, collective: Collective, bytes: number, options: PredictOptions = {}): Prediction[] {
  return new CallCosts(tuning, collective, options).predict(bytes);
}

interface Candidate {
  readonly algorithm: NcclAlgorithm;
  readonly protocol: Protocol;
  readonly model: Model;
  readonly reasons: readonly Reason[];
}

/** Costs of one kind of call, at any size. */
export class CallCosts {
  readonly #call: CostedCall;
  readonly #model: TuningModel;
  readonly #candidates: readonly Candidate[];
  /** The same in the order in which the first of equal ones wins. */
  readonly #inOrder: readonly Candidate[];
  readonly #makeLastResort: () => readonly Candidate[];

  /** @throws InvalidArgumentError for an unknown name, or a number of operations that is not a whole number above 0 */
  constructor(
    tuning: Tuning,
    collective: Collective,
    { dataType = 'float32', operator = 'sum', operations = 1 }: PredictOptions,
  ) {
    refuseUnknown('collective', collective, collectives);
    refuseUnknown('data type', dataType, dataTypes);
    refuseUnknown('operator', operator, operators);
    if (!Number.isInteger(operations) || operations < 1) {
      throw new InvalidArgumentError('ARGUMENT_RANGE', `${operations} operations: it has to be a whole number above 0`);
    }
    const { input, model } = tuning;
    const rules = rulesOf(input);
    const channelsOf: CostedCall['channelsOf'] = (...candidate) => channelsAndThreads(tuning, ...candidate).nChannels;
    const call = { input, rules, collective, dataType, operator, operations, channelsOf };
    this.#call = call;
    this.#model = tuningModelOf(rules);
    const callReasons = (algorithm: NcclAlgorithm): readonly Reason[] =>
      input.nRanks === 1 ? oneRank : this.#model.callReasons(call, algorithm);
    this.#candidates = algorithms.flatMap((algorithm) => {
      const unable = callReasons(algorithm);
      return protocols.map((protocol) => {
        const entry = model[collective][algorithm][protocol];
        return { algorithm, protocol, model: entry, reasons: input.nRanks === 1 ? oneRank : [...entry.disabled, ...unable] };
      });
    });
    this.#inOrder = rules.tieGoesTo === 'first' ? this.#candidates : this.#candidates.toReversed();
    // Rarely needed: most calls have a candidate.
    this.#makeLastResort = () =>
      protocols.flatMap((protocol) => {
        const ring = model[collective].Ring[protocol];
        const bandwidthGBps = this.#model.lastResortGBps(ring, rules);
        if (bandwidthGBps === 0) return [];
        return [{ algorithm: 'Ring' as const, protocol, model: { ...ring, bandwidthGBps }, reasons: callReasons('Ring') }];
      });
  }

  /** @throws InvalidArgumentError for a size that is not a whole number above 0 */
  predict(bytes: number): Prediction[] {
    refuseSize(bytes);
    return this.#candidates.map((candidate) => {
      const { algorithm, protocol, reasons } = candidate;
      const cost = this.#cost(candidate, bytes);
      if (cost === undefined) return { algorithm, protocol, timeUs: null, latencyUs: null, bandwidthGBps: null, reasons };
      return { algorithm, protocol, ...cost, reasons: [] };
    });
  }

  /**
   * The fastest candidate; undefined without one.
   *
   * @throws InvalidArgumentError for a size that is not a whole number above 0
   */
  best(bytes: number): { readonly algorithm: NcclAlgorithm; readonly protocol: Protocol; readonly timeUs: number } | undefined {
    refuseSize(bytes);
    return this.#least(this.#inOrder, bytes) ?? this.#least(this.#makeLastResort(), bytes);
  }

  #least(candidates: readonly Candidate[], bytes: number): ReturnType<CallCosts['best']> {
    let best: Candidate | undefined;
    let least = Infinity;
    for (const candidate of candidates) {
      const cost = this.#cost(candidate, bytes);
      if (cost === undefined || cost.timeUs >= least) continue;
      best = candidate;
      least = cost.timeUs;
    }
    return best && { algorithm: best.algorithm, protocol: best.protocol, timeUs: least };
  }

  /** NCCL's formula, in its floats; undefined where the candidate cannot be used. */
  #cost({ algorithm, protocol, model, reasons }: Candidate, bytes: number): Cost | undefined {
    // One rank copies, which NCCL counts as a ring without time.
    if (this.#call.input.nRanks === 1) return algorithm === 'Ring' && protocol === 'Simple' ? noCost : undefined;
    if (reasons.length > 0 || model.bandwidthGBps === 0) return undefined;
    return this.#model.cost(this.#call, algorithm, protocol, model, bytes);
  }
}

const oneRank: readonly Reason[] = [{ why: 'one-rank' }];
const noCost: Cost = { timeUs: 0, latencyUs: 0, bandwidthGBps: 0 };

function refuseSize(bytes: number): void {
  if (!Number.isSafeInteger(bytes) || bytes < 1)
    throw new InvalidArgumentError('ARGUMENT_RANGE', `a size of ${bytes} bytes: it has to be a whole number above 0`);
}

function refuseUnknown(what: string, name: string, names: readonly string[]): void {
  if (!names.includes(name))
    throw new InvalidArgumentError(
      'UNKNOWN_NAME',
      `no ${what} ${name}${didYouMean(name, names)} (there are ${names.join(', ')})`,
    );
}
