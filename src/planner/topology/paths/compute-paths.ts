import type { Parameters } from '../../parameters.js';
import { type Rules, rulesOf } from '../../versions/rules.js';
import { nodeName, type System } from '../system.js';
import { NodeType, PathType } from '../types.js';
import { findPaths } from './find-paths.js';
import { GdrMode, GpuDirect } from './gdr.js';
import { Locality } from './locality.js';
import type { Paths } from './paths.js';
import { type DriverFacts, Reach } from './reach.js';

/**
 * All paths of a system as NCCL uses them: the best ones over the links, then changed where they are forbidden or a better one
 * exists:
 *
 *  1. GPUs that may not copy to each other directly: through the CPU next to the receiver. Where shared memory is off
 *     too, or the network is faster, the path becomes NET: these GPUs count as being on different hosts.
 *  2. NICs that a GPU reaches best over C2C and its CPU: P2C.
 *  3. NICs that belong to another GPU, reached over NVLink by way of it: PXN, for sending only.
 *  4. NICs that may not touch the memory of a GPU: through the CPU next to the GPU.
 *
 * Later steps use the results of earlier ones, NIC by NIC and GPU by GPU, so the order of loops affects the result.
 */
export function computePaths(system: System, parameters: Parameters, facts: DriverFacts = {}): Paths {
  const paths = findPaths(system, parameters);
  const locality = new Locality(system, paths, parameters);
  const rules = rulesOf(parameters);
  diversion(system, paths, locality, new Reach(system, paths, parameters, facts), rules);
  if (rules.pathOrder !== 'no p2c') chipToChip(system, paths, locality, rules);
  networkPaths(system, paths, locality, parameters);
  return paths;
}

/** Step 1: GPU to GPU. */
function diversion(system: System, paths: Paths, locality: Locality, reach: Reach, rules: Rules): void {
  const gpus = system.gpus.length;
  for (let to = 0; to < gpus; to++) {
    for (let from = 0; from < gpus; from++) {
      if (!reach.isPeer(from, to))
        goThrough(paths, rules, NodeType.CPU, locality.cpuOfGpu(to), NodeType.GPU, from, NodeType.GPU, to);
    }
    for (let from = 0; from < gpus; from++) {
      if (from !== to && !reach.connects(from, to))
        paths.type[paths.between(NodeType.GPU, from, NodeType.GPU, to)] = PathType.NET;
    }
  }
}

/** Step 2. Mostly for the NICs nearest to the GPU only; others are reached better through another GPU. */
function chipToChip(system: System, paths: Paths, locality: Locality, { nearestNicsOverC2c, c2cFromParts }: Rules): void {
  const all = system.nets.map((net) => net.index);
  for (const { index: gpu } of system.gpus) {
    const cpu = locality.cpuOfGpu(gpu);
    const gpuToCpu = paths.type[paths.between(NodeType.GPU, gpu, NodeType.CPU, cpu)] ?? PathType.DIS;
    for (const net of nearestNicsOverC2c ? locality.netsOfGpu(gpu) : all) {
      const isOverC2c = c2cFromParts
        ? typeOfBoth(gpuToCpu, paths.type[paths.between(NodeType.NET, net, NodeType.CPU, cpu)] ?? PathType.DIS) === PathType.P2C
        : gpuToCpu === PathType.C2C && paths.type[paths.between(NodeType.GPU, gpu, NodeType.NET, net)] === PathType.PHB;
      if (!isOverC2c) continue;
      for (const path of [
        paths.between(NodeType.GPU, gpu, NodeType.NET, net),
        paths.between(NodeType.NET, net, NodeType.GPU, gpu),
      ]) {
        paths.type[path] = c2cFromParts ? Math.min(PathType.P2C, paths.type[path] ?? PathType.DIS) : PathType.P2C;
      }
    }
  }
  locality.forgetAll();
}

/** Steps 3 and 4. */
function networkPaths(system: System, paths: Paths, locality: Locality, parameters: Parameters): void {
  const gdr = new GpuDirect(system, paths, locality, parameters);
  const rules = rulesOf(parameters);
  const farthestProxy = (parameters.pxnC2c ?? rules.pxnC2c) !== 0 ? PathType.P2C : PathType.PXB;
  const farthestOwn = { pxb: PathType.PXB, proxy: farthestProxy, pxn: PathType.PXN }[rules.pxnBeyond];
  const toNet = (gpu: number, net: number) => paths.between(NodeType.GPU, gpu, NodeType.NET, net);

  const isBetterThrough = (proxy: number, gpu: number, net: number): boolean => {
    if (rules.proxyNeedsGdr && gdr.mode(proxy, net, 'read') === GdrMode.DISABLED) return false;
    if ((paths.type[toNet(proxy, net)] ?? PathType.DIS) > farthestProxy) return false;
    if ((paths.type[paths.between(NodeType.GPU, proxy, NodeType.GPU, gpu)] ?? PathType.DIS) > PathType.NVL) return false;
    if (system.gpus[proxy]?.systemId !== system.gpus[gpu]?.systemId) return false;
    return (
      (paths.bandwidthGBps[toNet(proxy, net)] ?? 0) > (paths.bandwidthGBps[toNet(gpu, net)] ?? 0) ||
      (paths.type[toNet(gpu, net)] ?? PathType.DIS) > farthestOwn
    );
  };

  for (const { index: net } of system.nets) {
    for (const { index: gpu } of system.gpus) {
      if (parameters.pxnDisable !== 1) {
        const proxy = locality.gpuOfNet(net);
        if (proxy !== gpu && proxy !== -1 && isBetterThrough(proxy, gpu, net)) {
          goThrough(paths, rules, NodeType.GPU, proxy, NodeType.GPU, gpu, NodeType.NET, net);
          locality.forget(gpu, net);
        }
      }
      const isNear = (paths.type[toNet(gpu, net)] ?? PathType.DIS) < PathType.PHB;
      if ((isNear || !rules.detoursNearOnly) && gdr.mode(gpu, net, 'write') === GdrMode.DISABLED) {
        const cpu = locality.cpuOfGpu(gpu);
        goThrough(paths, rules, NodeType.CPU, cpu, NodeType.NET, net, NodeType.GPU, gpu);
        goThrough(paths, rules, NodeType.CPU, cpu, NodeType.GPU, gpu, NodeType.NET, net);
        locality.forget(gpu, net);
      }
    }
  }
}

/** Routes the path between two nodes through a third: the path to it, then its path to the end. */
function goThrough(
  paths: Paths,
  { c2cFromParts }: Rules,
  viaType: NodeType,
  via: number,
  fromType: NodeType,
  from: number,
  toType: NodeType,
  to: number,
): void {
  const path = paths.between(fromType, from, toType, to);
  const first = paths.between(fromType, from, viaType, via);
  const second = paths.between(viaType, via, toType, to);
  paths.firstHop[path] = paths.join(first, second);
  paths.hopCount[path] = (paths.hopCount[first] ?? 0) + (paths.hopCount[second] ?? 0);
  paths.bandwidthGBps[path] = Math.min(paths.bandwidthGBps[first] ?? 0, paths.bandwidthGBps[second] ?? 0);
  paths.type[path] =
    viaType === NodeType.GPU
      ? PathType.PXN
      : (c2cFromParts ? typeOfBoth : Math.max)(paths.type[first] ?? PathType.DIS, paths.type[second] ?? PathType.DIS);
}

/** Type of two paths one after the other: the worse; but C2C and a host bridge together are P2C. */
function typeOfBoth(first: number, second: number): number {
  const worse = Math.max(first, second);
  return worse === PathType.PHB && Math.min(first, second) === PathType.C2C ? PathType.P2C : worse;
}

/** `DEV/0-1000`, `PCI/0-2000`, …: names of the nodes along a path, its end last. */
export function hopNames(paths: Paths, path: number): string[] {
  return paths.links(path).map((link) => {
    const node = paths.system.nodes[paths.system.links.to[link] ?? 0];
    return node === undefined ? '?' : nodeName(node);
  });
}
