import { isRubin } from '../../topology/bandwidths.js';
import { PathType } from '../../topology/types.js';
import { baseLatenciesUs, nvlsTreeCaps, ofNodes, ringLl128Caps, stepLatenciesUs, treeCaps, treeLl128Caps } from '../constants.js';
import { isFloat8, latencyCount, llCap, reduces, ringSteps, softMinimum, timeUs } from '../formulas.js';
import { graphOf, type TuningInput } from '../input.js';
import { floorLog2 } from '../integers.js';
import type { Cost, CostedCall } from '../model.js';
import type { Collective, NcclAlgorithm, Protocol } from '../names.js';
import { type Rules, rulesOf } from '../../versions/rules.js';

/**
 * NCCL's model of Rubin since 2.32.6 (`src/tuning/pipeline_model/`): data go through a pipeline of slices.
 *
 *     first slice ──step──step──step──►                time = first slice through all steps
 *       second slice ──step──step──step──►                  + (slices - 1) × its time on the slowest link
 *
 * Limits of LL and LL128 are those of Blackwell, because those of Rubin were not found in public files.
 */

/** Algorithms that it covers; the others keep their models. */
const pipelined = ['Ring', 'Tree', 'NVLS', 'NVLSTree'] as const;
type Pipelined = (typeof pipelined)[number];

/** The algorithm, if a version takes its time from this model. */
export function pipelinedOf(
  { pipelineModel }: Pick<Rules, 'pipelineModel'>,
  { minCompCap }: Pick<TuningInput, 'minCompCap'>,
  algorithm: NcclAlgorithm,
): Pipelined | undefined {
  return pipelineModel && isRubin(minCompCap) ? pipelined.find((each) => each === algorithm) : undefined;
}

const { ceil, floor, fround, max, min } = Math;

/** Round trips of a step on Rubin, µs; links other than NVLink and the network have the usual ones. */
const roundTripsUs = {
  nvlink: {
    Tree: { LL: 3.49, LL128: 4.88, Simple: 10.99 },
    Ring: { LL: 4.03, LL128: 5.46, Simple: 14.26 },
    NVLS: { LL: 0, LL128: 0, Simple: 41.35 },
    NVLSTree: { LL: 0, LL128: 0, Simple: 40.48 },
  },
  net: {
    Tree: { LL: 19.56, LL128: 27.64, Simple: 36.32 },
    Ring: { LL: 8.19, LL128: 11.29, Simple: 15.59 },
    NVLS: { LL: 0, LL128: 0, Simple: stepLatenciesUs.net.NVLS.Simple },
    NVLSTree: { LL: 0, LL128: 0, Simple: 34.37 },
  },
} as const satisfies Record<'nvlink' | 'net', Record<Pipelined, Record<Protocol, number>>>;

/** Share of its links' bandwidth that NVLink SHARP of Rubin reaches. */
const NVLS_EFFICIENCY = fround(0.87);

/** Data among what a protocol moves. */
const dataShare: Readonly<Record<Protocol, number>> = { LL: 0.5, LL128: fround(120 / 128), Simple: 1 };

/** Time of a call. The latency is that of the launch; the steps' are in the bandwidth. */
export function pipelineCost(call: CostedCall, algorithm: Pipelined, protocol: Protocol, bytes: number): Cost {
  const { input, collective, dataType, operations } = call;
  const latencyUs = fround(fround(baseLatenciesUs[algorithm][protocol]) * latencyCount(algorithm === 'Ring', operations));
  const nChannels = call.channelsOf(algorithm, protocol, bytes);
  const bytesOfChannel = ceil(bytes / nChannels);
  const ofChannelUs = pipelineUs(input, collective, algorithm, protocol, bytesOfChannel);
  const most = mostGBps(input, collective, algorithm, protocol);
  const bandwidthGBps = fround(softMinimum(fround(bytesOfChannel / ofChannelUs / 1000) * nChannels, most, 0.1 * most));
  const isPenalised = algorithm === 'Ring' && isFloat8(dataType) && reduces(collective) && input.nRanks > 8;
  return { timeUs: timeUs(latencyUs, bandwidthGBps, bytes, isPenalised), latencyUs, bandwidthGBps };
}

/** Bandwidth of a call's data that a candidate has at most, GB/s. A C float. */
export function mostGBps(input: TuningInput, collective: Collective, algorithm: Pipelined, protocol: Protocol): number {
  return fround((busGBps(input, collective, algorithm, protocol) * input.nRanks) / ringSteps(collective, input.nRanks));
}

/** Steps of one kind: how many, their round trip in µs, bytes a µs of a channel. */
interface Steps {
  readonly count: number;
  readonly roundTripUs: number;
  readonly rate: number;
}

function pipelineUs(input: TuningInput, collective: Collective, algorithm: Pipelined, protocol: Protocol, bytes: number): number {
  const sliceBytes = sliceOf(input, collective, algorithm, protocol, bytes);
  const slices = ceil(bytes / sliceBytes);
  const count = slicesThroughLink(input, collective, algorithm, slices);
  const both = stepsOf(input, collective, algorithm, protocol).filter((steps) => steps.count > 0);
  const first = both.reduce((sum, steps) => sum + steps.count * (steps.roundTripUs / 2 + sliceBytes / steps.rate), 0);
  const next = max(...both.map(({ rate }) => sliceBytes / rate));
  return fround(first + (count - 1) * next);
}

/** Slices that pass through a link: all of a channel, as often as the algorithm sends them there. */
function slicesThroughLink({ nRanks }: TuningInput, collective: Collective, algorithm: Pipelined, slices: number): number {
  switch (algorithm) {
    case 'Ring':
      return ceil((slices * ringSteps(collective, nRanks)) / nRanks) - (collective === 'AllReduce' && nRanks > 2 ? 1 : 0);
    case 'Tree':
      return 2 * slices - 1;
    case 'NVLS':
    case 'NVLSTree':
      return slices;
  }
}

/** Steps within a node, then between nodes. */
function stepsOf(input: TuningInput, collective: Collective, algorithm: Pipelined, protocol: Protocol): readonly [Steps, Steps] {
  const { nNodes, nRanks, maxLocalRanks } = input;
  const graph = input.graphs[graphOf[algorithm]];
  const within = graph.typeIntra === PathType.NVL ? roundTripsUs.nvlink : stepLatenciesUs.pci;
  const between = nNodes === 1 ? within : roundTripsUs.net;
  const usesSwitch = algorithm === 'NVLS' || algorithm === 'NVLSTree';
  const rateOf = (gbps: number) => fround(fround(dataShare[protocol] * gbps) * 1000);
  const make = (inner: number, outer: number): readonly [Steps, Steps] => [
    {
      count: inner,
      roundTripUs: within[algorithm][protocol],
      rate: usesSwitch ? fround(fround(graph.bwIntra * NVLS_EFFICIENCY) * 1000) : rateOf(graph.bwIntra),
    },
    { count: outer, roundTripUs: between[algorithm][protocol], rate: rateOf(graph.bwInter) },
  ];
  const depth = floorLog2(nNodes);
  switch (algorithm) {
    case 'Ring': {
      const all = ringSteps(collective, nRanks);
      const outer = nRanks === nNodes ? all : nNodes === 1 ? 0 : (collective === 'AllReduce' ? 2 : 1) * nNodes;
      return make(all - outer, outer);
    }
    case 'Tree':
      return make(2 * (maxLocalRanks - 1), 2 * depth);
    case 'NVLS':
      return make(collective === 'AllReduce' ? 2 : 1, 0);
    case 'NVLSTree':
      return make(2, 2 * depth);
  }
}

/** Parts of a connection's buffer; a ring with Simple takes four as one chunk, in two slices. */
const STEPS = 8;
/** Parts of ranks are multiples of this. */
const GRAIN_BYTES = 16;

function sliceOf(input: TuningInput, collective: Collective, algorithm: Pipelined, protocol: Protocol, bytes: number): number {
  const goesAround = algorithm === 'Ring' && collective !== 'Broadcast' && collective !== 'Reduce';
  const [chunkSteps, sliceSteps] = goesAround && protocol === 'Simple' ? [STEPS / 2, STEPS / 4] : [1, 1];
  const stepBytes = floor({ LL: input.buffers.ll, LL128: input.buffers.ll128, Simple: input.buffers.simple }[protocol] / STEPS);
  const whole = stepBytes * chunkSteps;
  const nominal = protocol === 'LL' ? floor(whole / 2) : protocol === 'LL128' ? floor(whole / 16) * 15 : whole;
  // A chunk that goes around is no longer than a rank's part.
  const part = goesAround ? min(bytes, ceil(bytes / input.nRanks / GRAIN_BYTES) * GRAIN_BYTES) : bytes;
  const chunk = min(nominal, part);
  const slice = floor(nominal / chunkSteps) * sliceSteps;
  if (protocol !== 'Simple') return min(chunk, slice);
  // Slices count elements of 4 bytes.
  const aligned = ceil(ceil(chunk / 4) / (16 * (chunkSteps / sliceSteps))) * 16;
  return min(chunk, max(aligned, floor(slice / 4 / 32)) * 4);
}

/** Bus bandwidth of all channels, GB/s. */
function busGBps(input: TuningInput, collective: Collective, algorithm: Pipelined, protocol: Protocol): number {
  const { nNodes, nRanks, minLocalRanks, nvls } = input;
  const graph = input.graphs[graphOf[algorithm]];
  const cap = capOf(input, algorithm, protocol);
  const limited = (gbps: number) => min(fround(gbps * dataShare[protocol]), cap);
  switch (algorithm) {
    case 'Ring':
      return fround(limited(nNodes > 1 ? graph.bwInter : graph.bwIntra) * graph.nChannels);
    case 'Tree':
      return fround(limited(fround((nNodes > 1 ? graph.bwInter : graph.bwIntra) * ((nRanks - 1) / nRanks))) * graph.nChannels);
    case 'NVLS':
    case 'NVLSTree': {
      const ctas = max(1, floor((nvls?.nChannels ?? graph.nChannels) / graph.nChannels));
      const share = collective === 'AllReduce' ? 2 : (minLocalRanks - 1) / minLocalRanks;
      const within = ((graph.bwIntra * NVLS_EFFICIENCY * (graph.nChannels - 1)) / (graph.nChannels * ctas)) * share;
      const between = (graph.bwInter * (nNodes <= 2 && algorithm === 'NVLSTree' ? 2 : 1)) / ctas;
      return fround(min(limited(within), limited(between)) * graph.nChannels * ctas);
    }
  }
}

/** The limit of one channel; Infinity without one. */
function capOf(input: TuningInput, algorithm: Pipelined, protocol: Protocol): number {
  const rules = rulesOf(input);
  const { nNodes } = input;
  const positive = (gbps: number) => (gbps > 0 ? gbps : Infinity);
  if (protocol === 'LL') return algorithm === 'Ring' || algorithm === 'Tree' ? positive(llCap(input)) : Infinity;
  if (protocol === 'LL128') {
    if (algorithm === 'Ring') return positive(ofNodes(ringLl128Caps(rules).blackwell, nNodes));
    return algorithm === 'Tree' ? positive(ofNodes(treeLl128Caps(rules).blackwell, nNodes)) : Infinity;
  }
  if (algorithm === 'Tree') return positive(ofNodes(treeCaps(rules).blackwell, nNodes));
  return algorithm === 'NVLSTree' ? positive(ofNodes(nvlsTreeCaps(rules).blackwell, nNodes)) : Infinity;
}
