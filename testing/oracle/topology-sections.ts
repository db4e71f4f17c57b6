import { cpuRanges } from '../../src/planner/topology/build/cpu-mask.js';
import type { LocalSystem } from '../../src/planner/topology/local-systems.js';
import { hopNames } from '../../src/planner/topology/paths/compute-paths.js';
import { countOf, nodeName, type System, type SystemNode } from '../../src/planner/topology/system.js';
import { linkTypeName, NodeType, nodeTypeNames, PathType, pathTypeNames } from '../../src/planner/topology/types.js';
import { type Rules, rulesOf } from '../../src/planner/versions/rules.js';
import { type Difference, firstDifference } from './difference.js';
import { isRecord, type OracleCase } from './oracle-case.js';

/**
 * Comparison of the topology, in the oracle's own form: headers of `nodeTypes`, `system` and `paths`, in the oracle's own
 * form.
 */

/** Ranks, bandwidths and NVLS of each kind of host. */
export function nodeTypesDifference(oracleCase: OracleCase): Difference | undefined {
  return compareNodeTypes(oracleCase, (local) => ({
    localRanks: local.ranks,
    inter: local.inter ? 1 : 0,
    maxBw: local.maxGBps,
    totalBw: local.totalGBps,
    nvlsSupport: local.nvls ? 1 : 0,
  }));
}

/** Nodes and links of each kind of host. */
export function systemDifference(oracleCase: OracleCase): Difference | undefined {
  return compareNodeTypes(oracleCase, (local) => ({ system: describeSystem(local) }));
}

/** Paths from GPUs and NETs of each kind of host. */
export function pathsDifference(oracleCase: OracleCase): Difference | undefined {
  const rules = rulesOf(oracleCase.parameters);
  return compareNodeTypes(oracleCase, (local) => ({
    paths: local.system.gpus.map((gpu) => describePaths(local, gpu, [NodeType.GPU, NodeType.NET, NodeType.CPU], rules)),
    netPaths: local.system.nets.map((net) => describePaths(local, net, [NodeType.GPU], rules)),
  }));
}

/** Compares `describe` of each kind of host, and `xml`, with the same keys of `expected.nodeTypes`. */
export function compareNodeTypes(oracleCase: OracleCase, describe: (local: LocalSystem) => object): Difference | undefined {
  const actual = oracleCase.hosts.flatMap(({ xml, systems }) => systems.map((local) => ({ xml, ...describe(local) })));
  const { nodeTypes } = oracleCase.expected;
  if (!Array.isArray(nodeTypes)) return { path: 'nodeTypes', expected: nodeTypes, actual: `${actual.length} kinds of host` };
  const keys = new Set(Object.keys(actual[0] ?? {}));
  const expected = nodeTypes.map((nodeType: unknown) =>
    Object.fromEntries(Object.entries(isRecord(nodeType) ? nodeType : {}).filter(([key]) => keys.has(key))),
  );
  return firstDifference(withoutStale(expected), actual, 'nodeTypes');
}

/** A path of type NET or DIS keeps whatever bandwidth and hops it had: only its type is compared. */
function withoutStale(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutStale);
  if (!isRecord(value)) return value;
  if (value['hops'] !== undefined && (value['type'] === 'NET' || value['type'] === 'DIS')) {
    return { to: value['to'], type: value['type'] };
  }
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withoutStale(inner)]));
}

function describeSystem(local: LocalSystem): object {
  const { system } = local;
  return Object.fromEntries(
    nodeTypeNames.map((name, type) => [
      name,
      system.nodes
        .slice(system.first[type], system.first[type + 1])
        .map((node) => ({ id: nodeName(node), ...describeNode(local, node), links: describeLinks(system, node.vertex) })),
    ]),
  );
}

function describeNode({ system, gpuOfNet }: LocalSystem, node: SystemNode): object {
  switch (node.type) {
    case NodeType.GPU: {
      const parent = system.hardware[node.parent];
      return {
        dev: node.dev,
        rank: node.rank,
        sm: node.sm,
        gdr: node.gdr ? 1 : 0,
        parent: parent === undefined ? null : nodeName(parent),
      };
    }
    case NodeType.DEV:
      return { device: hexadecimal(node.device), dev: node.dev, sm: node.sm, nGpus: node.gpuCount };
    case NodeType.PCI:
      return { device: hexadecimal(node.device) };
    case NodeType.CPU:
      return { arch: node.arch, vendor: node.vendor, model: node.model, affinity: cpuRanges(node.affinity) };
    case NodeType.NET:
      return {
        dev: node.dev,
        asic: hexadecimal(node.asic),
        pciId: hexadecimal(node.pciId),
        port: node.port,
        bw: node.bandwidthGBps,
        latency: node.latencyUs,
        gdr: node.gdr ? 1 : 0,
        coll: node.coll ? 1 : 0,
        maxChannels: node.maxChannels,
        localGpu: gpuOfNet[node.index],
        rail: node.rail,
        plane: node.plane,
      };
    default:
      return {};
  }
}

function describeLinks(system: System, vertex: number): object[] {
  const { start, to, type, bandwidthGBps } = system.links;
  const described: object[] = [];
  for (let link = start[vertex] ?? 0; link < (start[vertex + 1] ?? 0); link++) {
    described.push({ type: linkTypeName(type[link] ?? -1), bw: bandwidthGBps[link], to: nameOf(system, to[link]) });
  }
  return described;
}

function describePaths({ system, paths }: LocalSystem, from: SystemNode, targets: readonly NodeType[], rules: Rules): object {
  const entries = targets.map((type) => {
    if (!paths.knows(from.vertex, type)) return [nodeTypeNames[type], null] as const;
    const described = Array.from({ length: countOf(system, type) }, (_, index) => {
      const path = paths.to(type, index) + from.vertex;
      const kind = paths.type[path] ?? PathType.DIS;
      return {
        to: nameOf(system, (system.first[type] ?? 0) + index),
        type: kind === PathType.NET ? rules.netPathName : pathTypeNames[kind],
        bw: paths.bandwidthGBps[path],
        count: paths.hopCount[path],
        hops: hopNames(paths, path),
      };
    });
    return [nodeTypeNames[type], described] as const;
  });
  return { from: nodeName(from), ...Object.fromEntries(entries) };
}

function nameOf(system: System, vertex: number | undefined): string {
  const node = system.nodes[vertex ?? -1];
  return node === undefined ? '?' : nodeName(node);
}

function hexadecimal(value: bigint): string {
  return `0x${value.toString(16)}`;
}
