import type { GraphHeader } from '../../graph/graph.js';
import { rulesOf } from '../../versions/rules.js';
import { generationOf, ofNodes, ringLl128Caps } from '../constants.js';
import { capped, collnetDirectReduceGBps, llCap, nvlsBandwidth, ringSteps, treeBandwidth } from '../formulas.js';
import { graphOf, type TuningInput } from '../input.js';
import type { Bandwidth } from '../model.js';
import type { NcclAlgorithm, Collective, Protocol } from '../names.js';

const { fround, min } = Math;

/**
 * Speed of a collective for large data by NCCL's model: bus bandwidth of the algorithm's channels under the caps of the
 * protocol, then turned into bandwidth of the call's data.
 *
 * NCCL computes in floats, with constants that are doubles; each `fround` stands where it stores a float.
 */
export function modelBandwidth(
  input: TuningInput,
  collective: Collective,
  algorithm: NcclAlgorithm,
  protocol: Protocol,
): Bandwidth {
  const { nRanks } = input;
  const graph = input.graphs[graphOf[algorithm]];
  const bus = busBandwidth(input, graph, collective, algorithm, protocol);
  const rules = rulesOf(input);
  const isNvls = algorithm === 'NVLS' || algorithm === 'NVLSTree';
  const gathers = collective === 'AllGather' || collective === 'ReduceScatter';
  if (gathers && algorithm !== 'Ring' && !(isNvls && rules.nvlsGatherAsReduce)) return bus;
  if (algorithm === 'NVLSTree' && rules.nvlsModel === 'as rings') {
    const { nNodes } = input;
    return { ...bus, gbps: fround(bus.gbps * fround((0.7 * nNodes) / (2 * (nNodes - 1)))) };
  }
  if (isNvls && !rules.nvlsByEfficiency) return { ...bus, gbps: fround(bus.gbps * fround(5 / 6)) };
  const perStep = algorithm === 'Ring' || isNvls;
  return { ...bus, gbps: fround(bus.gbps * (perStep ? fround(nRanks / ringSteps(collective, nRanks)) : 0.5)) };
}

function busBandwidth(
  input: TuningInput,
  graph: GraphHeader,
  collective: Collective,
  algorithm: NcclAlgorithm,
  protocol: Protocol,
): Bandwidth {
  const { nNodes } = input;
  const between = fround(graph.nChannels * (nNodes <= 2 ? graph.bwIntra : graph.bwInter));
  switch (algorithm) {
    case 'Ring':
      return ringBandwidth(input, collective, graph.nChannels, between, protocol);
    case 'Tree':
      return treeBandwidth(
        input,
        graph.nChannels,
        between,
        protocol,
        rulesOf(input).treePatternOfAll ? input.maxTreePattern : graph.pattern,
      );
    case 'PAT':
      return { gbps: fround(between * rulesOf(input).patShare), limit: 'graph' };
    case 'CollNetDirect':
      return { gbps: protocol === 'Simple' ? collnetDirectBandwidth(input, graph, collective) : 0, limit: 'graph' };
    case 'CollNetChain':
      return { gbps: protocol === 'Simple' ? fround(graph.nChannels * graph.bwIntra) : 0, limit: 'graph' };
    case 'NVLS':
    case 'NVLSTree':
      return nvlsBus(input, graph, collective, algorithm);
  }
}

function ringBandwidth(
  input: TuningInput,
  collective: Collective,
  nChannels: number,
  gbps: number,
  protocol: Protocol,
): Bandwidth {
  const { nRanks, nNodes, minCompCap } = input;
  const rules = rulesOf(input);
  switch (protocol) {
    case 'Simple':
      return { gbps, limit: 'graph' };
    // Half of LL's bytes are flags; older versions assume a smaller share of data.
    case 'LL': {
      const copies = nNodes === 1 && collective !== 'AllReduce' && collective !== 'Reduce';
      return capped(gbps * rules.ringLlShare[copies ? 'copies' : 'usual'], llCap(input), 'll');
    }
    case 'LL128': {
      const share = nRanks < 2 * nNodes ? rules.ringLl128ShareAlone : 0.92;
      return capped(gbps * share, nChannels * ofNodes(ringLl128Caps(rules)[generationOf(minCompCap)], nNodes), 'channel');
    }
  }
}

function collnetDirectBandwidth(input: TuningInput, graph: GraphHeader, collective: Collective): number {
  const { nRanks, nNodes, minCompCap } = input;
  if (graph.nChannels === 0) return 0;
  const ranksPerNode = fround(nRanks / nNodes);
  if (collective !== 'AllReduce' && !rulesOf(input).collnetGatherByHeads) {
    // Measured with one and with eight ranks a node; NCCL interpolates linearly between them.
    const share = fround(fround(ranksPerNode - 1) / 7);
    return fround(fround(ranksPerNode * graph.bwIntra) * (share * 0.85 + fround(1 - share) * 0.95));
  }
  if (collective !== 'AllReduce') return fround(ranksPerNode * min(graph.bwIntra, fround(graph.bwInter * fround(0.9))));
  return collnetDirectReduceGBps(ranksPerNode, graph.nChannels, fround(graph.nChannels * graph.bwIntra), minCompCap);
}

function nvlsBus(input: TuningInput, graph: GraphHeader, collective: Collective, algorithm: 'NVLS' | 'NVLSTree'): Bandwidth {
  const { nRanks, nNodes } = input;
  if (rulesOf(input).nvlsByEfficiency) return nvlsBandwidth(input, graph, collective, algorithm, fround(nRanks / nNodes));
  return { gbps: fround(graph.nChannels * plainNvlsBandwidth(input, graph, collective, algorithm)), limit: 'switch' };
}

/** GB/s of one channel before 2.28: the figure of its graph. */
function plainNvlsBandwidth(
  { ncclVersion, nRanks, nNodes }: TuningInput,
  { bwIntra, bwInter }: GraphHeader,
  collective: Collective,
  algorithm: 'NVLS' | 'NVLSTree',
): number {
  const rules = rulesOf({ ncclVersion });
  if (rules.nvlsModel === 'as rings') return nNodes <= 2 ? bwIntra : bwInter;
  if (algorithm === 'NVLSTree') return min(bwIntra, nNodes <= 2 ? bwInter : fround(bwInter / 2));
  if (collective === 'AllReduce' || !rules.nvlsShareOfRanks) return min(bwIntra, bwInter);
  const ranksPerNode = fround(nRanks / nNodes);
  return min(fround(fround(bwIntra * fround(ranksPerNode - 1)) / ranksPerNode), fround(bwInter * fround(0.9)));
}
