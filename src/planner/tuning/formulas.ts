import { type GraphHeader, Pattern } from '../graph/graph.js';
import { CpuArch, CpuVendor } from '../topology/system.js';
import { rulesOf } from '../versions/rules.js';
import type { Parameters } from '../parameters.js';
import { generationOf, llCapGBps, nvlsEfficiency, nvlsTreeCaps, ofNodes, treeCaps, treeLl128Caps } from './constants.js';
import type { TuningInput } from './input.js';
import type { Bandwidth, BandwidthLimit } from './model.js';
import type { Collective, DataTypeName, OperatorName, Protocol } from './names.js';

/** Formulas that both models of time have. */

const { fround, min } = Math;

/** Steps that each part of the data takes around a ring. */
export function ringSteps(collective: Collective, nRanks: number): number {
  switch (collective) {
    case 'AllReduce':
      return 2 * (nRanks - 1);
    case 'AllGather':
    case 'ReduceScatter':
      return nRanks - 1;
    case 'Broadcast':
    case 'Reduce':
      return nRanks;
  }
}

/** The limit of LL for all channels of a node together, GB/s: between nodes its data pass through memory of the CPU. */
export function llCap(input: TuningInput): number {
  const { nNodes, minCompCap, cpuVendor } = input;
  const amdOrMixed = cpuVendor === CpuVendor.AMD || cpuVendor === CpuVendor.MIXED;
  return llCapGBps(nNodes, generationOf(minCompCap), amdOrMixed, rulesOf(input));
}

/** The lesser of a bandwidth and a cap, as a C float. */
export function capped(gbps: number, cap: number, capLimit: BandwidthLimit, limit: BandwidthLimit = 'graph'): Bandwidth {
  return gbps <= cap ? { gbps: fround(gbps), limit } : { gbps: fround(cap), limit: capLimit };
}

/** Bus bandwidth of trees whose channels carry `gbps` together. */
export function treeBandwidth(
  input: TuningInput,
  nChannels: number,
  channels: number,
  protocol: Protocol,
  pattern: number,
): Bandwidth {
  const { nNodes, minCompCap } = input;
  const rules = rulesOf(input);
  const generation = generationOf(minCompCap);
  let tree = capped(channels * 0.92, nChannels * ofNodes(treeCaps(rules)[generation], nNodes), 'channel');
  if (protocol === 'LL') tree = capped(tree.gbps / 3.8, llCap(input), 'll', tree.limit);
  if (protocol === 'LL128') {
    const share = nNodes === 1 ? 7 / 9 : 120 / 128;
    tree = capped(tree.gbps * share, nChannels * ofNodes(treeLl128Caps(rules)[generation], nNodes), 'channel', tree.limit);
  }
  return pattern === Pattern.TREE ? { ...tree, gbps: fround(tree.gbps * 0.85) } : tree;
}

/** CollNetDirect at full speed needs a NIC for each GPU; half of the missing share is lost. */
export function collnetDirectReduceGBps(ranksPerNode: number, nChannels: number, channels: number, minCompCap: number): number {
  const ratio = fround(ranksPerNode / nChannels);
  const factor = fround(ratio - fround(fround(ratio - 1) / 2));
  const gbps = fround(channels / factor);
  return minCompCap >= 90 ? fround(gbps * 0.85) : gbps;
}

/** Bus bandwidth of NVLink SHARP: of the switch, the network and, for trees, what a channel carries, the least. */
export function nvlsBandwidth(
  input: TuningInput,
  { nChannels, bwIntra, bwInter }: GraphHeader,
  collective: Collective,
  algorithm: 'NVLS' | 'NVLSTree',
  ranksPerNode: number,
): Bandwidth {
  const { nNodes, minCompCap } = input;
  const generation = generationOf(minCompCap);
  const efficient = fround(bwIntra * nvlsEfficiency[generation]);
  const head = fround(fround(efficient * (nChannels - 1)) / nChannels);
  // All-reduce pipelines two operations.
  const within = fround(head * (collective === 'AllReduce' ? 2 : fround(fround(ranksPerNode - 1) / ranksPerNode)));
  const network = fround(bwInter * (nNodes <= 2 && algorithm === 'NVLSTree' ? 2 : 1));
  const cap = algorithm === 'NVLSTree' ? fround(ofNodes(nvlsTreeCaps(rulesOf(input))[generation], nNodes)) : Infinity;
  const gbps = min(within, network, cap);
  return { gbps: fround(nChannels * gbps), limit: gbps === within ? 'switch' : gbps === network ? 'network' : 'channel' };
}

/** Cost of posting to the network, µs. */
export function netOverheadUs({ cpuArch, cpuVendor }: TuningInput, { netOverheadNs }: Parameters): number {
  if (netOverheadNs !== undefined) return fround(netOverheadNs * 0.001);
  return cpuArch === CpuArch.X86 && cpuVendor === CpuVendor.AMD ? 2 : 1;
}

/** True if data are combined; NCCL treats copied data as bytes of any type. */
export function reduces(collective: Collective): boolean {
  return collective !== 'AllGather' && collective !== 'Broadcast';
}

export function isFloat8(dataType: DataTypeName): boolean {
  return dataType === 'float8e4m3' || dataType === 'float8e5m2';
}

/** True for types and operators that NVSwitches reduce; averages are not among them. */
export function switchReduces(operator: OperatorName, dataType: DataTypeName): boolean {
  switch (dataType) {
    case 'int32':
    case 'uint32':
    case 'int64':
    case 'uint64':
    case 'float16':
    case 'bfloat16':
      return operator === 'sum' || operator === 'min' || operator === 'max';
    case 'float32':
    case 'float64':
      return operator === 'sum';
    default:
      return false;
  }
}

/**
 * Types and operators that a SHARP network reduces, after NVIDIA's plugin (nccl-rdma-sharp-plugins): an average is a sum. Older
 * switches (before SHARP v3) cannot do bfloat16 and 8-bit integers; these are taken to be new ones.
 */
export function networkReduces(operator: OperatorName, dataType: DataTypeName): boolean {
  return operator !== 'prod' && !isFloat8(dataType);
}

/** Number of operations that fit into one batch of work. */
const OPERATIONS_PER_BATCH = 8;

/** Latencies that the operations of a group cost: rings have one each, others share. */
export function latencyCount(isRing: boolean, operations: number): number {
  return isRing ? operations : Math.ceil(operations / OPERATIONS_PER_BATCH);
}

/** Factor of NCCL on the time of long rings for 8-bit floats, which lose precision at each step. */
const FLOAT8_RING_PENALTY = 1024;

/** Time of a size at a bandwidth and after a latency; rings of 8-bit floats that combine are last. */
export function timeUs(latencyUs: number, bandwidthGBps: number, bytes: number, isPenalised: boolean): number {
  const us = fround(latencyUs + fround(fround(bytes) / fround(1000 * bandwidthGBps)));
  return isPenalised ? fround(us * FLOAT8_RING_PENALTY) : us;
}

/** The lesser of both, with a smooth corner. */
export function softMinimum(value: number, ceiling: number, softness: number): number {
  return ceiling - softness * Math.log1p((Math.exp(ceiling / softness) - 1) * Math.exp(-value / softness));
}
