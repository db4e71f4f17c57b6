import type { Parameters } from '../../parameters.js';
import { CpuArch } from '../../topology/system.js';
import { rulesOf } from '../../versions/rules.js';
import { baseLatenciesUs, treeCorrections } from '../constants.js';
import { isFloat8, latencyCount, networkReduces, reduces, switchReduces, timeUs } from '../formulas.js';
import type { TuningInput } from '../input.js';
import { floorLog2 } from '../integers.js';
import {
  absent,
  type CallKind,
  type Cost,
  type CostedCall,
  LAST_CHOICE_US,
  type Model,
  type Models,
  modelWith,
  type TuningModel,
} from '../model.js';
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
import { candidateBandwidth } from './bandwidth.js';
import { candidateLatency } from './latency.js';
import { type Lists, leftOut, readLists } from './lists.js';
import { ll128Reasons } from './ll128.js';
import { patGoesThroughNvls } from './pat.js';
import { mostGBps, pipelineCost, pipelinedOf } from './pipeline.js';
import { ringPlateau } from './plateau.js';

const { fround } = Math;

/**
 * NCCL's model since 2.31 (`src/tuning/`): a list of candidates, each with figures of its own, from which the fastest is taken.
 * Of its decisions those that differ from the older model are rules, so that an upgrade can name them.
 */
export const costModel: TuningModel = {
  models,
  callReasons,
  cost,
  maxThreads: (input, parameters) => {
    const { bwIntra, nChannels } = input.graphs.ring;
    const isSlow = rulesOf(input).ringThreads === '256 where slow' && fround(bwIntra * nChannels) <= PCI_GBPS;
    return threadsOf(parameters, isSlow ? 256 : undefined);
  },
  threadThresholds: ({ nRanks }, parameters) => thresholdsOf(nRanks, parameters),
  lastResortGBps: () => 0,
  bends: ({ nChannels, nRanks }) => [1, 4096, 8192].map((unit) => 64 * unit * nChannels * nRanks),
};

/** Speed of PCI of generation 3 with 16 lanes; GB/s. */
const PCI_GBPS = 12;

function models(input: TuningInput, parameters: Parameters): Models {
  const lists = readLists(parameters);
  return byName(collectives, (collective) =>
    byName(algorithms, (algorithm) =>
      byName(protocols, (protocol) => modelOf(input, collective, algorithm, protocol, parameters, lists)),
    ),
  );
}

function modelOf(
  input: TuningInput,
  collective: Collective,
  algorithm: NcclAlgorithm,
  protocol: Protocol,
  parameters: Parameters,
  lists: Lists,
): Model {
  if (!algorithmsOf[collective].includes(algorithm)) return absent({ why: 'no-such-algorithm', collective, algorithm });
  if (protocol !== 'Simple' && algorithm !== 'Ring' && algorithm !== 'Tree')
    return absent({ why: 'simple-only', algorithm, protocol });
  const because = absence(input, algorithm, parameters);
  if (because !== undefined) return absent(because);
  const piped = pipelinedOf(rulesOf(input), input, algorithm);
  return modelWith(
    piped === undefined
      ? candidateBandwidth(input, collective, algorithm, protocol)
      : { gbps: mostGBps(input, collective, piped, protocol), limit: 'graph' },
    piped === undefined
      ? candidateLatency(input, collective, algorithm, protocol, parameters)
      : fround(baseLatenciesUs[piped][protocol]),
    [
      ...needs(input, collective, algorithm),
      ...(protocol === 'LL128' && lists.leavesLl128(collective) ? ll128Reasons(input, algorithm, parameters) : []),
      ...leftOut(lists, parameters, collective, algorithm, protocol),
    ],
  );
}

/** Reason why NCCL computes no figures for an algorithm. */
function absence(input: TuningInput, algorithm: NcclAlgorithm, parameters: Parameters): Reason | undefined {
  switch (algorithm) {
    case 'NVLS':
    case 'NVLSTree': {
      const { nChannels } = input.graphs.nvls;
      if (input.nvls === null || nChannels === 0) return { why: 'no-nvls' };
      if (algorithm === 'NVLSTree' && input.nNodes === 1) return { why: 'one-node' };
      return nChannels < 2 ? { why: 'channels', algorithm, nChannels, fewest: 2 } : undefined;
    }
    case 'CollNetDirect':
    case 'CollNetChain':
      return input.collnet === null ? { why: 'no-collnet', algorithm } : undefined;
    case 'PAT':
      return patAbsence(input, parameters);
    case 'Ring':
    case 'Tree':
      return undefined;
  }
}

function patAbsence(input: TuningInput, { patEnable }: Parameters): Reason | undefined {
  const { minCompCap, minLocalRanks, maxLocalRanks, nNodes, nRanks, nvls } = input;
  if (minCompCap < 60) return { why: 'pat-old-gpu', compCap: minCompCap };
  if (patEnable === 0) return { why: 'pat-off' };
  if (maxLocalRanks === 1) return undefined;
  if (rulesOf(input).patPerNode === 'if asked') {
    return patEnable === 2 ? { why: 'pat-local-ranks', nRanks, nNodes } : undefined;
  }
  if (nvls === null || (nNodes < 2 && patEnable === 2)) return { why: 'pat-no-nvls', nNodes };
  if (nvls.nHeads !== minLocalRanks || nvls.nHeads !== maxLocalRanks)
    return { why: 'pat-heads', heads: nvls.nHeads, fewest: minLocalRanks, most: maxLocalRanks };
  return undefined;
}

/** Reasons for an algorithm's lack of what it needs of nodes and network. */
function needs(input: TuningInput, collective: Collective, algorithm: NcclAlgorithm): Reason[] {
  const { nNodes, maxLocalRanks, collnet, nvSwitch, graphs } = input;
  const rules = rulesOf(input);
  const reasons: Reason[] = [];
  const isCollnet = algorithm === 'CollNetDirect' || algorithm === 'CollNetChain';
  const needsCollnet = isCollnet || (algorithm === 'NVLS' && nNodes > 1);
  if (!needsCollnet) return reasons;
  if (collnet === null) return [{ why: 'no-collnet', algorithm }];
  if (isCollnet) {
    const { nChannels } = algorithm === 'CollNetDirect' ? graphs.collnetDirect : graphs.collnetChain;
    if (nChannels === 0) reasons.push({ why: 'channels', algorithm, nChannels, fewest: 1 });
  }
  if (algorithm === 'CollNetChain' && !collnet.chainSupport) reasons.push({ why: 'collnet-chain-heads' });
  if (algorithm === 'CollNetDirect' && !nvSwitch && rules.collnetDirectNeedsSwitch) reasons.push({ why: 'no-nvswitch' });
  const serves = collective !== 'AllReduce' || (isCollnet && rules.collnetReduceNeedsHeads);
  if (serves && nNodes > 1 && maxLocalRanks > collnet.headCount)
    reasons.push({ why: 'heads', heads: collnet.headCount, localRanks: maxLocalRanks });
  return reasons;
}

/** Most ranks per node with CollNet. */
const MOST_COLLNET_LOCAL_RANKS = 8;

function callReasons({ input, rules, collective, dataType, operator }: CallKind, algorithm: NcclAlgorithm): Reason[] {
  const { localRanks, maxLocalRanks, minCompCap, nNodes, nvls, collnet, graphs } = input;
  const reasons: Reason[] = [];
  const combines = reduces(collective);
  if (combines && isFloat8(dataType) && minCompCap < 90) reasons.push({ why: 'float8-old-gpu', compCap: minCompCap });
  const isCollnet = algorithm === 'CollNetDirect' || algorithm === 'CollNetChain';
  if (isCollnet && maxLocalRanks > MOST_COLLNET_LOCAL_RANKS)
    reasons.push({ why: 'collnet-local-ranks', localRanks: maxLocalRanks, most: MOST_COLLNET_LOCAL_RANKS });
  const usesCollnet = isCollnet || (algorithm === 'NVLS' && nNodes > 1);
  if (collnet !== null && usesCollnet && combines && !networkReduces(operator, dataType))
    reasons.push({ why: 'collnet-operator', operator, dataType });
  if ((algorithm === 'NVLS' || algorithm === 'NVLSTree') && nvls !== null) {
    const { nvlsGatherMostRanks: mostRanks, nvlsGatherMostChannels: mostChannels } = rules;
    if (collective !== 'AllReduce' && graphs.nvls.nChannels > mostChannels)
      reasons.push({ why: 'nvls-channels', nChannels: graphs.nvls.nChannels, most: mostChannels });
    if (collective !== 'AllReduce' && localRanks > mostRanks)
      reasons.push({ why: 'nvls-local-ranks', localRanks, most: mostRanks });
    if (combines && !switchReduces(operator, dataType)) reasons.push({ why: 'nvls-operator', operator, dataType });
  }
  if (algorithm === 'PAT' && collective === 'ReduceScatter') {
    if (operator === 'avg' && !rules.patScales) reasons.push({ why: 'pat-operator', operator });
    else if (patGoesThroughNvls(input) && !switchReduces(operator, dataType))
      reasons.push({ why: 'nvls-operator', operator, dataType });
  }
  return reasons;
}

function cost(call: CostedCall, algorithm: NcclAlgorithm, protocol: Protocol, model: Model, bytes: number): Cost {
  const { input, rules, collective, dataType, operations } = call;
  const piped = pipelinedOf(rules, input, algorithm);
  if (piped !== undefined) return pipelineCost(call, piped, protocol, bytes);
  let { bandwidthGBps, latencyUs } = model;
  if (algorithm === 'PAT' && patGoesThroughNvls(input)) return { timeUs: LAST_CHOICE_US, latencyUs, bandwidthGBps };
  if (collective === 'AllReduce' && (algorithm === 'Tree' || algorithm === 'NVLSTree')) {
    const size = floorLog2(Math.floor(bytes / 64));
    const corrected = algorithm === 'Tree' ? size < 23 : isNvlsTreeCorrected(input, rules.nvlsTreeCorrection, size);
    if (corrected) bandwidthGBps = fround(bandwidthGBps * (treeCorrections[protocol][size] ?? 1));
  }
  const isRing = algorithm === 'Ring';
  if (isRing && protocol === 'Simple') latencyUs = ringPlateau(input, rules.ringPlateau, collective, latencyUs, bytes);
  latencyUs = fround(latencyUs * latencyCount(isRing, operations));
  const isPenalised = isRing && isFloat8(dataType) && reduces(collective) && input.nRanks > 8;
  return { timeUs: timeUs(latencyUs, bandwidthGBps, bytes, isPenalised), latencyUs, bandwidthGBps };
}

/** @param size the power of two below bytes / 64; the table of factors ends at 512 MiB */
function isNvlsTreeCorrected(
  input: TuningInput,
  machines: ReturnType<typeof rulesOf>['nvlsTreeCorrection'],
  size: number,
): boolean {
  if (input.minCompCap < 100 || machines === 'none') return false;
  if (input.cpuArch === CpuArch.X86) return true;
  if (machines === 'x86' || input.cpuArch !== CpuArch.ARM) return false;
  const isKnown = input.minNetGBps >= 96 && input.minLocalRanks === 4 && input.maxLocalRanks === 4;
  return isKnown && (input.nNodes > 2 || size < (machines === 'arm below 512 MiB' ? 23 : 20));
}
