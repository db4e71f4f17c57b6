import { InputError } from '../../../errors.js';
import type { Parameters } from '../../parameters.js';
import { countOf, gpuOfRank, nodeName, type System } from '../system.js';
import { NodeType, PathType, pxnFirst } from '../types.js';
import { type RuleName, type Rules, rulesOf } from '../../versions/rules.js';
import type { Paths } from './paths.js';

/** Compute capability × 10 of the first GPUs of Blackwell. */
const BLACKWELL = 100;

/** The rules that say which nodes are nearest. */
export const localityRules = [
  'pathOrder',
  'cpuByBandwidth',
  'firstNicModuloGpus',
  'gpuOfNicIsNear',
  'mostChannels',
] as const satisfies readonly RuleName[];

/**
 * Nearest nodes: the CPU of a GPU, the NICs that a GPU uses and the GPU that uses a NIC.
 *
 * Lists of nearest nodes are cached until {@link forget} is called for a changed path, because they are requested often while
 * paths through other GPUs are chosen.
 */
export class Locality {
  readonly #system: System;
  readonly #paths: Paths;
  readonly #policy: Parameters['netDevicesPolicy'];
  readonly #scatters: boolean;
  readonly #rules: Pick<Rules, (typeof localityRules)[number]>;
  readonly #pxnFirst: boolean;
  readonly #cpuOfGpu: Int32Array;
  readonly #netsOfGpu: (readonly number[] | undefined)[];
  readonly #gpusOfNet: (readonly number[] | undefined)[];
  /** For each NET the first with the same id, which NCCL uses for both. */
  readonly #namesakeOfNet: Int32Array;
  readonly #gpuOfRank: Int32Array;

  constructor(
    system: System,
    paths: Paths,
    parameters: Pick<Parameters, 'netDevicesPolicy' | 'scatterStartNet' | 'ncclVersion'>,
  ) {
    this.#system = system;
    this.#paths = paths;
    this.#policy = parameters.netDevicesPolicy;
    this.#scatters = parameters.scatterStartNet !== 0;
    this.#rules = rulesOf(parameters);
    this.#pxnFirst = this.#rules.pathOrder === 'pxn before p2c';
    this.#cpuOfGpu = new Int32Array(system.gpus.length).fill(-1);
    this.#netsOfGpu = new Array<undefined>(system.gpus.length).fill(undefined);
    this.#gpusOfNet = new Array<undefined>(system.nets.length).fill(undefined);
    const names = system.nets.map(nodeName);
    const firstOfName = new Map<string, number>();
    names.forEach((name, net) => firstOfName.has(name) || firstOfName.set(name, net));
    this.#namesakeOfNet = Int32Array.from(names, (name) => firstOfName.get(name) ?? 0);
    this.#gpuOfRank = Int32Array.from(system.gpus, (gpu) => gpuOfRank(system, gpu.rank));
  }

  /** Drops lists that depend on paths between a GPU and the NETs. */
  forget(gpu: number, net: number): void {
    this.#netsOfGpu[gpu] = undefined;
    this.#gpusOfNet[net] = undefined;
  }

  /** Drops those of all GPUs and NETs. */
  forgetAll(): void {
    this.#netsOfGpu.fill(undefined);
    this.#gpusOfNet.fill(undefined);
  }

  /**
   * The nodes of `type` with the most bandwidth and, among these, the best type of path from a node. Without a path to any, all
   * of them, which are equally far; none where NCCL has no paths for the node.
   */
  nearest(vertex: number, type: NodeType): number[] {
    const { type: pathType, bandwidthGBps } = this.#paths;
    if (!this.#paths.knows(vertex, type)) return [];
    let bestType: number = PathType.DIS;
    let bestGBps = 0;
    let found: number[] = [];
    const count = countOf(this.#system, type);
    for (let index = 0; index < count; index++) {
      const path = this.#paths.to(type, index) + vertex;
      const gbps = bandwidthGBps[path] ?? 0;
      const kind = this.#pxnFirst ? pxnFirst(pathType[path] ?? 0) : (pathType[path] ?? 0);
      if (gbps > bestGBps || (gbps === bestGBps && kind < bestType)) {
        bestGBps = gbps;
        bestType = kind;
        found = [];
      }
      if (gbps === bestGBps && kind === bestType) found.push(index);
    }
    return found;
  }

  /**
   * The nearest CPU of a GPU: of several equally near ones, or of all, the one with the fewest hops between.
   *
   * @throws InputError when there is none.
   */
  cpuOfGpu(gpu: number): number {
    let best = this.#cpuOfGpu[gpu] ?? -1;
    if (best >= 0) return best;
    const vertex = this.#vertexOfGpu(gpu);
    const hops = (cpu: number) => this.#paths.hopCount[this.#paths.to(NodeType.CPU, cpu) + vertex] ?? 0;
    const nearest = this.#rules.cpuByBandwidth
      ? this.nearest(vertex, NodeType.CPU)
      : this.#system.cpus.map(({ index }) => index).filter((cpu) => hops(cpu) > 0);
    best = nearest[0] ?? -1;
    for (const cpu of nearest) {
      if (hops(cpu) < hops(best)) best = cpu;
    }
    if (best < 0) throw this.#nothingNear(gpu, 'CPU');
    this.#cpuOfGpu[gpu] = best;
    return best;
  }

  /** NETs nearest to a GPU. */
  netsOfGpu(gpu: number): readonly number[] {
    return (this.#netsOfGpu[gpu] ??= this.nearest(this.#vertexOfGpu(gpu), NodeType.NET));
  }

  /** GPUs nearest to a NET. */
  gpusOfNet(net: number): readonly number[] {
    return (this.#gpusOfNet[net] ??= this.nearest((this.#system.first[NodeType.NET] ?? 0) + net, NodeType.GPU));
  }

  /**
   * The NET that a GPU uses on a channel. GPUs that share several NETs begin at different ones; if their number is a power of
   * two, the bits of the GPU's number are reversed, so that neighbours get distant NETs.
   *
   * @throws InputError when no NET can be reached.
   */
  netOfGpu(gpu: number, channel: number): number {
    const nets = this.netsOfGpu(gpu);
    const firstNet = nets[0];
    if (firstNet === undefined) throw this.#nothingNear(gpu, 'network device');
    const gpus = this.gpusOfNet(firstNet).length;
    if (gpus === 0) throw this.#nothingNear(gpu, 'network device that reaches it');

    const dev = this.#system.gpus[gpu]?.dev ?? 0;
    let position = this.#startsModulo(gpu, nets) ? dev % gpus : dev;
    if ((nets.length & (nets.length - 1)) === 0) position = mirrorBits(position, nets.length);
    position += channel % this.#netsPerGpu(nets.length, gpus);
    return this.#namesakeOfNet[nets[position % nets.length] ?? 0] ?? 0;
  }

  /** The GPU that uses a NET on the lowest channel; -1 without one. */
  gpuOfNet(net: number): number {
    const wanted = this.#namesakeOfNet[net] ?? net;
    const gpus = this.#rules.gpuOfNicIsNear ? this.gpusOfNet(wanted) : this.#system.gpus.map(({ index }) => index);
    for (let channel = 0; channel < this.#rules.mostChannels; channel++) {
      for (const gpu of gpus) {
        if (this.netOfGpu(this.#gpuOfRank[gpu] ?? gpu, channel) === wanted) return gpu;
      }
    }
    return -1;
  }

  /** True if GPUs that share NICs start with different ones by their number among these GPUs. */
  #startsModulo(gpu: number, nets: readonly number[]): boolean {
    switch (this.#rules.firstNicModuloGpus) {
      case 'never':
        return false;
      case 'always':
        return true;
      case 'connectx-8': {
        const { gpus, nets: all } = this.#system;
        return this.#scatters || ((gpus[gpu]?.sm ?? 0) >= BLACKWELL && nets.some((net) => all[net]?.isConnectX8 === true));
      }
    }
  }

  #netsPerGpu(nets: number, gpus: number): number {
    switch (this.#policy.kind) {
      case 'auto':
        return Math.ceil(nets / gpus);
      case 'all':
        return nets;
      case 'max':
        return Math.min(this.#policy.count, nets);
    }
  }

  #vertexOfGpu(gpu: number): number {
    return (this.#system.first[NodeType.GPU] ?? 0) + gpu;
  }

  #nothingNear(gpu: number, what: string): InputError {
    const node = this.#system.gpus[gpu];
    const name = node === undefined ? `GPU ${gpu}` : `${nodeName(node)} (rank ${node.rank})`;
    return new InputError('NO_PATH', `${name} reaches no ${what}`, { ncclResult: 3 });
  }
}

/** `value` with its bits below `powerOfTwo` in reverse order. */
function mirrorBits(value: number, powerOfTwo: number): number {
  let mirrored = 0;
  for (let bit = 1, mirror = powerOfTwo >> 1; bit < powerOfTwo; bit <<= 1, mirror >>= 1) {
    if (value & bit) mirrored |= mirror;
  }
  return mirrored;
}
