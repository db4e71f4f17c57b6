import type { Parameters } from '../parameters.js';
import { PathType } from '../topology/types.js';
import type { Medium } from './constants.js';
import { netOverheadUs, ringSteps } from './formulas.js';
import { graphOf, type TuningInput } from './input.js';
import { floorLog2 } from './integers.js';
import type { Collective, NcclAlgorithm, Protocol } from './names.js';

const { fround, max, min, trunc } = Math;

/** Costs that NCCL's two models of latency count differently: µs as C floats, and steps. */
export interface StepCosts {
  /** Fixed cost of a call. */
  readonly base: number;
  /** A step from node to node. */
  readonly between: number;
  /** Each rank that a head of CollNet serves. */
  readonly collnetRank: number;
  /** A ring's steps from node to node. */
  readonly ringNodeSteps: number;
  readonly stepUs: (medium: Medium, algorithm: NcclAlgorithm) => number;
}

/**
 * Latency of the algorithms that both models count alike, µs: a fixed cost and that of consecutive steps. A C float, with an
 * `fround` wherever NCCL stores one.
 */
export function latencyOf(
  input: TuningInput,
  collective: Collective,
  algorithm: 'Ring' | 'Tree' | 'CollNetDirect' | 'CollNetChain',
  protocol: Protocol,
  parameters: Parameters,
  { base, between, collnetRank, ringNodeSteps, stepUs }: StepCosts,
): number {
  const { nRanks, nNodes, graphs } = input;
  const within = fround(stepUs(mediumWithin(input, algorithm), algorithm));
  const others = trunc(nRanks / nNodes) - 1;
  switch (algorithm) {
    case 'Ring': {
      const nSteps = ringSteps(collective, nRanks);
      if (collective === 'Broadcast' || collective === 'Reduce') {
        const medium = nNodes === 1 ? mediumWithin(input, 'Ring') : 'net';
        if (graphs.ring.sameChannels) return fround(base + fround(stepUs(medium, 'Ring')));
        return fround(base + fround(nSteps * fround(stepUs(medium, protocol === 'Simple' ? 'Tree' : 'Ring'))));
      }
      const posting = nNodes === 1 ? 0 : fround(netOverheadUs(input, parameters) * (protocol === 'Simple' ? 3 : 1));
      return fround(base + fround(fround((nSteps - ringNodeSteps) * max(within, posting)) + fround(ringNodeSteps * between)));
    }
    case 'Tree':
      return fround(base + fround(2 * fround(fround(others * within) + fround(floorLog2(nNodes) * between))));
    case 'CollNetDirect':
      return fround(base + (2 * (fround(min(1, others) * within) + others * collnetRank) + between));
    case 'CollNetChain':
      return fround(base + fround(fround(2 * others * within) + between));
  }
}

/** A step over the network and what the NIC adds; Simple flushes what has arrived. */
export function betweenNodes(input: TuningInput, algorithm: NcclAlgorithm, protocol: Protocol, net: number): number {
  const { latencyInter } = input.graphs[graphOf[algorithm]];
  const step = fround(net + latencyInter);
  return protocol === 'Simple' ? fround(step + latencyInter) : step;
}

export function mediumWithin({ graphs }: TuningInput, algorithm: NcclAlgorithm): Medium {
  return graphs[graphOf[algorithm]].typeIntra === PathType.NVL ? 'nvlink' : 'pci';
}
