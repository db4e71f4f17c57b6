import type { Parameters } from '../../parameters.js';
import { CpuArch } from '../../topology/system.js';
import { rulesOf } from '../../versions/rules.js';
import { baseLatenciesUs, type Medium, stepLatenciesUs } from '../constants.js';
import type { TuningInput } from '../input.js';
import { floorLog2 } from '../integers.js';
import { betweenNodes, latencyOf, mediumWithin } from '../latency.js';
import type { NcclAlgorithm, Collective, Protocol } from '../names.js';

const { fround } = Math;

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
  // With one rank a node nothing hides a step over the network, so it costs as much as in trees.
  const alone = nRanks === nNodes && rules.aloneAsTree !== 'none';
  const between = betweenNodes(input, algorithm, protocol, fround(stepUs(input, 'net', alone ? 'Tree' : algorithm, protocol)));
  const depth = floorLog2(nNodes);
  switch (algorithm) {
    case 'NVLS':
    case 'NVLSTree': {
      const within = fround(stepUs(input, mediumWithin(input, algorithm), algorithm, protocol));
      if (algorithm === 'NVLS') {
        if (rules.nvlsModel === 'as rings')
          return fround(rules.nvlsUs + (nNodes > 1 ? stepUs(input, 'net', algorithm, protocol) : 0));
        return nNodes > 1 ? fround(within + between) : within;
      }
      if (rules.nvlsModel === 'as rings') return fround(rules.nvlsUs + 2 * (nNodes - 1) * rules.nvlsTreeNetUs);
      return fround(base + fround(within + fround(2 * depth * between)));
    }
    // The linear part is in NCCL, too.
    case 'PAT':
      return fround(base + (depth * (between / 3.5) + nRanks * 2.8));
    default:
      return latencyOf(input, collective, algorithm, protocol, parameters, {
        base,
        between,
        collnetRank: rules.collnetUs.rank,
        ringNodeSteps: nodeSteps(input, collective),
        stepUs: (medium, of) => stepUs(input, medium, of, protocol),
      });
  }
}

/** Number of a ring's steps between nodes, as NCCL counts them. */
function nodeSteps(input: TuningInput, collective: Collective): number {
  const { nNodes } = input;
  if (collective !== 'AllReduce') return nNodes - 1;
  if (nNodes === 1) return 0;
  return 2 * (rulesOf(input).ringNodeSteps === 'nodes' ? nNodes : nNodes - 1);
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
