import type { Parameters } from '../../parameters.js';
import { TcclError } from '../../../errors.js';
import { buildSystem } from '../build/build-system.js';
import { findPaths } from '../paths/find-paths.js';
import type { System } from '../system.js';
import { type NodeType as NodeTypeOf, NodeType, PathType } from '../types.js';
import { createElement, type XmlElement } from '../xml/tree.js';

/** Gain of a change of the file. */
export interface Gain {
  /** `GPU 3 to NET 2`. */
  readonly between: string;
  readonly is: number;
  readonly couldBe: number;
  /** Number of pairs of nodes with the same gain. */
  readonly pairs: number;
}

/** Limit of tried changes: each builds the whole graph anew, and a file with a thousand faults must not take minutes. */
const MOST_CHANGES = 32;

/**
 * Bandwidths between GPUs, their CPU and the network devices by the links alone: NCCL's detours (another NIC through another GPU)
 * must not hide a bad link.
 */
export class Measure {
  #changesLeft = MOST_CHANGES;
  readonly #root: XmlElement;
  readonly #parameters: Parameters;
  readonly #bandwidths: ReadonlyMap<string, number>;

  constructor(root: XmlElement, system: System, parameters: Parameters) {
    this.#root = root;
    this.#parameters = parameters;
    this.#bandwidths = bandwidths(system, parameters);
  }

  /**
   * The greatest gain of a change of the tree; undefined without a gain, or when too many changes have been tried. `change` gets
   * a function that finds the copy of an element, and changes the copy.
   */
  gain(change: (copyOf: (element: XmlElement) => XmlElement) => void): Gain | undefined {
    if (this.#changesLeft-- <= 0) return undefined;
    const copies = new Map<XmlElement, XmlElement>();
    const root = copyTree(this.#root, undefined, copies);
    change((element) => copies.get(element) ?? element);
    let changed: ReadonlyMap<string, number>;
    try {
      changed = bandwidths(buildSystem(root, { parameters: this.#parameters }), this.#parameters);
    } catch (error) {
      // A change that cannot be built is no remedy.
      if (error instanceof TcclError) return undefined;
      throw error;
    }
    let best: Gain | undefined;
    for (const [between, couldBe] of changed) {
      const is = this.#bandwidths.get(between) ?? 0;
      if (couldBe <= is * 1.01) continue;
      if (best !== undefined && best.is === is && best.couldBe === couldBe) best = { ...best, pairs: best.pairs + 1 };
      else if (best === undefined || couldBe / is > best.couldBe / best.is) best = { between, is, couldBe, pairs: 1 };
    }
    return best;
  }
}

function copyTree(element: XmlElement, parent: XmlElement | undefined, copies: Map<XmlElement, XmlElement>): XmlElement {
  const copy = createElement(element.name, parent, element.attributes, element);
  copies.set(element, copy);
  for (const child of element.children) copyTree(child, copy, copies);
  return copy;
}

/** By pair of nodes. */
function bandwidths(system: System, parameters: Parameters): Map<string, number> {
  const paths = findPaths(system, parameters);
  const result = new Map<string, number>();
  const several = system.hostHashes.length > 1;
  for (const gpu of system.gpus) {
    const name = `GPU ${several ? `of rank ${gpu.rank}` : gpu.dev}`;
    const add = (type: NodeTypeOf, index: number, to: string): void => {
      const path = paths.between(NodeType.GPU, gpu.index, type, index);
      if ((paths.type[path] ?? PathType.DIS) < PathType.NET) result.set(`${name} to ${to}`, paths.bandwidthGBps[path] ?? 0);
    };
    for (const cpu of system.cpus)
      if (cpu.systemId === gpu.systemId) add(NodeType.CPU, cpu.index, `CPU ${BigInt.asIntN(56, cpu.localId)}`);
    for (const net of system.nets) if (net.systemId === gpu.systemId) add(NodeType.NET, net.index, `NET ${net.dev}`);
    for (const other of system.gpus)
      if (other !== gpu) add(NodeType.GPU, other.index, `GPU ${several ? `of rank ${other.rank}` : other.dev}`);
  }
  return result;
}
