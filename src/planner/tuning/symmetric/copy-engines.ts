import { CpuArch } from '../../topology/system.js';
import type { TuningInput } from '../input.js';

const { fround, max } = Math;

/**
 * Time of AllGather by copy engines, one copy to each other GPU: the model that NCCL has since 2.31.2, but does not choose by
 * (src/tuning/ce_model.cc). A launch costs a base and a part for each rank. Buffers differ, so a rank also copies its own part.
 *
 * @param bytes of one rank
 */
export function gatherByCopyEnginesUs({ minCompCap, cpuArch, symmetric: { domainRanks } }: TuningInput, bytes: number): number {
  const isBlackwell = minCompCap >= 100;
  const { linkGBps } = isBlackwell ? blackwell : hopper;
  const startUs = copyEngineStartUs(isBlackwell, domainRanks);
  const copiesUs = fround(startUs + (bytes * (domainRanks - 1)) / linkGBps / 1000);
  // The own part passes through the memory of a CPU that does not share caches with GPUs.
  return cpuArch === CpuArch.ARM ? copiesUs : max(copiesUs, fround(startUs + bytes / HOST_GBPS / 1000));
}

/** Time of the launch in that model, µs. */
export function copyEngineStartUs(isBlackwell: boolean, domainRanks: number): number {
  const { baseUs, rankUs } = isBlackwell ? blackwell : hopper;
  return fround(baseUs + rankUs * domainRanks);
}

const hopper = { baseUs: 17.5, rankUs: 1.957, linkGBps: 392 };
const blackwell = { baseUs: 32.04, rankUs: 0.13, linkGBps: 779 };
/** Two engines of 53 GB/s. */
const HOST_GBPS = 106;
