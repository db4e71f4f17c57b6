import { InputError } from '../../errors.js';
import { anyReverse } from '../topology/assemble.js';
import type { LocalSystem } from '../topology/local-systems.js';
import { nodeName } from '../topology/system.js';
import { defaultRules } from '../versions/rules.js';
import type { SearchRules } from './search-input.js';
import { type Routes, HopLoad } from './routes.js';

/** A link that cannot carry a channel; both figures in GB/s. */
interface Shortage {
  readonly link: number;
  readonly needed: number;
  readonly left: number;
}

/**
 * Residual bandwidth of every link while channels are searched: taking a path subtracts the channel's bandwidth from each of its
 * links, releasing it adds it again.
 *
 * After each step the rest is rounded to a thousandth of a GB/s, as NCCL does. A link that was used once keeps its rounded
 * bandwidth, so one object serves all graphs of a host.
 */
export class ResidualBandwidth {
  /** Bandwidth left by link, GB/s. */
  readonly left: Float32Array;
  readonly #firstHop: Int32Array;
  readonly #link: Int32Array;
  readonly #hopLoad: Uint8Array;
  readonly #reverse: Int32Array;

  /** @throws InputError where a path takes bandwidth of a link back that does not exist. */
  constructor({ system }: LocalSystem, routes: Routes, { linksBackByType }: SearchRules = defaultRules) {
    this.left = system.links.bandwidthGBps.slice();
    this.#firstHop = routes.firstHop;
    this.#link = routes.link;
    this.#hopLoad = routes.hopLoad;
    this.#reverse = linksBackByType ? system.links.reverse : anyReverse(system.links);
    const oneWay = routes.link.find(
      (link, hop) => (routes.hopLoad[hop] ?? 0) > HopLoad.SMALL_PACKETS && (this.#reverse[link] ?? -1) < 0,
    );
    if (oneWay !== undefined) {
      const [from, to] = [system.links.from[oneWay], system.links.to[oneWay]].map((vertex) => system.nodes[vertex ?? 0]);
      throw new InputError(
        'CONTENT',
        `the link from ${from ? nodeName(from) : '?'} to ${to ? nodeName(to) : '?'} has none back of the same kind, which NCCL needs: it fails with an internal error`,
        { ncclResult: 3 },
      );
    }
  }

  /** Takes `gbps` on all links of a route, or nothing; the answer is -1, or the position of the hop that has too little. */
  take(route: number, gbps: number): number {
    const first = this.#firstHop[route] ?? 0;
    const end = this.#firstHop[route + 1] ?? 0;
    const reached = this.#subtract(first, end, gbps);
    if (reached === end) return -1;
    this.#subtract(first, reached, -gbps);
    return reached;
  }

  release(route: number, gbps: number): void {
    this.#subtract(this.#firstHop[route] ?? 0, this.#firstHop[route + 1] ?? 0, -gbps);
  }

  /** The link of a hop that has too little left for a channel of that bandwidth: the link itself, or the one back. */
  shortage(hop: number, gbps: number): Shortage {
    const link = this.#link[hop] ?? 0;
    const hopLoad = this.#hopLoad[hop] ?? 0;
    const needed = hopLoad & HopLoad.SMALL_PACKETS ? smallPackets(gbps) : gbps;
    const left = this.left[link] ?? 0;
    if (left < needed || hopLoad <= HopLoad.SMALL_PACKETS) return { link, needed, left };
    const reverse = this.#reverse[link] ?? 0;
    return { link: reverse, needed: neededBack(hopLoad, needed), left: this.left[reverse] ?? 0 };
  }

  /**
   * Subtracts `gbps` from each hop up to `end`, or to the first that has too little, and returns where it stopped; a negative
   * `gbps` is added and never stops. The search spends its time here, so it is plain arithmetic on arrays.
   */
  #subtract(first: number, end: number, gbps: number): number {
    const links = this.#link;
    const hopLoads = this.#hopLoad;
    const left = this.left;
    for (let hop = first; hop < end; hop++) {
      const link = links[hop] ?? 0;
      const before = left[link] ?? 0;
      const hopLoad = hopLoads[hop] ?? 0;
      if (hopLoad === 0) {
        if (before < gbps) return hop;
        left[link] = rounded(before - gbps);
      } else if (!this.#subtractWithExtra(link, hopLoad, before, gbps)) {
        return hop;
      }
    }
    return end;
  }

  #subtractWithExtra(link: number, hopLoad: number, before: number, gbps: number): boolean {
    const needed = hopLoad & HopLoad.SMALL_PACKETS ? smallPackets(gbps) : gbps;
    if (before < needed) return false;
    if (hopLoad > HopLoad.SMALL_PACKETS) {
      const back = neededBack(hopLoad, needed);
      const reverse = this.#reverse[link] ?? 0;
      const beforeBack = this.left[reverse] ?? 0;
      if (beforeBack < back) return false;
      this.left[reverse] = rounded(beforeBack - back);
    }
    this.left[link] = rounded(before - needed);
    return true;
  }
}

/** Bandwidth that such a hop takes from the link back. */
function neededBack(hopLoad: number, needed: number): number {
  const eighth = hopLoad & HopLoad.EIGHTH_BACK ? Math.fround(needed / 8) : 0;
  return hopLoad & HopLoad.ALL_BACK ? Math.fround(eighth + needed) : eighth;
}

function smallPackets(gbps: number): number {
  return Math.fround(Math.fround(gbps * 6) / 5);
}

/**
 * C's `roundf(x * 1000) / 1000` on floats; the caller's array rounds the last product. Differences here are never
 * negative. For whole numbers of this size `* 0.001` rounds to the same float as `/ 1000`, and is faster.
 */
export function rounded(gbps: number): number {
  return Math.floor(Math.fround(Math.fround(gbps) * 1000) + 0.5) * 0.001;
}
