import { InvalidArgumentError } from '../../errors.js';
import { didYouMean } from '../../suggest.js';
import { CpuArch } from '../topology/system.js';
import { treeCorrections } from './constants.js';
import type { TuningInput } from './input.js';
import { floorLog2 } from './integers.js';
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
import { type Rules, rulesOf } from '../versions/rules.js';
import type { Reason } from './reasons.js';
import { lastResortGBps, type Model, type Tuning } from './tune.js';

const { fround } = Math;

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
  return new CostModel(tuning, collective, options).predict(bytes);
}

/** Most ranks per node with CollNet. */
const MOST_COLLNET_LOCAL_RANKS = 8;
/** Number of operations that fit into one batch of work. */
const OPERATIONS_PER_BATCH = 8;
/** Factor of NCCL on the time of long rings for 8-bit floats, which lose precision at each step. */
const FLOAT8_RING_PENALTY = 1024;

interface Candidate {
  readonly algorithm: NcclAlgorithm;
  readonly protocol: Protocol;
  readonly model: Model;
  readonly reasons: readonly Reason[];
}

interface Cost {
  readonly timeUs: number;
  readonly latencyUs: number;
  readonly bandwidthGBps: number;
}

/** Rings, which older versions use without any candidate, even if disabled. */
function lastResort({ Ring }: Tuning['model'][Collective], rules: Rules, reasons: Candidate['reasons']): Candidate[] {
  return protocols.flatMap((protocol) => {
    const bandwidthGBps = lastResortGBps(Ring[protocol], rules);
    if (bandwidthGBps === 0) return [];
    return [{ algorithm: 'Ring' as const, protocol, model: { ...Ring[protocol], bandwidthGBps }, reasons }];
  });
}

/** Costs of one kind of call, at any size. */
export class CostModel {
  readonly #input: TuningInput;
  readonly #rules: Rules;
  readonly #collective: Collective;
  readonly #operations: number;
  readonly #penalised: boolean;
  readonly #candidates: readonly Candidate[];
  readonly #makeLastResort: () => readonly Candidate[];

  /** @throws InvalidArgumentError for an unknown name, or a number of operations that is not a whole number above 0 */
  constructor(
    { input, model }: Tuning,
    collective: Collective,
    { dataType = 'float32', operator = 'sum', operations = 1 }: PredictOptions,
  ) {
    refuseUnknown('collective', collective, collectives);
    refuseUnknown('data type', dataType, dataTypes);
    refuseUnknown('operator', operator, operators);
    if (!Number.isInteger(operations) || operations < 1) {
      throw new InvalidArgumentError('ARGUMENT_RANGE', `${operations} operations: it has to be a whole number above 0`);
    }
    this.#input = input;
    this.#rules = rulesOf(input);
    this.#collective = collective;
    this.#operations = operations;
    this.#penalised = isFloat8(dataType) && reduces(collective) && input.nRanks > 8;
    this.#candidates = algorithms.flatMap((algorithm) => {
      const unable = callTroubles(input, collective, algorithm, dataType, operator);
      return protocols.map((protocol) => {
        const entry = model[collective][algorithm][protocol];
        return { algorithm, protocol, model: entry, reasons: [...entry.disabled, ...unable] };
      });
    });
    // Rarely needed: most calls have a candidate.
    this.#makeLastResort = () =>
      lastResort(model[collective], this.#rules, callTroubles(input, collective, 'Ring', dataType, operator));
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
   * The fastest candidate, the first of equal ones; undefined without one.
   *
   * @throws InvalidArgumentError for a size that is not a whole number above 0
   */
  best(bytes: number): { readonly algorithm: NcclAlgorithm; readonly protocol: Protocol; readonly timeUs: number } | undefined {
    refuseSize(bytes);
    return this.#least(this.#candidates, bytes) ?? this.#least(this.#makeLastResort(), bytes);
  }

  #least(candidates: readonly Candidate[], bytes: number): ReturnType<CostModel['best']> {
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
    const { nRanks, nNodes, nChannels, minCompCap, cpuArch } = this.#input;
    // One rank copies, which NCCL counts as a ring without time.
    if (nRanks === 1)
      return algorithm === 'Ring' && protocol === 'Simple' ? { timeUs: 0, latencyUs: 0, bandwidthGBps: 0 } : undefined;
    if (reasons.length > 0 || model.bandwidthGBps === 0) return undefined;
    let { bandwidthGBps, latencyUs } = model;
    if (this.#collective === 'AllReduce') {
      const size = Math.max(floorLog2(Math.floor(bytes / 64)), this.#rules.treeFactorFrom64 ? -1 : 0);
      const corrected =
        algorithm === 'Tree'
          ? size < 23
          : algorithm === 'NVLSTree' && minCompCap >= 100 && cpuArch === CpuArch.X86 && this.#rules.nvlsTreeCorrection;
      if (corrected) bandwidthGBps = fround(bandwidthGBps * (treeCorrections[protocol][size] ?? 1));
      // Rings of several nodes reach a plateau.
      const isPlateau =
        algorithm === 'Ring' && protocol === 'Simple' && nNodes > 1 && Math.floor(bytes / (nChannels * nRanks)) >= 64;
      if (isPlateau) latencyUs = fround(latencyUs * (minCompCap < 80 ? 1.9 : 1.4));
    }
    latencyUs = fround(
      latencyUs * (algorithm === 'Ring' ? this.#operations : Math.ceil(this.#operations / OPERATIONS_PER_BATCH)),
    );
    const timeUs = fround(latencyUs + fround(fround(bytes) / fround(1000 * bandwidthGBps)));
    return {
      timeUs: this.#penalised && algorithm === 'Ring' ? fround(timeUs * FLOAT8_RING_PENALTY) : timeUs,
      latencyUs,
      bandwidthGBps,
    };
  }
}

/** Reason why this call cannot use an algorithm that the communicator has. */
function callTroubles(
  input: TuningInput,
  collective: Collective,
  algorithm: NcclAlgorithm,
  dataType: DataTypeName,
  operator: OperatorName,
): Reason[] {
  const { nRanks, localRanks, maxLocalRanks, minCompCap, nNodes, nvls, collnet } = input;
  if (nRanks === 1) return [];
  const reasons: Reason[] = [];
  if (reduces(collective) && isFloat8(dataType) && minCompCap < 90) reasons.push({ why: 'float8-old-gpu', compCap: minCompCap });
  const isCollnet = algorithm === 'CollNetDirect' || algorithm === 'CollNetChain';
  const isNvls = algorithm === 'NVLS' || algorithm === 'NVLSTree';
  const { collnetFewRanks } = rulesOf(input);
  const fewRanksOnly = collnetFewRanks === 'none' ? isCollnet : collnetFewRanks === 'chain' && algorithm === 'CollNetDirect';
  if (fewRanksOnly && maxLocalRanks > MOST_COLLNET_LOCAL_RANKS) {
    reasons.push({ why: 'collnet-local-ranks', localRanks: maxLocalRanks, most: MOST_COLLNET_LOCAL_RANKS });
  }
  if (
    collnet !== null &&
    (isCollnet || (algorithm === 'NVLS' && nNodes > 1)) &&
    reduces(collective) &&
    !networkReduces(operator, dataType)
  ) {
    reasons.push({ why: 'collnet-operator', operator, dataType });
  }
  if (isNvls && nvls !== null) {
    const { nvlsGatherMostRanks } = rulesOf(input);
    if (collective !== 'AllReduce' && localRanks > nvlsGatherMostRanks)
      reasons.push({ why: 'nvls-local-ranks', localRanks, most: nvlsGatherMostRanks });
    if (collective !== 'AllReduce' && rulesOf(input).nvlsGatherOnOneNode && nNodes > 1)
      reasons.push({ why: 'nvls-nodes', nNodes });
    if (reduces(collective) && !switchReduces(operator, dataType)) reasons.push({ why: 'nvls-operator', operator, dataType });
  }
  if (algorithm === 'PAT' && collective === 'ReduceScatter' && operator === 'avg')
    reasons.push({ why: 'pat-operator', operator });
  return reasons;
}

/** True if data are combined; NCCL treats copied data as bytes of any type. */
function reduces(collective: Collective): boolean {
  return collective !== 'AllGather' && collective !== 'Broadcast';
}

function isFloat8(dataType: DataTypeName): boolean {
  return dataType === 'float8e4m3' || dataType === 'float8e5m2';
}

/** True for types and operators that NVSwitches reduce; averages are not among them. */
function switchReduces(operator: OperatorName, dataType: DataTypeName): boolean {
  switch (dataType) {
    case 'int32':
    case 'uint32':
    case 'int64':
    case 'uint64':
    case 'float16':
    case 'bfloat16':
      return operator === 'sum' || operator === 'min' || operator === 'max';
    case 'float32':
    case 'float64':
      return operator === 'sum';
    default:
      return false;
  }
}

/**
 * Types and operators that a SHARP network reduces, after NVIDIA's plugin (nccl-rdma-sharp-plugins): an average is a sum. Older
 * switches (before SHARP v3) cannot do bfloat16 and 8-bit integers; these are taken to be new ones.
 */
function networkReduces(operator: OperatorName, dataType: DataTypeName): boolean {
  return operator !== 'prod' && !isFloat8(dataType);
}

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
