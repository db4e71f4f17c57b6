import { InputError } from '../../../errors.js';
import type { Parameters } from '../../parameters.js';
import { hardwareType, nodeName, type System } from '../system.js';
import { NodeType, PathType } from '../types.js';
import { rulesOf } from '../../versions/rules.js';
import type { Locality } from './locality.js';
import type { Paths } from './paths.js';

/** Access of a NIC to the memory of a GPU, with NCCL's numbers. */
export const GdrMode = {
  /** None: data go through the memory of the host. */
  DISABLED: 0,
  /** Directly. */
  DEFAULT: 1,
  /** Directly, over PCI although the GPU has C2C to its CPU. */
  PCI: 2,
} as const;
export type GdrMode = (typeof GdrMode)[keyof typeof GdrMode];

/** Reason for a NIC's access to the memory of a GPU. */
export type GdrReason =
  /** The path is near enough. */
  | 'near'
  /** The NIC cannot. */
  | 'nic'
  /** The GPU cannot. */
  | 'gpu'
  /** The GPU is a part of a split one, and `NCCL_NET_GDR_MLOPART` does not allow it. */
  | 'split-gpu'
  /** `NCCL_NET_GDR_READ` forbids reads, or the GPU is older than Ampere and has no NVLink. */
  | 'read'
  /** The path is farther than `NCCL_NET_GDR_LEVEL` allows. */
  | 'far';

/** A mode and its cause. */
interface GdrDecision {
  readonly mode: GdrMode;
  readonly reason: GdrReason;
}

/** GPU Direct RDMA goes to GPUs from this compute capability on for reads, NVLink or not. */
const READS_FROM_SM = 80;

/** All possible decisions, one object for each, because paths request them often. */
const allowed: GdrDecision = { mode: GdrMode.DEFAULT, reason: 'near' };
const allowedOverPci: GdrDecision = { mode: GdrMode.PCI, reason: 'near' };
const refused = Object.fromEntries(
  (['nic', 'gpu', 'split-gpu', 'read', 'far'] as const).map((reason) => [reason, { mode: GdrMode.DISABLED, reason }]),
) as Record<Exclude<GdrReason, 'near'>, GdrDecision>;

/** Decides for which GPUs and NETs GPU Direct RDMA is used. */
export class GpuDirect {
  readonly #system: System;
  readonly #paths: Paths;
  readonly #locality: Locality;
  readonly #parameters: Parameters;
  readonly #level: PathType;
  /** Older versions count paths over C2C and a CPU as C2C. */
  readonly #c2cIsNear: boolean;
  /** The type of these paths. */
  readonly #overC2c: PathType;

  constructor(system: System, paths: Paths, locality: Locality, parameters: Parameters) {
    this.#system = system;
    this.#paths = paths;
    this.#locality = locality;
    this.#parameters = parameters;
    const rules = rulesOf(parameters);
    const overC2c = (parameters.netGdrC2c ?? rules.netGdrC2c) !== 0;
    this.#overC2c = rules.pathOrder === 'no p2c' ? PathType.PHB : PathType.P2C;
    this.#c2cIsNear = !rules.gdrLevelCountsC2c && overC2c;
    this.#level = parameters.netGdrLevel ?? (overC2c && rules.gdrLevelCountsC2c ? PathType.P2C : PathType.PXB);
  }

  /** Access of a NET to the memory of a GPU: it reads for sends and writes for receives. */
  mode(gpu: number, net: number, direction: 'read' | 'write'): GdrMode {
    return this.decide(gpu, net, direction).mode;
  }

  /** The same with its reason. */
  decide(gpu: number, net: number, direction: 'read' | 'write'): GdrDecision {
    const gpuNode = this.#system.gpus[gpu];
    if (this.#system.nets[net]?.gdr !== true) return refused.nic;
    if (gpuNode?.gdr !== true) return refused.gpu;
    if (gpuNode.mloPart !== -1 && this.#parameters.netGdrMloPart === 0) return refused['split-gpu'];
    if (direction === 'read' && !this.#mayRead(gpu, gpuNode.sm)) return refused.read;

    let near = gpu;
    let distance = this.#distance(near, net);
    if (distance === PathType.PXN) {
      near = this.proxyGpu(gpu, net);
      distance = this.#distance(near, net);
    }
    if (this.#c2cIsNear && this.#goesOverC2c(near, distance)) distance = PathType.C2C;
    if (distance > this.#level) return refused.far;
    const cpu = this.#locality.cpuOfGpu(near);
    const overC2c = this.#paths.type[this.#paths.between(NodeType.GPU, near, NodeType.CPU, cpu)] === PathType.C2C;
    return overC2c && distance !== PathType.P2C && distance !== PathType.C2C ? allowedOverPci : allowed;
  }

  /**
   * The GPU that a GPU uses a NET through: another one where the path is of type PXN, else itself.
   *
   * @throws InputError when no rank uses the GPU on the path.
   */
  proxyGpu(gpu: number, net: number): number {
    const path = this.#paths.between(NodeType.GPU, gpu, NodeType.NET, net);
    if (this.#paths.type[path] !== PathType.PXN) return gpu;
    const { links } = this.#system;
    const hops = this.#paths.links(path);
    // GPUs that have their links themselves have no DEV node before the first NVSwitch.
    let step = hardwareType(this.#system) === NodeType.DEV ? 1 : 0;
    const vertexAt = (position: number) => links.to[hops[position] ?? 0] ?? 0;
    while (step < hops.length && this.#system.nodes[vertexAt(step)]?.type === NodeType.NVS) step++;

    let node = this.#system.nodes[vertexAt(step)];
    if (node?.type === NodeType.DEV) {
      const end = links.start[node.vertex + 1] ?? 0;
      for (let link = links.start[node.vertex] ?? 0; link < end; link++) {
        const neighbour = this.#system.nodes[links.to[link] ?? 0];
        if (neighbour?.type !== NodeType.GPU) continue;
        node = neighbour;
        break;
      }
    }
    if (node?.type !== NodeType.GPU) {
      throw new InputError(
        'NO_PATH',
        `the path from GPU ${gpu} to NET ${net} goes by way of ${node === undefined ? 'no node' : nodeName(node)}, which no rank uses`,
        { ncclResult: 3 },
      );
    }
    const { systemId, dev } = node;
    return this.#system.gpus.findIndex((other) => other.systemId === systemId && other.dev === dev);
  }

  /** Before Ampere, reads share PCI with other traffic of the GPU, so they help only where NVLink carries that traffic. */
  #mayRead(gpu: number, sm: number): boolean {
    const wish = this.#parameters.netGdrRead;
    if (wish === 0) return false;
    const isNew = sm >= READS_FROM_SM && rulesOf(this.#parameters).gdrReadsFromAmpere;
    if (wish > 0 || isNew || this.#system.gpus.length === 1) return true;
    return this.#system.gpus.some(
      ({ index }) =>
        index !== gpu && this.#paths.type[this.#paths.between(NodeType.GPU, gpu, NodeType.GPU, index)] === PathType.NVL,
    );
  }

  #goesOverC2c(gpu: number, distance: number): boolean {
    if (distance !== this.#overC2c) return false;
    const toCpu = this.#paths.between(NodeType.GPU, gpu, NodeType.CPU, this.#locality.cpuOfGpu(gpu));
    return distance === PathType.P2C || this.#paths.type[toCpu] === PathType.C2C;
  }

  #distance(gpu: number, net: number): number {
    return this.#paths.type[this.#paths.between(NodeType.GPU, gpu, NodeType.NET, net)] ?? PathType.DIS;
  }
}
