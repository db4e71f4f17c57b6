import { rulesOf } from '../../versions/rules.js';
import { generationOf, ofNodes, ringLl128Caps } from '../constants.js';
import { capped, collnetDirectReduceGBps, llCap, nvlsBandwidth, ringSteps, treeBandwidth } from '../formulas.js';
import { graphOf, type TuningInput } from '../input.js';
import type { Bandwidth } from '../model.js';
import type { Collective, NcclAlgorithm, Protocol } from '../names.js';

const { fround, min } = Math;

/** Bandwidth of a candidate's data for large calls; an `fround` wherever NCCL stores a C float. */
export function candidateBandwidth(
  input: TuningInput,
  collective: Collective,
  algorithm: NcclAlgorithm,
  protocol: Protocol,
): Bandwidth {
  switch (algorithm) {
    case 'Ring':
      return ring(input, collective, protocol);
    case 'Tree':
      return tree(input, protocol);
    case 'PAT':
      return pat(input);
    case 'CollNetDirect':
    case 'CollNetChain':
      return collnet(input, collective, algorithm);
    case 'NVLS':
    case 'NVLSTree':
      return nvls(input, collective, algorithm);
  }
}

const BLACKWELL = 100;

function ring(input: TuningInput, collective: Collective, protocol: Protocol): Bandwidth {
  const { nRanks, nNodes, minCompCap, graphs } = input;
  const { nChannels, bwIntra, bwInter } = graphs.ring;
  const rules = rulesOf(input);
  const twoAsOne = rules.ringSpeedOfTwoNodes === 'within' || minCompCap < BLACKWELL;
  const channels = fround((nNodes === 1 || (nNodes === 2 && twoAsOne) ? bwIntra : bwInter) * nChannels);
  const bus = ((): Bandwidth => {
    switch (protocol) {
      case 'Simple':
        return { gbps: channels, limit: 'graph' };
      case 'LL':
        return capped(channels * 0.5, llCap(input), 'll');
      case 'LL128': {
        const cap = nChannels * ofNodes(ringLl128Caps(rules)[generationOf(minCompCap)], nNodes);
        return capped(channels * 0.92, cap, 'channel');
      }
    }
  })();
  return { ...bus, gbps: ofData(bus.gbps, nRanks, ringSteps(collective, nRanks)) };
}

/** Bus bandwidth as bandwidth of the data: each step moves one part of as many as there are ranks. */
function ofData(busGBps: number, nRanks: number, nSteps: number): number {
  return fround(fround(busGBps * nRanks) / nSteps);
}

function tree(input: TuningInput, protocol: Protocol): Bandwidth {
  const { nNodes, minCompCap, maxTreePattern, graphs } = input;
  const { nChannels, bwIntra, bwInter } = graphs.tree;
  const takesLesser = rulesOf(input).treeSpeed === 'lesser on blackwell' && minCompCap >= BLACKWELL;
  const speed = takesLesser ? min(bwInter, bwIntra) : nNodes <= 2 ? bwIntra : bwInter;
  const bus = treeBandwidth(input, nChannels, fround(speed * nChannels), protocol, maxTreePattern);
  return { ...bus, gbps: fround(bus.gbps * 0.5) };
}

function pat(input: TuningInput): Bandwidth {
  const { nNodes, graphs } = input;
  const { nChannels, bwIntra, bwInter } = graphs.tree;
  const rules = rulesOf(input);
  const speed = rules.patSpeed === 'lesser' ? min(bwInter, bwIntra) : nNodes <= 2 ? bwIntra : bwInter;
  return { gbps: fround(fround(speed * nChannels) * rules.patShare), limit: 'graph' };
}

function collnet(input: TuningInput, collective: Collective, algorithm: 'CollNetDirect' | 'CollNetChain'): Bandwidth {
  const { nRanks, nNodes, minCompCap, graphs } = input;
  const { nChannels, bwIntra, bwInter } = graphs[graphOf[algorithm]];
  if (nChannels === 0) return { gbps: 0, limit: 'graph' };
  const ranksPerNode = fround(nRanks / nNodes);
  if (collective !== 'AllReduce') {
    return { gbps: fround(ranksPerNode * min(bwIntra, fround(bwInter * fround(0.9)))), limit: 'graph' };
  }
  const channels = fround(nChannels * bwIntra);
  const bus = algorithm === 'CollNetDirect' ? collnetDirectReduceGBps(ranksPerNode, nChannels, channels, minCompCap) : channels;
  return { gbps: fround(bus * 0.5), limit: 'graph' };
}

function nvls(input: TuningInput, collective: Collective, algorithm: 'NVLS' | 'NVLSTree'): Bandwidth {
  const { nRanks, nNodes, minLocalRanks, graphs } = input;
  const ranks = rulesOf(input).nvlsRanksOfNode === 'fewest' ? minLocalRanks : fround(nRanks / nNodes);
  const bus = nvlsBandwidth(input, graphs.nvls, collective, algorithm, ranks);
  return collective === 'AllReduce' ? { ...bus, gbps: ofData(bus.gbps, nRanks, ringSteps(collective, nRanks)) } : bus;
}
