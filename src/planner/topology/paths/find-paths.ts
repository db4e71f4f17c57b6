import { InputError } from '../../../errors.js';
import { LOCAL_GBPS } from '../bandwidths.js';
import { countOf, hardwareType, nodeName, type System } from '../system.js';
import type { Parameters } from '../../parameters.js';
import { rulesOf } from '../../versions/rules.js';
import { LinkType, NodeType, PathType } from '../types.js';
import { anyReverse } from '../assemble.js';
import { Paths, targetTypes } from './paths.js';

/**
 * Finds the best paths by one breadth-first search from each target. A node takes its neighbour's path, extended by the link, if
 * its type is better, then its bandwidth, then its hops; improved nodes update their neighbours in the next wave. Waves follow
 * the order of improvements, links their stored order, so that ties are decided as in NCCL.
 *
 * @throws InputError when a node can be reached but has no link back.
 */
export function findPaths(system: System, parameters: Parameters): Paths {
  const paths = new Paths(system);
  const search = new Search(system, parameters);
  for (const type of targetTypes) {
    const firstOfId = new Map<string, number>();
    for (let index = 0; index < countOf(system, type); index++) {
      const node = system.nodes[(system.first[type] ?? 0) + index];
      if (node === undefined) continue;
      // NCCL looks up the target by id: where two have the same, all paths are recorded as paths to the first.
      const name = nodeName(node);
      const named = firstOfId.get(name) ?? index;
      firstOfId.set(name, named);
      search.run(paths, node.vertex, type, named);
    }
  }
  return paths;
}

/** One search after the other over the same system. */
class Search {
  readonly #system: System;
  readonly #nvbDisable: boolean;
  readonly #byType: boolean;
  /** The link back by link. */
  readonly #reverse: Int32Array;
  readonly #hardwareType: NodeType;
  readonly #nodeType: Uint8Array;
  /** Vertex of the hardware of each GPU vertex. */
  readonly #parent: Int32Array;
  #wave: Int32Array;
  #nextWave: Int32Array;
  /** The last wave that a vertex was put into. */
  readonly #inWave: Int32Array;
  #waves = 0;

  constructor(system: System, parameters: Parameters) {
    this.#system = system;
    this.#nvbDisable = parameters.nvbDisable !== 0;
    const rules = rulesOf(parameters);
    this.#byType = rules.pathsByType;
    this.#reverse = rules.linksBackByType ? system.links.reverse : anyReverse(system.links);
    this.#hardwareType = hardwareType(system);
    this.#nodeType = Uint8Array.from(system.nodes, (node) => node.type);
    this.#parent = Int32Array.from(system.nodes, (node) =>
      node.type === NodeType.GPU ? (system.hardware[node.parent]?.vertex ?? -1) : -1,
    );
    this.#wave = new Int32Array(system.nodes.length);
    this.#nextWave = new Int32Array(system.nodes.length);
    this.#inWave = new Int32Array(system.nodes.length);
  }

  /**
   * Finds the paths from all nodes to `target`, recorded as paths to the `index`th node of `type`. Plain loops over typed arrays,
   * because on a large NVLink domain they run some ten million times.
   */
  run(paths: Paths, target: number, type: NodeType, index: number): void {
    const { start, to, type: linkType, bandwidthGBps: linkGBps } = this.#system.links;
    const reverse = this.#reverse;
    const { type: pathType, bandwidthGBps, hopCount, firstHop } = paths;
    const nodeType = this.#nodeType;
    const hardware = this.#hardwareType;
    const byType = this.#byType;
    const column = paths.to(type, index);
    // A path may go through hardware of a GPU only at its ends, or once in between over NVLink (NVB).
    const toGpu = type === NodeType.GPU;
    const targetDev = toGpu ? this.#parent[target] : target;
    const hopsToNvb = toGpu && hardware === NodeType.DEV ? 2 : 1;

    paths.visit(target, type);
    pathType[column + target] = PathType.LOC;
    bandwidthGBps[column + target] = LOCAL_GBPS;
    hopCount[column + target] = 0;
    this.#wave[0] = target;
    let size = 1;

    while (size > 0) {
      this.#waves++;
      let nextSize = 0;
      for (let position = 0; position < size; position++) {
        const node = this.#wave[position] ?? 0;
        const isDev = nodeType[node] === hardware;
        const path = column + node;
        const typeSoFar = pathType[path] ?? 0;
        const countSoFar = hopCount[path] ?? 0;
        const endLink = start[node + 1] ?? 0;
        for (let link = start[node] ?? 0; link < endLink; link++) {
          const next = to[link] ?? 0;
          paths.visit(next, type);
          const kind = linkType[link] ?? 0;
          if (isDev && node !== targetDev && !(kind === LinkType.LOC && nodeType[next] === NodeType.GPU)) {
            const asRelay = !this.#nvbDisable && kind === LinkType.NVL && nodeType[next] === hardware && countSoFar <= hopsToNvb;
            if (!asRelay) continue;
          }

          const nextPath = column + next;
          const newType = Math.max(typeSoFar, this.#typeOfStep(node, next, kind, typeSoFar, countSoFar === hopsToNvb));
          const newGBps = Math.min(bandwidthGBps[path] ?? 0, linkGBps[link] ?? 0);
          const oldType = pathType[nextPath] ?? 0;
          const oldGBps = bandwidthGBps[nextPath] ?? 0;
          if (!byType) {
            if (oldGBps >= newGBps || (oldGBps !== 0 && (hopCount[nextPath] ?? 0) <= countSoFar)) continue;
          } else if (newType > oldType) {
            continue;
          } else if (newType === oldType) {
            if (oldGBps > newGBps || (oldGBps === newGBps && (hopCount[nextPath] ?? 0) <= countSoFar + 1)) continue;
          }

          let back = reverse[link] ?? -1;
          if (back < 0) {
            // NCCL fails only if the node had no path before; otherwise it keeps the first hop of the old one.
            const old = firstHop[nextPath] ?? -1;
            if (old < 0) throw this.#noWayBack(node, next);
            back = paths.hopLink[old] ?? 0;
          }
          firstHop[nextPath] = paths.prepend(back, countSoFar === 0 ? -1 : (firstHop[path] ?? -1));
          hopCount[nextPath] = countSoFar + 1;
          bandwidthGBps[nextPath] = newGBps;
          pathType[nextPath] = newType;
          if (this.#inWave[next] !== this.#waves) {
            this.#inWave[next] = this.#waves;
            this.#nextWave[nextSize++] = next;
          }
        }
      }
      [this.#wave, this.#nextWave] = [this.#nextWave, this.#wave];
      size = nextSize;
    }
  }

  /** Type of a path of that one link, except NVB, which depends on the links before. */
  #typeOfStep(node: number, next: number, kind: number, typeSoFar: number, oneGpuAway: boolean): number {
    const nodeType = this.#nodeType;
    if (kind === LinkType.PCI && (nodeType[node] === NodeType.CPU || nodeType[next] === NodeType.CPU)) return PathType.PHB;
    if (kind === LinkType.NVL && nodeType[node] === this.#hardwareType && typeSoFar === PathType.NVL && oneGpuAway)
      return PathType.NVB;
    if (nodeType[node] === NodeType.PCI && nodeType[next] === NodeType.PCI) return PathType.PXB;
    return kind === LinkType.NET ? PathType.LOC : kind;
  }

  #noWayBack(node: number, next: number): InputError {
    const name = (vertex: number) => {
      const found = this.#system.nodes[vertex];
      return found === undefined ? '?' : nodeName(found);
    };
    return new InputError(
      'CONTENT',
      `${name(node)} has a link to ${name(next)}, but there is none back: the file must give the link on both sides`,
      { ncclResult: 3 },
    );
  }
}
