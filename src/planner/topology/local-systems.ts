import { InputError } from '../../errors.js';
import type { Parameters } from '../parameters.js';
import { LOCAL_GBPS } from './bandwidths.js';
import { computePaths } from './paths/compute-paths.js';
import { Locality } from './paths/locality.js';
import type { Paths } from './paths/paths.js';
import type { DriverFacts } from './paths/reach.js';
import { countOf, type GpuNode, hardwareType, type System } from './system.js';
import { LinkType, NodeType, PathType } from './types.js';
import { rulesOf } from '../versions/rules.js';
import { withoutNodes } from './without-nodes.js';

/** A machine from the point of view of some of its ranks: the input of the search. */
export interface LocalSystem {
  /** Its ranks, ascending; the order of its GPUs may be another. */
  readonly ranks: readonly number[];
  readonly system: System;
  readonly paths: Paths;
  /** True if the communicator has ranks outside. */
  readonly inter: boolean;
  /** Upper bound of one channel: bandwidth of the best path from a GPU to another, or to a NET when inter; GB/s. */
  readonly maxGBps: number;
  /** Upper bound of one GPU over its NVLinks, or over PCI; GB/s. */
  readonly totalGBps: number;
  /** GPU (by index) that uses each NET, -1 for none. */
  readonly gpuOfNet: Int32Array;
  /** True if NVLink SHARP is there and asked for. */
  readonly nvls: boolean;
}

/**
 * The machine from the point of view of its ranks, mostly the same for all. Groups of ranks that cannot reach each other by
 * peer-to-peer or shared memory (forbidden, or the network is faster) count as different hosts, each with a system without the
 * GPUs of the others.
 *
 * @param communicatorRanks number of ranks of the communicator, of which those in the system are some or all
 * @returns one entry for each group, in the order of their lowest ranks
 * @throws InputError where NCCL fails
 */
export function localSystems(
  system: System,
  parameters: Parameters,
  communicatorRanks: number,
  facts: DriverFacts = {},
): LocalSystem[] {
  const paths = computePaths(system, parameters, facts);
  const domains = domainOfGpus(system, paths);
  const groups = [...new Set(domains)];
  const locals = groups.map((domain) => {
    const removed = system.gpus.filter((gpu) => domains[gpu.index] !== domain);
    const isWhole = system.gpus.length - removed.length === communicatorRanks;
    const unused = [...removed, ...(isWhole && !rulesOf(parameters).netsOfOneHost ? system.nets : [])];
    if (unused.length === 0) return finish(system, paths, parameters, communicatorRanks);
    const trimmed = withoutNodes(system, unused);
    return finish(trimmed, computePaths(trimmed, parameters, facts), parameters, communicatorRanks);
  });
  return locals.sort((a, b) => (a.ranks[0] ?? 0) - (b.ranks[0] ?? 0));
}

/** The lowest GPU in the group of each GPU. Only earlier GPUs are compared, so the result depends on their order. */
function domainOfGpus(system: System, paths: Paths): number[] {
  const domains: number[] = [];
  for (const { index: gpu } of system.gpus) {
    let domain = gpu;
    for (let earlier = 0; earlier < gpu; earlier++) {
      const type = paths.type[paths.between(NodeType.GPU, gpu, NodeType.GPU, earlier)] ?? PathType.DIS;
      if (type < PathType.NET) domain = Math.min(domain, domains[earlier] ?? earlier);
    }
    domains.push(domain);
  }
  return domains;
}

function finish(system: System, paths: Paths, parameters: Parameters, communicatorRanks: number): LocalSystem {
  const hasOthers = system.gpus.length !== communicatorRanks;
  // Versions that remove the NICs of a whole communicator check whether there are any.
  const rules = rulesOf(parameters);
  const inter = hasOthers && (rules.netsOfOneHost || system.nets.length > 0);
  const locality = new Locality(system, paths, parameters);
  const alone = !inter && system.gpus.length === 1;
  return {
    ranks: system.gpus.map((gpu) => gpu.rank).sort((a, b) => a - b),
    system,
    paths,
    inter,
    maxGBps: alone ? LOCAL_GBPS : maxBandwidth(system, paths, inter ? NodeType.NET : hardwareType(system)),
    totalGBps: alone
      ? rules.loneGpuIsLimited
        ? LOCAL_GBPS
        : 0
      : Math.max(0, ...system.hardware.map((dev) => totalBandwidth(system, dev.vertex))),
    gpuOfNet: Int32Array.from(system.nets, (net) => locality.gpuOfNet(net.index)),
    nvls: hasNvls(system, parameters),
  };
}

/** The best path from the hardware of any GPU to another, or to a NET, GB/s. */
function maxBandwidth(system: System, paths: Paths, type: NodeType): number {
  let best = 0;
  const count = countOf(system, type);
  for (let index = 0; index < count; index++) {
    for (const dev of system.hardware) {
      const path = paths.to(type, index) + dev.vertex;
      if (paths.hopCount[path] !== 0) best = Math.max(best, paths.bandwidthGBps[path] ?? 0);
    }
  }
  return best;
}

/** Bandwidth of a GPU's NVLinks together, or of its PCI link if that is more, GB/s. */
function totalBandwidth(system: System, dev: number): number {
  const { start, type, bandwidthGBps } = system.links;
  let nvLinkGBps = 0;
  let pciGBps = 0;
  for (let link = start[dev] ?? 0; link < (start[dev + 1] ?? 0); link++) {
    const gbps = bandwidthGBps[link] ?? 0;
    if (type[link] === LinkType.NVL) nvLinkGBps = Math.fround(nvLinkGBps + gbps);
    if (type[link] === LinkType.PCI) pciGBps = gbps;
  }
  return Math.max(pciGBps, nvLinkGBps);
}

/** GPUs have NVLink SHARP from this compute capability on; where they differ, that of the lowest rank counts. */
const NVLS_FROM_SM = 90;

function hasNvls(system: System, parameters: Parameters): boolean {
  const shared = system.hardware.find((dev) => system.gpus.filter((gpu) => gpu.parent === dev.index).length > 1);
  if (shared !== undefined) {
    if (parameters.nvlsEnable !== 1) return false;
    throw new InputError(
      'CONTENT',
      `NCCL_NVLS_ENABLE=1 does not go with several ranks on one GPU (dev ${shared.dev}): unset it, or give each rank a GPU`,
      { ncclResult: 5 },
    );
  }
  if (parameters.nvlsEnable === 0 || system.gpus.length < rulesOf(parameters).nvlsFewestGpus) return false;
  if (parameters.nvlsEnable !== 2) return true;
  const first = system.gpus.reduce<GpuNode | undefined>(
    (lowest, gpu) => (lowest === undefined || gpu.rank < lowest.rank ? gpu : lowest),
    undefined,
  );
  return system.nvSwitches.length > 0 && (first?.sm ?? 0) >= NVLS_FROM_SM;
}
