import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { defaultParameters, type Parameters } from '../../../../src/planner/parameters.js';
import { localSystems } from '../../../../src/planner/topology/local-systems.js';
import { computePaths } from '../../../../src/planner/topology/paths/compute-paths.js';
import { findPaths } from '../../../../src/planner/topology/paths/find-paths.js';
import type { Paths } from '../../../../src/planner/topology/paths/paths.js';
import { countOf, type System } from '../../../../src/planner/topology/system.js';
import { LinkType, NodeType, PathType } from '../../../../src/planner/topology/types.js';
import { parseXml } from '../../../../src/planner/topology/xml/parse.js';
import { build } from './machine.js';
import { randomMachine } from './random-machine.js';
import { runs } from '../../../runs.js';

const randomParameters: fc.Arbitrary<Parameters> = fc
  .record({
    p2pLevel: fc.constantFrom(undefined, PathType.LOC, PathType.NVL, PathType.PIX, PathType.PXB, PathType.SYS),
    netGdrLevel: fc.constantFrom(undefined, PathType.LOC, PathType.PIX, PathType.SYS),
    shmDisable: fc.constantFrom(0, 1),
    pxnDisable: fc.constantFrom(0, 1),
    nvbDisable: fc.constant(1), // through a GPU of another group NCCL fails
    netGdrC2c: fc.constantFrom(0, 1),
  })
  .map((changes) => ({ ...defaultParameters, ...changes }));

/** Fault of a path, if any: it must be a chain of links from one node to the other, none of them worse. */
function faultOf(system: System, paths: Paths, start: number, end: number, path: number): string | undefined {
  const { from, to, bandwidthGBps, type } = system.links;
  const links = paths.links(path);
  if (links.length !== paths.hopCount[path]) return `${links.length} links for ${paths.hopCount[path]} hops`;
  let vertex = start;
  for (const link of links) {
    if (from[link] !== vertex) return `link ${link} does not begin at ${vertex}`;
    if (paths.bandwidthGBps[path]! > bandwidthGBps[link]!) return `link ${link} has less bandwidth`;
    if (type[link] !== LinkType.NET && paths.type[path]! < type[link]!) return `link ${link} has a worse type`;
    vertex = to[link]!;
  }
  return vertex === end ? undefined : `ends at ${vertex}`;
}

describe('on any machine', () => {
  it('a path is a chain of links, none of which has less bandwidth or a worse type than the path', () => {
    fc.assert(
      fc.property(randomMachine, randomParameters, (xml, parameters) => {
        const system = build(parseXml(xml).root, parameters);
        const paths = computePaths(system, parameters);
        const faults: string[] = [];
        for (const type of [NodeType.GPU, NodeType.NET, NodeType.CPU, NodeType.DEV, NodeType.NVS]) {
          for (let index = 0; index < countOf(system, type); index++) {
            for (const { vertex } of system.nodes) {
              const path = paths.to(type, index) + vertex;
              if (paths.type[path]! >= PathType.NET) continue;
              const fault = faultOf(system, paths, vertex, system.first[type]! + index, path);
              if (fault !== undefined) faults.push(`from ${vertex} to ${type}/${index}: ${fault}`);
            }
          }
        }
        expect(faults).toEqual([]);
      }),
      { numRuns: runs(60, 150) },
    );
  });

  it('symmetric links give symmetric types and bandwidths of paths between GPUs', () => {
    fc.assert(
      fc.property(randomMachine, (xml) => {
        const system = build(parseXml(xml).root);
        const { bandwidthGBps, reverse } = system.links;
        expect(reverse.every((back, link) => bandwidthGBps[back] === bandwidthGBps[link])).toBe(true);
        const paths = findPaths(system, defaultParameters);
        const table = (swapped: boolean) =>
          system.gpus.map((a) =>
            system.gpus.map((b) => {
              const path = swapped
                ? paths.between(NodeType.GPU, b.index, NodeType.GPU, a.index)
                : paths.between(NodeType.GPU, a.index, NodeType.GPU, b.index);
              return [paths.type[path], paths.bandwidthGBps[path]];
            }),
          );
        expect(table(false)).toEqual(table(true));
      }),
      { numRuns: runs(80, 200) },
    );
  });

  it('the same file gives the same system and paths', () => {
    fc.assert(
      fc.property(randomMachine, randomParameters, (xml, parameters) => {
        const once = () =>
          localSystems(build(parseXml(xml).root, parameters), parameters, 16).map(({ ranks, maxGBps, totalGBps, paths }) => ({
            ranks,
            maxGBps,
            totalGBps,
            type: paths.type,
            bandwidthGBps: paths.bandwidthGBps,
            hopCount: paths.hopCount,
          }));
        expect(once()).toEqual(once());
      }),
      { numRuns: 40 },
    );
  });

  it('every rank is in exactly one system', () => {
    fc.assert(
      fc.property(randomMachine, randomParameters, (xml, parameters) => {
        const system = build(parseXml(xml).root, parameters);
        const locals = localSystems(system, parameters, system.gpus.length);
        expect(locals.flatMap(({ ranks }) => ranks).sort((a, b) => a - b)).toEqual(
          system.gpus.map(({ rank }) => rank).sort((a, b) => a - b),
        );
        for (const { inter } of locals) expect(inter).toBe(locals.length > 1);
      }),
      { numRuns: runs(40, 80) },
    );
  });
});
