import type { Parameters } from '../../parameters.js';
import { CpuArch } from '../../topology/system.js';
import { PathType } from '../../topology/types.js';
import { rulesOf } from '../../versions/rules.js';
import { baseLatenciesUs, type Medium, stepLatenciesUs } from '../constants.js';
import { netOverheadUs, ringSteps } from '../formulas.js';
import { graphOf, type TuningInput } from '../input.js';
import { floorLog2 } from '../integers.js';
import type { Collective, NcclAlgorithm, Protocol } from '../names.js';

const { fround, max, min, trunc } = Math;

/** µs for each rank that a head of CollNet serves. */
const COLLNET_RANK_US = 0.4;

/** Latency of a candidate, µs: a fixed cost and that of its consecutive steps. A C float. */
export function candidateLatency(
  input: TuningInput,
  collective: Collective,
  algorithm: NcclAlgorithm,
  protocol: Protocol,
  parameters: Parameters,
): number {
  const { nRanks, nNodes } = input;
  const base = fround(baseLatenciesUs[algorithm][protocol]);
  const within = fround(stepUs(input, withinNode(input, algorithm), algorithm, protocol));
  const between = betweenNodes(input, algorithm, protocol, within);
  const others = trunc(nRanks / nNodes) - 1;
  const depth = floorLog2(nNodes);
  switch (algorithm) {
    case 'Ring':
      return fround(base + ringLatency(input, collective, protocol, within, between, parameters));
    case 'Tree':
      return fround(base + fround(2 * fround(fround(others * within) + fround(depth * between))));
    case 'CollNetDirect':
      return fround(base + (2 * (fround(min(1, others) * within) + others * COLLNET_RANK_US) + between));
    case 'CollNetChain':
      return fround(base + fround(fround(2 * others * within) + between));
    case 'NVLS':
      return nNodes > 1 ? fround(within + between) : within;
    case 'NVLSTree':
      return fround(base + fround(within + fround(2 * depth * between)));
    case 'PAT': {
      const { latencyInter } = input.graphs.tree;
      const medium = nNodes === 1 ? withinNode(input, algorithm) : 'net';
      const step = fround(fround(stepUs(input, medium, asAlone(input, algorithm), protocol)) + latencyInter);
      return fround(base + (depth * (step / 3.5) + nRanks * 2.8));
    }
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
  const interSteps = nNodes === 1 ? 0 : (collective === 'AllReduce' ? 2 : 1) * (nNodes - 1);
  return fround(fround((nSteps - interSteps) * max(within, posting)) + fround(interSteps * between));
}

/** One step from node to node. */
function betweenNodes(input: TuningInput, algorithm: NcclAlgorithm, protocol: Protocol, within: number): number {
  const { latencyInter } = input.graphs[graphOf[algorithm]];
  const net = input.nNodes === 1 ? within : fround(stepUs(input, 'net', asAlone(input, algorithm), protocol));
  const step = fround(net + latencyInter);
  // Simple flushes what has arrived.
  return protocol === 'Simple' ? fround(step + latencyInter) : step;
}

/** The algorithm whose steps between nodes of one rank count: nothing hides them, so they cost as much as in trees. */
function asAlone(input: TuningInput, algorithm: NcclAlgorithm): NcclAlgorithm {
  if (input.maxLocalRanks > 1) return algorithm;
  const { aloneAsTree } = rulesOf(input);
  return aloneAsTree === 'all' || (aloneAsTree === 'rings' && algorithm === 'Ring') ? 'Tree' : algorithm;
}

function withinNode({ graphs }: TuningInput, algorithm: NcclAlgorithm): Medium {
  return graphs[graphOf[algorithm]].typeIntra === PathType.NVL ? 'nvlink' : 'pci';
}

function stepUs({ cpuArch, ncclVersion }: TuningInput, medium: Medium, algorithm: NcclAlgorithm, protocol: Protocol): number {
  const asRing = algorithm === 'Tree' && protocol === 'Simple' && medium === 'pci' && cpuArch === CpuArch.POWER;
  if (asRing && rulesOf({ ncclVersion }).treesOnPower === 'as ring') return stepLatenciesUs.pci.Ring.Simple;
  return stepLatenciesUs[medium][algorithm][protocol];
}
