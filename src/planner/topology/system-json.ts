import { hopNames } from './paths/compute-paths.js';
import type { Paths } from './paths/paths.js';
import { nodeName, type System, type SystemNode } from './system.js';
import { linkTypeName, nodeTypeNames, NodeType, PathType, pathTypeNames } from './types.js';

/** A system and its paths as plain values, everything by name: for JSON. */
interface SystemJson {
  readonly nodes: readonly NodeJson[];
  /** From every GPU and network device to every GPU, CPU and network device. */
  readonly paths: readonly PathJson[];
}

interface NodeJson {
  /** `GPU/0-1b000`, as in NCCL's log. */
  readonly id: string;
  readonly type: string;
  readonly links: readonly { readonly to: string; readonly type: string; readonly bandwidthGBps: number }[];
  /** Fields of the type: `dev`, `rank`, `sm`, `gdr` … */
  readonly [property: string]: unknown;
}

interface PathJson {
  readonly from: string;
  readonly to: string;
  readonly type: string;
  /** Paths over the network or without connection have no further properties. */
  readonly bandwidthGBps?: number;
  /** Nodes on the way, the last is the end. */
  readonly hops?: readonly string[];
}

/** Fields with another name in the output, or only of internal use. */
const internal = new Set(['vertex', 'index', 'systemId', 'localId', 'type', 'parent']);

export function systemJson(system: System, paths: Paths): SystemJson {
  const ends: readonly SystemNode[] = [...system.gpus, ...system.nets];
  const targets: readonly SystemNode[] = [...system.gpus, ...system.cpus, ...system.nets];
  return {
    nodes: system.nodes.map((node) => nodeJson(system, node)),
    paths: ends.flatMap((from) => targets.filter((to) => to !== from).map((to) => pathJson(paths, from, to))),
  };
}

function nodeJson(system: System, node: SystemNode): NodeJson {
  const { start, to, type, bandwidthGBps } = system.links;
  const links = [];
  for (let link = start[node.vertex] ?? 0; link < (start[node.vertex + 1] ?? 0); link++) {
    const target = system.nodes[to[link] ?? -1];
    if (target !== undefined)
      links.push({ to: nodeName(target), type: linkTypeName(type[link] ?? 0), bandwidthGBps: bandwidthGBps[link] ?? 0 });
  }
  const own = Object.entries(node)
    .filter(([key]) => !internal.has(key))
    .map(([key, value]: [string, unknown]) => [key, typeof value === 'bigint' ? `0x${value.toString(16)}` : value] as const);
  const parent = node.type === NodeType.GPU ? system.hardware[node.parent] : undefined;
  return {
    id: nodeName(node),
    type: nodeTypeNames[node.type],
    ...Object.fromEntries(own),
    ...(parent === undefined ? {} : { parent: nodeName(parent) }),
    links,
  };
}

function pathJson(paths: Paths, from: SystemNode, to: SystemNode): PathJson {
  const path = paths.to(to.type, to.index) + from.vertex;
  const type = paths.type[path] ?? PathType.DIS;
  const ends = { from: nodeName(from), to: nodeName(to), type: pathTypeNames[type] ?? 'DIS' };
  if (type >= PathType.NET) return ends;
  return { ...ends, bandwidthGBps: paths.bandwidthGBps[path] ?? 0, hops: hopNames(paths, path) };
}
