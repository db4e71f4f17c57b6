import type { LocalSystem } from '../topology/local-systems.js';
import { Locality } from '../topology/paths/locality.js';
import { type NetNode, nodeName } from '../topology/system.js';
import { PathType } from '../topology/types.js';
import { rulesOf } from '../versions/rules.js';
import { CrossNic, Pattern } from './graph.js';
import type { Routes } from './routes.js';
import type { SearchParameters, SearchRules } from './search-input.js';

/** Reason why a channel cannot leave the host by a NIC. */
export type ExitRefusal = 'plane' | 'other NIC' | 'pair' | 'rail';

/**
 * The NICs of a host in the search: their order, the GPUs beside them, the pairs that one channel may use, and the residual
 * bandwidth of their ports. NICs are NETs by index.
 */
export class Nics {
  /** Bandwidth left by NET, GB/s. NETs of one port of one card share it. */
  readonly left: Float32Array;
  /** The GPU that uses each NET first, or -1. */
  readonly localGpu: Int32Array;
  /** The first NET with the same id, which NCCL uses for both. */
  readonly namesake: Int32Array;
  readonly #local: LocalSystem;
  readonly #routes: Routes;
  readonly #parameters: SearchParameters;
  readonly #rules: SearchRules;
  readonly #locality: Locality;
  /** A number for each port of each card, by NET. */
  readonly #port: Int32Array;
  /** By NET, all NETs of its port. */
  readonly #onPort: readonly (readonly number[])[];
  /** Relations of two NETs, by one and the other: a set of {@link Relation}s. */
  readonly #relations: Uint8Array;
  /** {@link orderFor} by GPU + 1 and type + 1. */
  readonly #orders: (Int32Array | undefined)[];
  /** {@link gpusBeside} by NET. */
  readonly #beside: (Int32Array | undefined)[] = [];

  constructor(local: LocalSystem, routes: Routes, parameters: SearchParameters) {
    const { nets } = local.system;
    this.#local = local;
    this.#orders = new Array<undefined>((local.system.gpus.length + 1) * (PathType.DIS + 2)).fill(undefined);
    this.#routes = routes;
    this.#parameters = parameters;
    this.#rules = rulesOf(parameters);
    this.#locality = new Locality(local.system, local.paths, parameters);
    this.left = Float32Array.from(nets, (net) => net.bandwidthGBps);
    this.localGpu = local.gpuOfNet;
    this.namesake = firstAlike(nets, nodeName);
    this.#port = firstAlike(nets, (net) => `${net.asic} ${net.port}`);
    this.#onPort = nets.map(({ index }) =>
      nets.map((net) => net.index).filter((other) => this.#port[other] === this.#port[index]),
    );
    this.#relations = Uint8Array.from(nets.flatMap((net) => nets.map((other) => this.#relate(net, other))));
  }

  /** True if the port has that bandwidth left. */
  hasLeft(net: number, gbps: number): boolean {
    return (this.left[net] ?? 0) >= gbps;
  }

  /** Takes bandwidth from the port of a NET; a negative value releases it. */
  borrow(net: number, gbps: number): void {
    const mates = this.#onPort[net] ?? [];
    for (let index = 0; index < mates.length; index++) {
      const mate = mates[index] ?? 0;
      this.left[mate] = (this.left[mate] ?? 0) - gbps;
    }
  }

  /**
   * NETs in the order in which they are tried: first those that the GPU uses, or that any GPU uses when `gpu` is -1; then others
   * at most `farthest` away, the nearest first.
   *
   * @throws InputError when a GPU reaches no NET.
   */
  orderFor(gpu: number, farthest: PathType | -1): Int32Array {
    const key = (gpu + 1) * (PathType.DIS + 2) + farthest + 1;
    return (this.#orders[key] ??= this.#computeOrder(gpu, farthest));
  }

  /** GPUs at which a channel that enters there may start: the one that uses the NET, then all that are nearest. */
  gpusBeside(net: number): Int32Array {
    return (this.#beside[net] ??= this.#computeBeside(net));
  }

  /**
   * True for a NET that no GPU reaches although paths to it carry a bandwidth. NCCL does not release the bandwidth of its port
   * after trying it.
   */
  keepsBorrowed(net: number): boolean {
    const { firstGpus } = this.#rules;
    if (firstGpus === 'rotating' || firstGpus === 'unused first') return false;
    const nearest = this.#locality.gpusOfNet(net)[0];
    if (nearest === undefined) return false;
    const route = this.#routes.between(this.#routes.gpuCount + net, nearest);
    return this.#routes.type[route] === PathType.DIS && (this.#routes.gbps[route] ?? 0) > 0;
  }

  /**
   * Reason why a channel that enters by `entry` cannot leave by `exit`, or undefined when it can. `partnerEntry` is the entry of
   * the channel before if this is the second of a pair, otherwise -1; `firstExit` is the exit of this channel's first GPU if its
   * second is about to leave, otherwise -1.
   */
  refusesExit(
    exit: number,
    entry: number,
    pattern: Pattern,
    crossNic: CrossNic,
    partnerEntry: number,
    firstExit: number,
  ): ExitRefusal | undefined {
    const relation = this.#relations[exit * this.left.length + entry] ?? 0;
    if (relation & Relation.OTHER_PLANE) return 'plane';
    if (pattern === Pattern.TREE && !this.#same(exit, entry)) return 'other NIC';
    if (this.inPairs(pattern, crossNic)) {
      if (partnerEntry >= 0 && !this.#same(exit, partnerEntry)) return 'pair';
    } else if (crossNic === CrossNic.NEVER && (relation & Relation.ONE_RAIL) === 0) {
      return 'rail';
    }
    return firstExit >= 0 && !this.#same(exit, firstExit) ? 'other NIC' : undefined;
  }

  /** True if channels form pairs of which the second enters where the first leaves, and leaves where it enters. */
  inPairs(pattern: Pattern, crossNic: CrossNic): boolean {
    switch (this.#rules.pairedPatterns) {
      case 'none':
        return false;
      case 'all':
        return crossNic !== CrossNic.NEVER;
      case 'rings':
        return pattern === Pattern.RING && crossNic === CrossNic.PAIRED;
    }
  }

  #same(net: number, other: number): boolean {
    return this.namesake[net] === this.namesake[other];
  }

  #relate(net: NetNode, other: NetNode): number {
    const otherPlane = net.plane !== -1 && other.plane !== -1 && net.plane !== other.plane;
    return (otherPlane ? Relation.OTHER_PLANE : 0) | (this.#onOneRail(net, other) ? Relation.ONE_RAIL : 0);
  }

  #onOneRail(net: NetNode, other: NetNode): boolean {
    if (net.rail !== -1 && other.rail !== -1) return net.rail === other.rail;
    if (this.#parameters.mnnvlRailPerHost !== 0 && net.systemId !== other.systemId) {
      return net.pciId === other.pciId && net.port === other.port;
    }
    return this.#port[net.index] === this.#port[other.index];
  }

  #computeOrder(gpu: number, farthest: PathType | -1): Int32Array {
    const { gpus, nets, hostHashes } = this.#local.system;
    const asking = gpu === -1 ? gpus.map(({ index }) => index) : [gpu];
    const rackWide = hostHashes.length > 1 && this.#parameters.mnnvlScatterNets !== 0;
    const order = new Set(rackWide ? this.#firstOfEachGpu(asking) : asking.flatMap((each) => this.#usedBy(each)));

    const policy = this.#parameters.netDevicesPolicy;
    const most = policy.kind === 'max' && this.#rules.mostNicsOfPolicy ? policy.count * (gpu === -1 ? gpus.length : 1) : Infinity;
    if (order.size >= most) return Int32Array.from(order);
    for (let type = 0; type <= farthest; type++) {
      for (const each of asking) {
        // NCCL checks only the first NETs, as many as it has channels.
        for (let net = 0; net < Math.min(nets.length, this.#rules.mostChannels); net++) {
          if (this.#routes.type[this.#routes.between(each, this.#routes.gpuCount + net)] !== type) continue;
          order.add(net);
          if (order.size >= most) return Int32Array.from(order);
        }
      }
    }
    return Int32Array.from(order);
  }

  /** The NETs that a GPU uses, channel by channel, up to where they repeat. */
  #usedBy(gpu: number): number[] {
    const used: number[] = [];
    for (let channel = 0; channel < this.#rules.mostChannels; channel++) {
      const net = this.#locality.netOfGpu(gpu, channel);
      if (net === used[0]) break;
      used.push(net);
    }
    return used;
  }

  /** The NETs that GPUs use on channel 0, then those on channel 1 …: spreads the channels over the hosts of a rack. */
  #firstOfEachGpu(gpus: readonly number[]): number[] {
    const used = gpus.map((gpu) => this.#usedBy(gpu));
    const longest = Math.max(...used.map(({ length }) => length));
    const order: number[] = [];
    for (let channel = 0; channel < longest; channel++) {
      for (const nets of used) {
        const net = nets[channel];
        if (net !== undefined) order.push(net);
      }
    }
    return order;
  }

  /** Bandwidth of the best path from a NET to a GPU, GB/s. */
  bestGBps(net: number): number {
    let best = 0;
    for (let gpu = 0; gpu < this.#routes.gpuCount; gpu++) {
      best = Math.max(best, this.#routes.gbps[this.#routes.between(this.#routes.gpuCount + net, gpu)] ?? 0);
    }
    return best;
  }

  /** GPUs with the most bandwidth to a NET and, among these, the fewest hops. */
  #fewestHops(net: number): Int32Array {
    const best = this.bestGBps(net);
    const hops = (gpu: number) => this.#routes.hopCount[this.#routes.between(this.#routes.gpuCount + net, gpu)] ?? 0;
    const all = this.#local.system.gpus
      .map(({ index }) => index)
      .filter((gpu) => this.#routes.gbps[this.#routes.between(this.#routes.gpuCount + net, gpu)] === best);
    const fewest = Math.min(...all.map(hops));
    return Int32Array.from(all.filter((gpu) => hops(gpu) === fewest));
  }

  #computeBeside(net: number): Int32Array {
    const { firstGpus } = this.#rules;
    if (firstGpus === 'rotating' || firstGpus === 'unused first') return this.#fewestHops(net);
    const first = firstGpus === 'own first' ? (this.localGpu[net] ?? -1) : -1;
    const nearest = this.#locality.gpusOfNet(net).filter((gpu) => gpu !== first);
    return Int32Array.from(first === -1 ? nearest : [first, ...nearest]);
  }
}

const Relation = { ONE_RAIL: 1, OTHER_PLANE: 2 } as const;

/** For each node the first that has the same `key`. */
function firstAlike(nets: readonly NetNode[], key: (net: NetNode) => string): Int32Array {
  const first = new Map<string, number>();
  return Int32Array.from(nets, (net) => {
    const found = first.get(key(net)) ?? net.index;
    first.set(key(net), found);
    return found;
  });
}
