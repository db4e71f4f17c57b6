import type { Merged } from '../graph/merge/merge.js';
import type { Parameters } from '../parameters.js';
import { PathType } from '../topology/types.js';
import { type BandwidthLimit, modelBandwidth } from './bandwidth.js';
import { graphOf, type TuningInput, tuningInput } from './input.js';
import { modelLatency } from './latency.js';
import { type Asked, readNameList } from './name-lists.js';
import { type Rules, rulesOf } from '../versions/rules.js';
import { type NcclAlgorithm, algorithms, byName, type Collective, collectives, type Protocol, protocols } from './names.js';
import type { Reason } from './reasons.js';
import { type ByCandidate, maxThreads, threadThresholds } from './threads.js';

const { fround } = Math;

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

/** NCCL's tuning model of one communicator: a plain value. `predict` and `choose` apply it to a call. */
export interface Tuning {
  readonly input: TuningInput;
  /** Most threads of a channel. */
  readonly maxThreads: ByCandidate;
  /** Bytes a thread and channel, below which there are fewer of both. */
  readonly threadThresholds: ByCandidate;
  readonly model: Readonly<Record<Collective, Readonly<Record<NcclAlgorithm, Readonly<Record<Protocol, Model>>>>>>;
}

/**
 * The tuning model of a plan, as NCCL makes it at the end of making a communicator.
 *
 *     const made = plan(cluster, parameters);
 *     const tuning = tune(made, parameters);
 *     choose(tuning, 'AllReduce', 1 << 20)      // { algorithm: 'Tree', protocol: 'LL128', timeUs: …, … }
 *
 * Its cost does not depend on the number of ranks.
 *
 * @throws InvalidUsageError where `NCCL_ALGO` or `NCCL_PROTO` has an unknown name; NCCL then makes no communicator
 */
export function tune(merged: Merged, parameters: Parameters): Tuning {
  return tuneFor(tuningInput(merged, parameters), parameters);
}

/** The same from the model's inputs, so that one of them can be changed. */
export function tuneFor(input: TuningInput, parameters: Parameters): Tuning {
  // One rank alone never uses them.
  const isAlone = input.nRanks <= 1;
  const rules = rulesOf(input);
  const askedAlgorithms = withoutCollnetOnly(
    input,
    readNameList('NCCL_ALGO', isAlone ? undefined : parameters.algorithms, algorithms, rules),
  );
  const askedProtocols = readNameList('NCCL_PROTO', isAlone ? undefined : parameters.protocols, protocols, rules);
  const keepsRings = rules.ringsForNothingElse === 'rings but for AllReduce';
  return {
    input,
    maxThreads: maxThreads(input, parameters),
    threadThresholds: threadThresholds(input, parameters),
    model: byName(collectives, (collective) =>
      withRings(
        rules,
        byName(algorithms, (algorithm) =>
          byName(protocols, (protocol) => {
            const because = absence(input, collective, algorithm, protocol, parameters);
            if (because !== undefined)
              return { bandwidthGBps: 0, latencyUs: 0, wouldBeGBps: 0, limit: null, disabled: [because] };
            const { gbps, limit } = modelBandwidth(input, collective, algorithm, protocol);
            const disabled = [
              ...algorithmTroubles(input, collective, algorithm, protocol),
              ...(protocol === 'LL128' && (algorithm === 'Tree' || algorithm === 'Ring')
                ? ll128Troubles(input, algorithm, askedProtocols[collective], parameters)
                : []),
              ...(keepsRings && algorithm === 'Ring' && collective !== 'AllReduce'
                ? []
                : leftOut('NCCL_ALGO', parameters.algorithms, askedAlgorithms[collective], algorithm)),
              ...leftOut('NCCL_PROTO', parameters.protocols, askedProtocols[collective], protocol),
            ];
            return {
              bandwidthGBps: disabled.length > 0 ? 0 : gbps,
              latencyUs: modelLatency(input, collective, algorithm, protocol, parameters),
              wouldBeGBps: gbps,
              limit: gbps === 0 ? null : limit,
              disabled,
            };
          }),
        ),
      ),
    ),
  };
}

type Models = Readonly<Record<NcclAlgorithm, Readonly<Record<Protocol, Model>>>>;

/** Older versions use rings where all other algorithms are excluded. */
function withRings(rules: Rules, models: Models): Models {
  if (algorithms.some((name) => protocols.some((protocol) => models[name][protocol].bandwidthGBps !== 0))) return models;
  const enabled = (model: Model): Model => {
    const bandwidthGBps = lastResortGBps(model, rules);
    return bandwidthGBps === 0 ? model : { ...model, bandwidthGBps, disabled: [] };
  };
  return { ...models, Ring: byName(protocols, (protocol) => enabled(models.Ring[protocol])) };
}

/** Bandwidth of a ring if no other algorithm is left; 0 if the version does not use it then. */
export function lastResortGBps({ wouldBeGBps, disabled }: Model, { ringsForNothingElse }: Rules): number {
  switch (ringsForNothingElse) {
    case 'rings':
      return wouldBeGBps;
    case 'rings as asked':
      return disabled.every((reason) => reason.why === 'asked' && reason.variable === 'NCCL_ALGO') ? wouldBeGBps : 0;
    case 'rings but for AllReduce':
    case 'nothing':
      return 0;
  }
}

/** True if a list leaves only CollNet, which is missing: older versions then use rings and trees. */
function withoutCollnetOnly(
  input: TuningInput,
  asked: Readonly<Record<Collective, Asked<NcclAlgorithm>>>,
): Readonly<Record<Collective, Asked<NcclAlgorithm>>> {
  if (input.collnet !== null || !rulesOf(input).collnetOnlyIgnored) return asked;
  const oneNode = input.nNodes === 1;
  const isLost = ({ Ring, Tree, NVLS, NVLSTree }: Asked<NcclAlgorithm>) =>
    Ring === 'off' && Tree === 'off' && (NVLS === 'off' || !oneNode) && (NVLSTree === 'off' || oneNode);
  return byName(collectives, (collective) => {
    const list = asked[collective];
    return isLost(list) ? { ...list, Ring: 'on', Tree: 'on' } : list;
  });
}

/** Algorithms that NCCL has for each collective. */
const algorithmsOf: Readonly<Record<Collective, readonly NcclAlgorithm[]>> = {
  Broadcast: ['Ring'],
  Reduce: ['Ring'],
  AllGather: ['Ring', 'CollNetDirect', 'NVLS', 'PAT'],
  ReduceScatter: ['Ring', 'CollNetDirect', 'NVLS', 'PAT'],
  AllReduce: ['Tree', 'Ring', 'CollNetDirect', 'CollNetChain', 'NVLS', 'NVLSTree'],
};

/** Reason why NCCL computes no figures. */
function absence(
  input: TuningInput,
  collective: Collective,
  algorithm: NcclAlgorithm,
  protocol: Protocol,
  parameters: Parameters,
): Reason | undefined {
  const rules = rulesOf(input);
  if (input.nRanks <= 1) return { why: 'one-rank' };
  if (!algorithmsOf[collective].includes(algorithm)) return { why: 'no-such-algorithm', collective, algorithm };
  if (protocol !== 'Simple' && (algorithm === 'NVLS' || algorithm === 'NVLSTree' || algorithm === 'PAT'))
    return { why: 'simple-only', algorithm, protocol };
  const lacksGather = algorithm === 'CollNetDirect' && collective !== 'AllReduce' && !rules.collnetGathers;
  const lacksNvls = algorithm === 'NVLS' && collective !== 'AllReduce' && !rules.nvlsGathers;
  if (lacksGather || lacksNvls || (algorithm === 'PAT' && !rules.pat)) return { why: 'no-such-algorithm', collective, algorithm };
  if (algorithm === 'PAT') return patAbsence(input, parameters);
  if (algorithm === 'NVLS' || algorithm === 'NVLSTree') {
    const { nChannels } = input.graphs.nvls;
    if (nChannels === 0 && rules.nvlsByEfficiency) return { why: 'no-nvls' };
    // One head alone gains nothing.
    if (nChannels < 2 && rules.nvlsByEfficiency) return { why: 'channels', algorithm, nChannels, fewest: 2 };
  }
  return undefined;
}

function patAbsence({ minCompCap, nRanks, nNodes }: TuningInput, { patEnable }: Parameters): Reason | undefined {
  if (minCompCap < 60) return { why: 'pat-old-gpu', compCap: minCompCap };
  if (patEnable === 0) return { why: 'pat-off' };
  if (patEnable === 2 && nRanks !== nNodes) return { why: 'pat-local-ranks', nRanks, nNodes };
  return undefined;
}

function algorithmTroubles(input: TuningInput, collective: Collective, algorithm: NcclAlgorithm, protocol: Protocol): Reason[] {
  const { nNodes, maxLocalRanks, collnet, nvSwitch, graphs } = input;
  const rules = rulesOf(input);
  const reasons: Reason[] = [];
  const isCollnet = algorithm === 'CollNetDirect' || algorithm === 'CollNetChain';
  if (isCollnet && protocol !== 'Simple') reasons.push({ why: 'simple-only', algorithm, protocol });
  const { nChannels } = graphs[graphOf[algorithm]];
  if ((algorithm === 'NVLS' || algorithm === 'NVLSTree') && nChannels === 0) return [{ why: 'no-nvls' }];
  if (algorithm === 'NVLSTree' && nNodes === 1) reasons.push({ why: 'one-node' });
  const needsCollnet = isCollnet || (algorithm === 'NVLS' && nNodes > 1);
  if (needsCollnet && collnet === null) reasons.push({ why: 'no-collnet', algorithm });
  if (collnet !== null && nChannels === 0) reasons.push({ why: 'channels', algorithm, nChannels, fewest: 1 });
  if (algorithm === 'CollNetChain' && collnet?.chainSupport === false && rules.collnetChainNeedsHeads)
    reasons.push({ why: 'collnet-chain-heads' });
  if (algorithm === 'CollNetDirect' && !nvSwitch) reasons.push({ why: 'no-nvswitch' });
  const scatters = collective === 'AllGather' || collective === 'ReduceScatter';
  const ranksToServe = rules.collnetGatherByHeads ? maxLocalRanks : fround(input.nRanks / nNodes);
  const needsHeads = isCollnet || rules.nvlsNeedsHeads;
  if (scatters && needsCollnet && needsHeads && nNodes > 1 && collnet !== null && ranksToServe > collnet.headCount) {
    reasons.push({ why: 'heads', heads: collnet.headCount, localRanks: maxLocalRanks });
  }
  return reasons;
}

/** LL128 needs paths on which 128 bytes stay together; a user's choice by name overrides this. */
function ll128Troubles(input: TuningInput, algorithm: NcclAlgorithm, asked: Asked<Protocol>, { ll128C2c }: Parameters): Reason[] {
  if (asked.LL128 !== 'unset') return [];
  const { minCompCap, maxCompCap, graphs } = input;
  const { typeIntra, typeInter } = graphs[graphOf[algorithm]];
  const reasons: Reason[] = [];
  const isHopper = minCompCap >= 90;
  const farthest = isHopper && (ll128C2c !== 0 || rulesOf(input).ll128OverPxn !== 'if asked') ? PathType.PXN : PathType.PXB;
  const isForbidden = typeInter === PathType.P2C && ll128C2c === 0;
  if (typeInter > farthest || isForbidden) reasons.push({ why: 'll128-path', between: 'GPU and NIC', type: typeInter, farthest });
  if (typeIntra > PathType.NVB) reasons.push({ why: 'll128-path', between: 'GPUs', type: typeIntra, farthest: PathType.NVB });
  if (minCompCap !== maxCompCap && (minCompCap < 90 || !rulesOf(input).ll128BetweenGenerations))
    reasons.push({ why: 'll128-mixed-gpus', minCompCap, maxCompCap });
  const { ll128Gpus } = rulesOf(input);
  if (ll128Gpus === 'from 70' ? minCompCap < 70 : !ll128Gpus.includes(minCompCap))
    reasons.push({ why: 'll128-old-gpu', compCap: minCompCap });
  return reasons;
}

function leftOut<Name extends string>(
  variable: 'NCCL_ALGO' | 'NCCL_PROTO',
  value: string | undefined,
  asked: Asked<Name>,
  name: Name,
): Reason[] {
  return asked[name] === 'off' ? [{ why: 'asked', variable, value: value ?? '' }] : [];
}
