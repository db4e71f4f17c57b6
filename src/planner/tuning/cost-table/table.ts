import type { Parameters } from '../../parameters.js';
import { CpuArch } from '../../topology/system.js';
import { PathType } from '../../topology/types.js';
import { type Rules, rulesOf } from '../../versions/rules.js';
import { treeCorrections } from '../constants.js';
import { isFloat8, latencyCount, networkReduces, reduces, switchReduces, timeUs } from '../formulas.js';
import { graphOf, type TuningInput } from '../input.js';
import { floorLog2 } from '../integers.js';
import { absent, type CallKind, type Cost, type Model, type Models, type TuningModel, modelWith } from '../model.js';
import { type Asked, readNameList } from '../name-lists.js';
import {
  algorithms,
  algorithmsOf,
  byName,
  type Collective,
  collectives,
  type NcclAlgorithm,
  type Protocol,
  protocols,
} from '../names.js';
import type { Reason } from '../reasons.js';
import { threadsOf, thresholdsOf } from '../threads.js';
import { modelBandwidth } from './bandwidth.js';
import { modelLatency } from './latency.js';

const { fround } = Math;

/** NCCL's model up to 2.30: a table of bandwidths and latencies, with corrections by size (`src/graph/tuning.cc`). */
export const costTable: TuningModel = {
  // One rank alone exchanges nothing, and NCCL does not even read the lists.
  models: (input, parameters) => (input.nRanks > 1 ? models(input, parameters) : ALONE),
  callReasons,
  cost,
  lastResortGBps,
  maxThreads: (input, parameters) => threadsOf(parameters, isSlow(input) ? 256 : undefined),
  threadThresholds: ({ nRanks }, parameters) =>
    nRanks > 1 ? thresholdsOf(nRanks, parameters) : byName(algorithms, () => ({ LL: 0, LL128: 0, Simple: 0 })),
  // The plateau of rings begins there.
  bends: ({ nChannels, nRanks }) => [64 * nChannels * nRanks],
};

const ALONE: Models = byName(collectives, () => byName(algorithms, () => byName(protocols, () => absent({ why: 'one-rank' }))));

/** Speed of PCI of generation 3 with 16 lanes, up to which a ring needs fewer threads; GB/s. */
const PCI_GBPS = 12;

function isSlow({ graphs: { ring } }: TuningInput): boolean {
  return fround(ring.bwIntra * ring.nChannels) <= PCI_GBPS;
}

function readLists(input: TuningInput, parameters: Parameters) {
  const rules = rulesOf(input);
  return {
    askedAlgorithms: withoutCollnetOnly(input, readNameList('NCCL_ALGO', parameters.algorithms, algorithms, rules)),
    askedProtocols: readNameList('NCCL_PROTO', parameters.protocols, protocols, rules),
  };
}

function models(input: TuningInput, parameters: Parameters): Models {
  const rules = rulesOf(input);
  const { askedAlgorithms, askedProtocols } = readLists(input, parameters);
  const keepsRings = rules.ringsForNothingElse === 'rings but for AllReduce';
  return byName(collectives, (collective) =>
    withRings(
      rules,
      byName(algorithms, (algorithm) =>
        byName(protocols, (protocol) => {
          const because = absence(input, collective, algorithm, protocol, parameters);
          if (because !== undefined) return absent(because);
          return modelWith(
            modelBandwidth(input, collective, algorithm, protocol),
            modelLatency(input, collective, algorithm, protocol, parameters),
            [
              ...algorithmTroubles(input, collective, algorithm, protocol),
              ...(protocol === 'LL128' && (algorithm === 'Tree' || algorithm === 'Ring')
                ? ll128Troubles(input, algorithm, askedProtocols[collective], parameters)
                : []),
              ...(keepsRings && algorithm === 'Ring' && collective !== 'AllReduce'
                ? []
                : leftOut('NCCL_ALGO', parameters.algorithms, askedAlgorithms[collective], algorithm)),
              ...leftOut('NCCL_PROTO', parameters.protocols, askedProtocols[collective], protocol),
            ],
          );
        }),
      ),
    ),
  );
}

/** Older versions use rings where all other algorithms are excluded. */
function withRings(rules: Rules, all: Models[Collective]): Models[Collective] {
  if (algorithms.some((name) => protocols.some((protocol) => all[name][protocol].bandwidthGBps !== 0))) return all;
  const enabled = (model: Model): Model => {
    const bandwidthGBps = lastResortGBps(model, rules);
    return bandwidthGBps === 0 ? model : { ...model, bandwidthGBps, disabled: [] };
  };
  return { ...all, Ring: byName(protocols, (protocol) => enabled(all.Ring[protocol])) };
}

function lastResortGBps({ wouldBeGBps, disabled }: Model, { ringsForNothingElse }: Rules): number {
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

/** Reason why NCCL computes no figures. */
function absence(
  input: TuningInput,
  collective: Collective,
  algorithm: NcclAlgorithm,
  protocol: Protocol,
  parameters: Parameters,
): Reason | undefined {
  const rules = rulesOf(input);
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

/** Most ranks per node with CollNet. */
const MOST_COLLNET_LOCAL_RANKS = 8;

function callReasons({ input, rules, collective, dataType, operator }: CallKind, algorithm: NcclAlgorithm): Reason[] {
  const { localRanks, maxLocalRanks, minCompCap, nNodes, nvls, collnet } = input;
  const reasons: Reason[] = [];
  if (reduces(collective) && isFloat8(dataType) && minCompCap < 90) reasons.push({ why: 'float8-old-gpu', compCap: minCompCap });
  const isCollnet = algorithm === 'CollNetDirect' || algorithm === 'CollNetChain';
  const isNvls = algorithm === 'NVLS' || algorithm === 'NVLSTree';
  const { collnetFewRanks } = rules;
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
    const { nvlsGatherMostRanks } = rules;
    if (collective !== 'AllReduce' && localRanks > nvlsGatherMostRanks)
      reasons.push({ why: 'nvls-local-ranks', localRanks, most: nvlsGatherMostRanks });
    if (collective !== 'AllReduce' && rules.nvlsGatherOnOneNode && nNodes > 1) reasons.push({ why: 'nvls-nodes', nNodes });
    if (reduces(collective) && !switchReduces(operator, dataType)) reasons.push({ why: 'nvls-operator', operator, dataType });
  }
  if (algorithm === 'PAT' && collective === 'ReduceScatter' && operator === 'avg')
    reasons.push({ why: 'pat-operator', operator });
  return reasons;
}

function cost(
  { input, rules, collective, dataType, operations }: CallKind,
  algorithm: NcclAlgorithm,
  protocol: Protocol,
  model: Model,
  bytes: number,
): Cost {
  const { nRanks, nNodes, nChannels, minCompCap, cpuArch } = input;
  const isRing = algorithm === 'Ring';
  let { bandwidthGBps, latencyUs } = model;
  if (collective === 'AllReduce') {
    const size = Math.max(floorLog2(Math.floor(bytes / 64)), rules.treeFactorFrom64 ? -1 : 0);
    const corrected =
      algorithm === 'Tree'
        ? size < 23
        : algorithm === 'NVLSTree' && minCompCap >= 100 && cpuArch === CpuArch.X86 && rules.nvlsTreeCorrection !== 'none';
    if (corrected) bandwidthGBps = fround(bandwidthGBps * (treeCorrections[protocol][size] ?? 1));
    // Rings of several nodes reach a plateau.
    const isPlateau = isRing && protocol === 'Simple' && nNodes > 1 && Math.floor(bytes / (nChannels * nRanks)) >= 64;
    if (isPlateau) latencyUs = fround(latencyUs * (minCompCap < 80 ? 1.9 : 1.4));
  }
  latencyUs = fround(latencyUs * latencyCount(isRing, operations));
  const isPenalised = isRing && isFloat8(dataType) && reduces(collective) && nRanks > 8;
  return { timeUs: timeUs(latencyUs, bandwidthGBps, bytes, isPenalised), latencyUs, bandwidthGBps };
}
