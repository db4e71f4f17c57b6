import type { LocalSystem } from '../topology/local-systems.js';
import { LinkType } from '../topology/types.js';
import { Pattern } from './graph.js';
import type { SearchRules } from './search-input.js';
import type { ResidualBandwidth } from './residual-bandwidth.js';
import type { Routes } from './routes.js';

/** Distance of a channel's next GPU from the GPU where it leaves the host. */
export const ExitDistance = {
  /** It does not leave the host. */
  INSIDE: 0,
  /** The next GPU leaves: those near the NIC first. */
  OUT_NEXT: 1,
  /** A later GPU leaves: those near the NIC first, but last where all GPUs are equally near to each other. */
  OUT_LATER: 2,
} as const;
export type ExitDistance = (typeof ExitDistance)[keyof typeof ExitDistance];

/**
 * Order in which a channel tries the GPUs that may come next: the sooner a good channel is found, the better the answer when the
 * steps run out. GPUs are compared by, in this order:
 *
 *  1. bandwidth from the NIC by which the channel entered
 *  2. the residual bandwidth of their PCI link
 *  3. hops from that NIC
 *  4. bandwidth from the GPU where the channel is
 *  5. hops from it
 *  6. number, counted on from that GPU
 *
 * Without a NIC only the last three count. Bandwidths count in whole GB/s. All but the second never change, so GPUs are sorted by
 * them once.
 */
export class GpuOrder {
  readonly #routes: Routes;
  readonly #residual: ResidualBandwidth;
  readonly #hasSwitch: boolean;
  /** With NVSwitches: true if a GPU talks to its neighbours only, not to others when these are taken. */
  readonly #neighboursOnly: boolean;
  readonly #neighboursFirst: boolean;
  /** PCI link of each GPU's hardware, and the one back; -1 where there is none. */
  readonly #pciUp: Int32Array;
  readonly #pciDown: Int32Array;
  /** Sorted GPUs by the GPU to go on from, and NIC + 1. */
  readonly #sorted: (Int32Array | undefined)[][];
  readonly #pciGbps: Int32Array;

  constructor({ system }: LocalSystem, routes: Routes, residual: ResidualBandwidth, { switchNeighbours }: SearchRules) {
    this.#routes = routes;
    this.#residual = residual;
    this.#hasSwitch = system.nvSwitches.length > 0;
    this.#neighboursOnly = switchNeighbours === 'only';
    this.#neighboursFirst = switchNeighbours === 'first';
    this.#sorted = system.gpus.map(() => []);
    this.#pciGbps = new Int32Array(routes.gpuCount);
    this.#pciUp = new Int32Array(routes.gpuCount).fill(-1);
    this.#pciDown = new Int32Array(routes.gpuCount).fill(-1);
    const { start, to, type } = system.links;
    for (const gpu of system.gpus) {
      const dev = system.hardware[gpu.parent]?.vertex ?? gpu.vertex;
      for (let up = start[dev] ?? 0; up < (start[dev + 1] ?? 0) && this.#pciDown[gpu.index] === -1; up++) {
        if (type[up] !== LinkType.PCI) continue;
        const above = to[up] ?? 0;
        for (let down = start[above] ?? 0; down < (start[above + 1] ?? 0); down++) {
          if (to[down] !== dev) continue;
          this.#pciUp[gpu.index] = up;
          this.#pciDown[gpu.index] = down;
          break;
        }
      }
    }
  }

  /**
   * Writes the GPUs to try after `gpu` into `result` at `position`, best first, and returns the end. `used` has 1 at `usedStart`
   * + GPU for those that the channel has visited; `entry` is the NIC by which it entered, if any.
   */
  write(
    gpu: number,
    pattern: Pattern,
    exitDistance: ExitDistance,
    entry: number,
    used: Uint8Array,
    usedStart: number,
    result: Int32Array,
    position: number,
  ): number {
    if (this.#hasSwitch && this.#neighboursOnly) return this.#neighbours(gpu, pattern, used, usedStart, result, position);
    const inView = exitDistance !== ExitDistance.INSIDE;
    const sorted = (this.#sorted[gpu] ?? [])[inView ? entry + 1 : 0] ?? this.#sort(gpu, inView ? entry : -1);
    let end = position;
    for (let index = 0; index < sorted.length; index++) {
      const next = sorted[index] ?? 0;
      if (used[usedStart + next] === 0) result[end++] = next;
    }
    if (inView) this.#sortByPci(entry, result, position, end);
    if (exitDistance === ExitDistance.OUT_LATER && this.#allAlike(gpu, result, position, end))
      result.subarray(position, end).reverse();
    if (this.#hasSwitch && this.#neighboursFirst) this.#moveNeighbours(gpu, pattern, used, usedStart, result, position, end);
    return end;
  }

  /**
   * With NVSwitches a GPU talks to two others at most, its neighbours by number; that keeps the search short. Rings
   * prefer the one before, trees the one after; other patterns take only the one after.
   */
  #neighbours(gpu: number, pattern: Pattern, used: Uint8Array, usedStart: number, result: Int32Array, position: number): number {
    const { gpuCount } = this.#routes;
    const before = (gpu + gpuCount - 1) % gpuCount;
    const after = (gpu + 1) % gpuCount;
    const isFree = (next: number) => used[usedStart + next] === 0 && this.#hops(gpu, next) > 0;
    let end = position;
    if (pattern === Pattern.RING) {
      if (before !== after && isFree(before)) result[end++] = before;
      if (isFree(after)) result[end++] = after;
    } else {
      if (isFree(after)) result[end++] = after;
      const goesBack = pattern === Pattern.BALANCED_TREE || pattern === Pattern.SPLIT_TREE;
      if (goesBack && before !== after && isFree(before)) result[end++] = before;
    }
    return end;
  }

  /** Moves the neighbours before the others. */
  #moveNeighbours(
    gpu: number,
    pattern: Pattern,
    used: Uint8Array,
    usedStart: number,
    result: Int32Array,
    position: number,
    end: number,
  ): void {
    const first = new Int32Array(2);
    for (let count = this.#neighbours(gpu, pattern, used, usedStart, first, 0); count > 0; count--) {
      const neighbour = first[count - 1] ?? 0;
      const place = result.subarray(position, end).indexOf(neighbour);
      if (place < 0) continue;
      result.copyWithin(position + 1, position, position + place);
      result[position] = neighbour;
    }
  }

  /** GPUs that have a path from `gpu`, sorted by all but their PCI links. */
  #sort(gpu: number, entry: number): Int32Array {
    const { gpuCount } = this.#routes;
    const routeIn = (next: number) => this.#routes.between(gpuCount + entry, next);
    const routeOn = (next: number) => this.#routes.between(gpu, next);
    const wholeGbps = (route: number) => Math.trunc(this.#routes.gbps[route] ?? 0);
    const hops = (route: number) => this.#routes.hopCount[route] ?? 0;
    const inOrder = Array.from({ length: gpuCount - 1 }, (_, index) => (gpu + 1 + index) % gpuCount);
    const sorted = Int32Array.from(
      inOrder
        .filter((next) => this.#hops(gpu, next) > 0)
        .sort((a, b) => {
          const byEntry = entry === -1 ? 0 : wholeGbps(routeIn(b)) - wholeGbps(routeIn(a)) || hops(routeIn(a)) - hops(routeIn(b));
          return byEntry || wholeGbps(routeOn(b)) - wholeGbps(routeOn(a)) || hops(routeOn(a)) - hops(routeOn(b));
        }),
    );
    (this.#sorted[gpu] ?? [])[entry + 1] = sorted;
    return sorted;
  }

  /** Moves GPUs with more left on their PCI link before others that are equally near to the NIC. */
  #sortByPci(entry: number, result: Int32Array, start: number, end: number): void {
    const pciGbps = this.#pciGbps;
    const nearness = (next: number) =>
      Math.trunc(this.#routes.gbps[this.#routes.between(this.#routes.gpuCount + entry, next)] ?? 0);
    for (let index = start; index < end; index++) {
      const next = result[index] ?? 0;
      const gbps = this.pciGbpsLeft(next);
      pciGbps[next] = gbps;
      let place = index;
      for (; place > start; place--) {
        const other = result[place - 1] ?? 0;
        if ((pciGbps[other] ?? 0) >= gbps || nearness(other) !== nearness(next)) break;
        result[place] = other;
      }
      result[place] = next;
    }
  }

  /** Bandwidth left on the PCI link of a GPU, in whole GB/s; -1 without a link. */
  pciGbpsLeft(gpu: number): number {
    const { left } = this.#residual;
    const down = this.#pciDown[gpu] ?? -1;
    return down < 0 ? -1 : Math.trunc(Math.min(left[this.#pciUp[gpu] ?? 0] ?? 0, left[down] ?? 0));
  }

  /** True if all these GPUs are equally near to `gpu`. */
  #allAlike(gpu: number, result: Int32Array, start: number, end: number): boolean {
    const first = this.#routes.between(gpu, result[start] ?? 0);
    const gbps = Math.trunc(this.#routes.gbps[first] ?? 0);
    for (let index = start + 1; index < end; index++) {
      const route = this.#routes.between(gpu, result[index] ?? 0);
      if (Math.trunc(this.#routes.gbps[route] ?? 0) !== gbps || this.#routes.hopCount[route] !== this.#routes.hopCount[first])
        return false;
    }
    return true;
  }

  #hops(from: number, to: number): number {
    return this.#routes.hopCount[this.#routes.between(from, to)] ?? 0;
  }
}
