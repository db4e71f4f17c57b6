import { countOf, type System } from '../system.js';
import { NodeType, NODE_TYPES, PathType } from '../types.js';

/** Types of nodes that paths lead to, in the order in which NCCL looks for them. */
export const targetTypes = [
  NodeType.CPU,
  NodeType.DEV,
  NodeType.GPU,
  NodeType.NET,
  NodeType.GIN,
  NodeType.RMA,
  NodeType.NVS,
] as const;

/**
 * The best path from every node to every CPU, GPU, network device and NVSwitch.
 *
 * A path is a number, the index of its properties in arrays; its hops are a linked list:
 *
 *     path = paths.to(GPU, 3) + vertex       type[path]  bandwidthGBps[path]  hopCount[path]
 *     for (hop = firstHop[path]; hop >= 0; hop = nextHop[hop]) link = hopLink[hop]
 *
 * Lists share their ends: the path of a node is one link before the path of its neighbour at that moment. (NCCL copies the
 * neighbour's path, so later changes do not affect it; lists here never change either.)
 */
export class Paths {
  readonly system: System;
  /** One of {@link PathType}. Of a path with NET or DIS, nothing else means anything. */
  readonly type: Uint8Array;
  /** The smallest bandwidth of its links, GB/s. */
  readonly bandwidthGBps: Float32Array;
  readonly hopCount: Uint16Array;
  /** First element of the list of hops, or -1. */
  readonly firstHop: Int32Array;
  /** Link of each list element. */
  hopLink: Int32Array = new Int32Array(1024);
  /** Following list element, or -1. */
  nextHop: Int32Array = new Int32Array(1024);

  #hops = 0;
  readonly #tables = new Int32Array(NODE_TYPES).fill(-1);
  readonly #vertices: number;
  /** By type × vertex: true if a search to that type has visited it. */
  readonly #visited: Uint8Array;

  /** No paths yet: all of type DIS. Get computed ones from `findPaths`. */
  constructor(system: System) {
    this.system = system;
    this.#vertices = system.nodes.length;
    this.#visited = new Uint8Array(NODE_TYPES * this.#vertices);
    let size = 0;
    for (const type of targetTypes) {
      this.#tables[type] = size;
      size += countOf(system, type) * this.#vertices;
    }
    this.type = new Uint8Array(size).fill(PathType.DIS);
    this.bandwidthGBps = new Float32Array(size);
    this.hopCount = new Uint16Array(size);
    this.firstHop = new Int32Array(size).fill(-1);
  }

  /** Number of the path from vertex 0 to the `index`th node of `type`; add the vertex that the path starts from. */
  to(type: NodeType, index: number): number {
    return (this.#tables[type] ?? 0) + index * this.#vertices;
  }

  /** Number of the path between two nodes, both by type and index. */
  between(fromType: NodeType, fromIndex: number, toType: NodeType, toIndex: number): number {
    return this.to(toType, toIndex) + (this.system.first[fromType] ?? 0) + fromIndex;
  }

  /** False if no search to a node of that type has visited the vertex: NCCL then has no paths at all for it. */
  knows(vertex: number, type: NodeType): boolean {
    return this.#visited[type * this.#vertices + vertex] === 1;
  }

  /** Records that a search to that type has visited it. */
  visit(vertex: number, type: NodeType): void {
    this.#visited[type * this.#vertices + vertex] = 1;
  }

  /** A text that is the same for paths of equal types, bandwidths and numbers of hops. */
  fingerprint(): string {
    return [this.type, this.bandwidthGBps, this.hopCount, this.#visited].map((values) => values.join()).join(' ');
  }

  /** A new list: `link`, then `rest`. */
  prepend(link: number, rest: number): number {
    if (this.#hops === this.hopLink.length) {
      const links = new Int32Array(2 * this.#hops);
      links.set(this.hopLink);
      this.hopLink = links;
      const next = new Int32Array(2 * this.#hops);
      next.set(this.nextHop);
      this.nextHop = next;
    }
    this.hopLink[this.#hops] = link;
    this.nextHop[this.#hops] = rest;
    return this.#hops++;
  }

  /** A new list: the hops of `first`, then those of `second`. */
  join(first: number, second: number): number {
    let list = this.firstHop[second] ?? -1;
    const links = this.links(first);
    for (let index = links.length - 1; index >= 0; index--) list = this.prepend(links[index] ?? 0, list);
    return list;
  }

  /** Links along a path, in order. */
  links(path: number): number[] {
    const links: number[] = [];
    const count = this.hopCount[path] ?? 0;
    for (let hop = this.firstHop[path] ?? -1; hop >= 0 && links.length < count; hop = this.nextHop[hop] ?? -1) {
      links.push(this.hopLink[hop] ?? 0);
    }
    return links;
  }
}
