import type { Parameters } from '../../parameters.js';
import { CpuArch } from '../../topology/system.js';
import { PathType } from '../../topology/types.js';
import { netOverheadUs, ringSteps } from '../formulas.js';
import { rulesOf } from '../../versions/rules.js';
import { baseLatenciesUs, type Medium, stepLatenciesUs } from '../constants.js';
import { graphOf, type TuningInput } from '../input.js';
import { floorLog2 } from '../integers.js';
import type { NcclAlgorithm, Collective, Protocol } from '../names.js';

const { fround, max, min, trunc } = Math;

/**
 * Latency of a collective in NCCL's model, µs: the fixed cost of a call and the cost of its consecutive steps. A C float, with an
 * `fround` wherever NCCL stores one.
 */
export function modelLatency(
  input: TuningInput,
  collective: Collective,
  algorithm: NcclAlgorithm,
  protocol: Protocol,
  parameters: Parameters,
): number {
  const { nRanks, nNodes } = input;
  const isTreeSimple = algorithm === 'Tree' && protocol === 'Simple';
  const rules = rulesOf(input);
  const isCollnet = algorithm === 'CollNetDirect' || algorithm === 'CollNetChain';
  const base = fround(
    isTreeSimple ? rules.treeUs.base : isCollnet ? rules.collnetUs.base[protocol] : baseLatenciesUs[algorithm][protocol],
  );
  const within = fround(stepUs(input, withinNode(input, algorithm), algorithm, protocol));
  const between = betweenNodes(input, algorithm, protocol);
  const others = trunc(nRanks / nNodes) - 1;
  const depth = floorLog2(nNodes);
  switch (algorithm) {
    case 'Ring':
      return fround(base + ringLatency(input, collective, protocol, within, between, parameters));
    case 'Tree':
      return fround(base + fround(2 * fround(fround(others * within) + fround(depth * between))));
    case 'CollNetDirect':
      return fround(base + (2 * (fround(min(1, others) * within) + others * rules.collnetUs.rank) + between));
    case 'CollNetChain':
      return fround(base + fround(fround(2 * others * within) + between));
    case 'NVLS':
      if (rules.nvlsModel === 'as rings')
        return fround(rules.nvlsUs + (nNodes > 1 ? stepUs(input, 'net', algorithm, protocol) : 0));
      return nNodes > 1 ? fround(within + between) : within;
    case 'NVLSTree':
      if (rules.nvlsModel === 'as rings') return fround(rules.nvlsUs + 2 * (nNodes - 1) * rules.nvlsTreeNetUs);
      return fround(base + fround(within + fround(2 * depth * between)));
    // The linear part is in NCCL, too.
    case 'PAT':
      return fround(base + (depth * (between / 3.5) + nRanks * 2.8));
  }
}

function ringLatency(
  input: TuningInput,
  collective: Collective,
  protocol: Protocol,
  within: number,
  between: number,
  parameters: Parameters,
): number {
  const { nRanks, nNodes, graphs } = input;
  const nSteps = ringSteps(collective, nRanks);
  if (collective === 'Broadcast' || collective === 'Reduce') {
    const medium = nNodes === 1 ? withinNode(input, 'Ring') : 'net';
    if (graphs.ring.sameChannels) return fround(stepUs(input, medium, 'Ring', protocol));
    return fround(nSteps * fround(stepUs(input, medium, protocol === 'Simple' ? 'Tree' : 'Ring', protocol)));
  }
  const posting = nNodes === 1 ? 0 : fround(netOverheadUs(input, parameters) * (protocol === 'Simple' ? 3 : 1));
  const interSteps = nodeSteps(input, collective);
  return fround(fround((nSteps - interSteps) * max(within, posting)) + fround(interSteps * between));
}

/** Number of a ring's steps between nodes, as NCCL counts them. */
function nodeSteps(input: TuningInput, collective: Collective): number {
  const { nNodes } = input;
  if (collective !== 'AllReduce') return nNodes - 1;
  if (nNodes === 1) return 0;
  return 2 * (rulesOf(input).ringNodeSteps === 'nodes' ? nNodes : nNodes - 1);
}

/** One step from node to node. With one rank a node nothing hides it, so it costs as much as in trees. */
function betweenNodes(input: TuningInput, algorithm: NcclAlgorithm, protocol: Protocol): number {
  const { latencyInter } = input.graphs[graphOf[algorithm]];
  const alone = input.nRanks === input.nNodes && rulesOf(input).aloneAsTree !== 'none';
  const step = fround(fround(stepUs(input, 'net', alone ? 'Tree' : algorithm, protocol)) + latencyInter);
  // Simple flushes what has arrived.
  return protocol === 'Simple' ? fround(step + latencyInter) : step;
}

function withinNode({ graphs }: TuningInput, algorithm: NcclAlgorithm): Medium {
  return graphs[graphOf[algorithm]].typeIntra === PathType.NVL ? 'nvlink' : 'pci';
}

function stepUs(input: TuningInput, medium: Medium, algorithm: NcclAlgorithm, protocol: Protocol): number {
  const { cpuArch } = input;
  const rules = rulesOf(input);
  if (medium === 'nvlink' && protocol === 'Simple' && (algorithm === 'NVLS' || algorithm === 'NVLSTree')) return rules.nvlsUs;
  if (medium === 'net' && protocol === 'Simple' && algorithm === 'NVLSTree') return rules.nvlsTreeNetUs;
  if (medium === 'net' && protocol === 'Simple' && algorithm === 'PAT') return rules.patNetUs;
  if (protocol === 'Simple' && algorithm === 'CollNetDirect') return rules.collnetUs.direct[medium];
  if (protocol === 'Simple' && algorithm === 'CollNetChain') return rules.collnetUs.chain[medium];
  if (algorithm !== 'Tree' || protocol !== 'Simple') return stepLatenciesUs[medium][algorithm][protocol];
  // On Power, NCCL prefers trees.
  const asRing = cpuArch === CpuArch.POWER && medium === 'pci';
  return asRing ? stepLatenciesUs.pci.Ring.Simple : rules.treeUs[medium];
}
