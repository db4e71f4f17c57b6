import { InputError } from '../../../errors.js';
import type { Parameters } from '../../parameters.js';
import { CpuArch, CpuVendor, type GpuNode, hardwareType, nodeName, type System } from '../system.js';
import { NodeType, PathType } from '../types.js';
import { rulesOf } from '../../versions/rules.js';
import type { Paths } from './paths.js';

/** Answers of the driver about the GPUs of a host; without it, the planner assumes that only some GeForce cards are refused. */
export interface DriverFacts {
  /** True where the driver refuses peer-to-peer copies between two GPUs of a host, by their `dev`. */
  readonly refusesP2p?: (dev: number, otherDev: number) => boolean;
}

/** Transports between two GPUs of one system, and their peer-to-peer access. */
export class Reach {
  readonly #system: System;
  readonly #paths: Paths;
  readonly #parameters: Parameters;
  readonly #hardwareType: typeof NodeType.DEV | typeof NodeType.GPU;
  readonly #facts: DriverFacts;
  /** The farthest type of path for peer-to-peer. */
  readonly p2pLevel: PathType;
  /** Fastest NET within a PCI tree by GPU, GB/s; computed when first asked for. */
  readonly #nearNetGBps: Float32Array;

  constructor(system: System, paths: Paths, parameters: Parameters, facts: DriverFacts = {}) {
    this.#system = system;
    this.#paths = paths;
    this.#parameters = parameters;
    this.#hardwareType = hardwareType(system);
    this.#facts = facts;
    this.p2pLevel = p2pLevel(system, parameters);
    this.#nearNetGBps = new Float32Array(system.gpus.length).fill(-1);
  }

  /**
   * True if `from` may copy to `to` directly, by their distance and the driver's answer.
   *
   * @throws InputError when the driver refuses it for GPUs joined by NVLink, which hints at broken hardware.
   */
  isPeer(from: number, to: number): boolean {
    const relay = this.relay(from, to);
    const type = this.pathType(from, to);
    if (type > this.p2pLevel) return false;
    if (this.#parameters.ignoreDisabledP2p === 2) return true;
    const chain = relay < 0 ? [from, to] : [from, relay, to];
    return chain.every((gpu, position) => position === 0 || !this.#isRefused(chain[position - 1] ?? 0, gpu, type));
  }

  /**
   * The GPU through which two GPUs are connected over NVLink, or -1.
   *
   * @throws InputError when no rank uses that GPU.
   */
  relay(from: number, to: number): number {
    const path = this.#path(from, to);
    // GPU - DEV - DEV - DEV - GPU, or GPU - GPU - GPU where GPUs have their links themselves.
    const hops = this.#hardwareType === NodeType.DEV ? 4 : 2;
    if (this.#paths.hopCount[path] !== hops) return -1;
    const first = this.#paths.firstHop[path] ?? 0;
    const middle = hops === 4 ? (this.#paths.nextHop[first] ?? 0) : first;
    const between = this.#system.nodes[this.#system.links.to[this.#paths.hopLink[middle] ?? 0] ?? 0];
    if (between?.type !== this.#hardwareType) return -1;
    const relay = this.#system.gpus.findIndex((gpu) => gpu.systemId === between.systemId && gpu.dev === between.dev);
    if (relay >= 0) return relay;
    throw new InputError(
      'NO_PATH',
      `${this.#name(from)} and ${this.#name(to)} are joined over NVLink by way of ${nodeName(between)}, which no rank uses; set NCCL_NVB_DISABLE=1 or use that GPU`,
      { ncclResult: 3 },
    );
  }

  /** True if two GPUs connect by peer-to-peer or shared memory; otherwise by the network. */
  connects(from: number, to: number): boolean {
    return this.connectsByP2p(from, to) || this.connectsByShm(from, to);
  }

  /** True if two GPUs would be connected by the P2P transport. */
  connectsByP2p(from: number, to: number): boolean {
    if (!this.isPeer(from, to)) return false;
    if (this.relay(from, to) >= 0) return true;
    if (this.isNetFaster(from, to)) return false;
    return !this.onOneHost(from, to) || this.#sameHardware(from, to) || !this.driverRefuses(from, to);
  }

  /** True if two GPUs can be connected by the SHM transport. */
  connectsByShm(from: number, to: number): boolean {
    return this.#parameters.shmDisable !== 1 && !this.isNetFaster(from, to) && this.onOneHost(from, to);
  }

  /** True if both GPUs reach a NET in their PCI tree faster than they reach each other. */
  isNetFaster(from: number, to: number): boolean {
    if (this.#parameters.netDisableIntra === 1) return false;
    const gbps = this.#paths.bandwidthGBps[this.#path(from, to)] ?? 0;
    return this.#nearNet(from) > gbps && this.#nearNet(to) > gbps;
  }

  /** True if two GPUs are on the same host of an NVLink domain. */
  onOneHost(from: number, to: number): boolean {
    return this.#gpu(from).systemId === this.#gpu(to).systemId;
  }

  /** Path type between two GPUs. */
  pathType(from: number, to: number): PathType {
    return (this.#paths.type[this.#path(from, to)] ?? PathType.DIS) as PathType;
  }

  /** True if the driver refuses peer-to-peer copies between two GPUs of a host. */
  driverRefuses(from: number, to: number): boolean {
    const { refusesP2p } = this.#facts;
    if (refusesP2p !== undefined) return refusesP2p(this.#gpu(from).dev, this.#gpu(to).dev);
    if (this.pathType(from, to) <= PathType.NVB) return false;
    return this.#gpu(from).refusesPciP2p || this.#gpu(to).refusesPciP2p;
  }

  #nearNet(gpu: number): number {
    const known = this.#nearNetGBps[gpu] ?? -1;
    if (known >= 0) return known;
    const vertex = (this.#system.first[NodeType.GPU] ?? 0) + gpu;
    let best = 0;
    for (let net = 0; net < this.#system.nets.length; net++) {
      const path = this.#paths.to(NodeType.NET, net) + vertex;
      if ((this.#paths.type[path] ?? 0) <= PathType.PXB) best = Math.max(best, this.#paths.bandwidthGBps[path] ?? 0);
    }
    this.#nearNetGBps[gpu] = best;
    return best;
  }

  #isRefused(from: number, to: number, type: number): boolean {
    if (!this.onOneHost(from, to) || this.#sameHardware(from, to)) return false;
    if (!this.driverRefuses(from, to)) return false;
    if (this.#parameters.ignoreDisabledP2p === 0 && type <= PathType.NVB) throw this.#refusedNvLink(from, to);
    return true;
  }

  #refusedNvLink(from: number, to: number): InputError {
    return new InputError(
      'CONTENT',
      `the driver refuses peer-to-peer between ${this.#name(from)} and ${this.#name(to)}, which are joined by NVLink: look for broken hardware, or set NCCL_IGNORE_DISABLED_P2P=1`,
      { ncclResult: 1 },
    );
  }

  #path(from: number, to: number): number {
    return this.#paths.between(NodeType.GPU, from, NodeType.GPU, to);
  }

  #sameHardware(from: number, to: number): boolean {
    return this.#gpu(from).parent === this.#gpu(to).parent;
  }

  #gpu(index: number): GpuNode {
    const gpu = this.#system.gpus[index];
    if (gpu === undefined) throw new RangeError(`no GPU ${index}`);
    return gpu;
  }

  #name(gpu: number): string {
    return `${nodeName(this.#gpu(gpu))} (rank ${this.#gpu(gpu).rank})`;
  }
}

/** The farthest type of path for peer-to-peer: the user's, otherwise by CPU. */
function p2pLevel(system: System, parameters: Parameters): PathType {
  if (parameters.p2pDisable === 1) return PathType.LOC;
  if (parameters.p2pLevel !== undefined) return parameters.p2pLevel;
  const cpu = system.cpus[0];
  const { p2pThroughCpu } = rulesOf(parameters);
  const isAmd = cpu?.arch === CpuArch.X86 && cpu.vendor === CpuVendor.AMD;
  if (p2pThroughCpu === 'amd pairs') return isAmd && system.hardware.length <= 2 ? PathType.SYS : PathType.PXB;
  const isX86 = cpu?.arch === CpuArch.X86 && (cpu.vendor === CpuVendor.INTEL || cpu.vendor === CpuVendor.ZHAOXIN);
  return isX86 || cpu?.arch === CpuArch.ARM ? PathType.PXB : PathType.SYS;
}
