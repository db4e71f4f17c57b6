import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TcclError } from '../../../../src/errors.js';
import { type ChannelGraph, nodeId } from '../../../../src/planner/graph/graph.js';
import { channelRanks } from '../../../../src/planner/graph/graph-json.js';
import { searchHost } from '../../../../src/planner/graph/search-host.js';
import { defaultParameters } from '../../../../src/planner/parameters.js';
import { type LocalSystem, localSystems } from '../../../../src/planner/topology/local-systems.js';
import { PathType } from '../../../../src/planner/topology/types.js';
import { parseXml } from '../../../../src/planner/topology/xml/parse.js';
import { build } from '../topology/machine.js';
import { runs } from '../../../runs.js';
import { randomMachine } from '../topology/random-machine.js';

interface Searched {
  readonly local: LocalSystem;
  readonly ring: ChannelGraph;
  /** By graph, the settings of each walk in the order in which they were tried. */
  readonly walks: readonly string[][];
}

/** Graphs of each group of ranks, except groups for which NCCL itself finds nothing. */
function searched(xml: string, hosts: number): Searched[] {
  const system = build(parseXml(xml).root);
  return localSystems(system, defaultParameters, hosts * system.gpus.length).flatMap((local) => {
    const walks: string[][] = [];
    try {
      const { ring } = searchHost(local, defaultParameters, {
        trace: (event) => {
          if (event.kind === 'search') walks.push([]);
          if (event.kind === 'attempt') walks.at(-1)?.push(JSON.stringify(event));
        },
      });
      return [{ local, ring, walks }];
    } catch (error) {
      if (error instanceof TcclError && error.code === 'NO_PATH' && local.system.nets.length === 0) return [];
      throw error;
    }
  });
}

/** Load of each link by all channels together, GB/s. */
function loadOf(ring: ChannelGraph, { system, paths, inter }: LocalSystem): Float64Array {
  const load = new Float64Array(system.links.to.length);
  const gpuOf = (rank: number) => system.gpus.find((gpu) => gpu.rank === rank)!;
  const netOf = (id: bigint) => system.nets.find((net) => nodeId(net) === id)!;
  for (let channel = 0; channel < ring.nChannels; channel++) {
    const gpus = channelRanks(ring, channel).map(gpuOf);
    const stops = inter ? [netOf(ring.inter[2 * channel]!), ...gpus, netOf(ring.inter[2 * channel + 1]!)] : [...gpus, gpus[0]!];
    for (let stop = 1; stop < stops.length; stop++) {
      const from = stops[stop - 1]!;
      const to = stops[stop]!;
      const gbps = from.type === to.type ? ring.bwIntra : ring.bwInter;
      for (const link of paths.links(paths.to(to.type, to.index) + from.vertex)) load[link] = load[link]! + gbps;
    }
  }
  return load;
}

/** A channel that NCCL takes where it has found nothing. */
function isLastResort(ring: ChannelGraph): boolean {
  return ring.nChannels === 1 && ring.bwIntra === Math.fround(0.1) && ring.typeIntra === PathType.SYS;
}

describe.each([1, 2])('on %i of any machine', (hosts) => {
  it('every channel visits each rank once, all together fit on the links, and no settings are tried twice', () => {
    fc.assert(
      fc.property(randomMachine, (xml) => {
        for (const { local, ring, walks } of searched(xml, hosts)) {
          // Settings are finite and so are the steps of a walk: the search ends.
          for (const tried of walks) expect(new Set(tried).size).toBe(tried.length);
          for (let channel = 0; channel < ring.nChannels; channel++) {
            expect(channelRanks(ring, channel).sort((a, b) => a - b)).toEqual(local.ranks);
          }
          if (isLastResort(ring)) continue;
          const { bandwidthGBps } = local.system.links;
          // What is left is rounded to 0.001 GB/s each time that it changes.
          const roundings = 0.001 * ring.nChannels * 2;
          expect([...loadOf(ring, local)].filter((gbps, link) => gbps > bandwidthGBps[link]! + roundings)).toEqual([]);
        }
      }),
      { numRuns: runs(2, 12) },
    );
  });
});
