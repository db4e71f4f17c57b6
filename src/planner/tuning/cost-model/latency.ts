import type { Parameters } from '../../parameters.js';
import { CpuArch } from '../../topology/system.js';
import { rulesOf } from '../../versions/rules.js';
import { baseLatenciesUs, type Medium, stepLatenciesUs } from '../constants.js';
import type { TuningInput } from '../input.js';
import { floorLog2 } from '../integers.js';
import { betweenNodes, latencyOf, mediumWithin } from '../latency.js';
import type { Collective, NcclAlgorithm, Protocol } from '../names.js';

const { fround } = Math;

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
  const within = fround(stepUs(input, mediumWithin(input, algorithm), algorithm, protocol));
  const net = nNodes === 1 ? within : fround(stepUs(input, 'net', asAlone(input, algorithm), protocol));
  const between = betweenNodes(input, algorithm, protocol, net);
  const depth = floorLog2(nNodes);
  switch (algorithm) {
    case 'NVLS':
      return nNodes > 1 ? fround(within + between) : within;
    case 'NVLSTree':
      return fround(base + fround(within + fround(2 * depth * between)));
    case 'PAT': {
      const { latencyInter } = input.graphs.tree;
      const medium = nNodes === 1 ? mediumWithin(input, algorithm) : 'net';
      const step = fround(fround(stepUs(input, medium, asAlone(input, algorithm), protocol)) + latencyInter);
      return fround(base + (depth * (step / 3.5) + nRanks * 2.8));
    }
    default:
      return latencyOf(input, collective, algorithm, protocol, parameters, {
        base,
        between,
        collnetRank: COLLNET_RANK_US,
        ringNodeSteps: nNodes === 1 ? 0 : (collective === 'AllReduce' ? 2 : 1) * (nNodes - 1),
        stepUs: (medium, of) => stepUs(input, medium, of, protocol),
      });
  }
}

/** The algorithm whose steps between nodes of one rank count: nothing hides them, so they cost as much as in trees. */
function asAlone(input: TuningInput, algorithm: NcclAlgorithm): NcclAlgorithm {
  if (input.maxLocalRanks > 1) return algorithm;
  const { aloneAsTree } = rulesOf(input);
  return aloneAsTree === 'all' || (aloneAsTree === 'rings' && algorithm === 'Ring') ? 'Tree' : algorithm;
}

function stepUs({ cpuArch, ncclVersion }: TuningInput, medium: Medium, algorithm: NcclAlgorithm, protocol: Protocol): number {
  const asRing = algorithm === 'Tree' && protocol === 'Simple' && medium === 'pci' && cpuArch === CpuArch.POWER;
  if (asRing && rulesOf({ ncclVersion }).treesOnPower === 'as ring') return stepLatenciesUs.pci.Ring.Simple;
  return stepLatenciesUs[medium][algorithm][protocol];
}
