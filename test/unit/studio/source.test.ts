import { describe, expect, it } from 'vitest';
import { graphsToXml } from '../../../src/planner/graph/graph-xml.js';
import { searchHost } from '../../../src/planner/graph/search-host.js';
import { defaultParameters } from '../../../src/planner/parameters.js';
import { buildSystem } from '../../../src/planner/topology/build/build-system.js';
import { machine } from '../../../src/planner/topology/catalogue/machines.js';
import { localSystems } from '../../../src/planner/topology/local-systems.js';
import { descendants, detach, type XmlElement } from '../../../src/planner/topology/xml/tree.js';
import { writeXml } from '../../../src/planner/topology/xml/write.js';
import { planned } from '../../../src/studio/planned.js';
import { sourceOf } from '../../../src/studio/source.js';
import { fragmentOf, filesOf, stateOf } from '../../../src/studio/state.js';
import { gpuList, lstopoText, lstopoXml } from '../planner/evidence/print-tools.js';

const topology = (name: string) => writeXml(machine(name));

/** Contents of `NCCL_GRAPH_DUMP_FILE` for one of two such machines, each graph cut to `nChannels`. */
function graphFile(name: string, nChannels: number): string {
  const system = buildSystem(machine(name), { parameters: defaultParameters });
  const local = localSystems(system, defaultParameters, 2 * system.gpus.length)[0]!;
  const root = graphsToXml(searchHost(local, defaultParameters), local);
  for (const graph of [...descendants(root)].filter((element) => element.name === 'graph')) {
    graph.attributes.set('nchannels', String(nChannels));
    for (const channel of graph.children.slice(nChannels)) detach(channel);
  }
  return writeXml(root);
}

describe('sources of the studio', () => {
  it.each([
    ['XML', lstopoXml],
    ['text, with nvidia-smi -L', (root: XmlElement) => `${lstopoText(root)}\n${gpuList(root)}`],
  ])('lstopo as %s gives a machine with all GPUs and ports', (_, print) => {
    const text = print(machine('pcie-8-a6000'));
    const source = sourceOf(stateOf('file=host.txt&nodes=2'), { name: 'host.txt', text })!;
    expect(source.title).toContain('in host.txt');
    expect(source.machines[0]!.system.gpus).toHaveLength(8);
    expect(source.notes.join()).toContain('assumed');
    expect(planned(source).plan.nodes.nRanks).toBe(16);
  });

  it('has the ports of a machine of the catalogue as NCCL joins them, and those of a file as it has them', () => {
    const devices = (...given: Parameters<typeof sourceOf>) => sourceOf(...given)!.machines[0]!.system.nets.length;
    expect(devices(stateOf('machine=oci-h100&nodes=2'), undefined)).toBe(8);
    const text = 'machines: [{ machine: oci-h100, count: 2 }]';
    expect(devices(stateOf('file=c.yaml'), { name: 'c.yaml', text })).toBe(8);
    expect(devices(stateOf('file=t.xml&nodes=2'), { name: 't.xml', text: topology('oci-h100') })).toBe(16);
  });

  it('a graph file that a variable names gives the channels', () => {
    const state = stateOf('machine=dgx-a100&nodes=2&env=NCCL_GRAPH_FILE%3Dg.xml');
    expect(filesOf(state)).toEqual(['g.xml']);
    expect(() => sourceOf(state, undefined)).toThrow('NCCL_GRAPH_FILE=g.xml: open that file in the page, too');
    const searched = planned(sourceOf(stateOf('machine=dgx-a100&nodes=2'), undefined)!);
    const given = planned(sourceOf(state, undefined, new Map([['g.xml', graphFile('dgx-a100', 2)]]))!);
    expect(searched.plan.nChannels).toBeGreaterThan(given.plan.nChannels);
    expect(given.overview.hosts[0]!.rings.flatMap(({ channels }) => channels)).toHaveLength(2);
    const other = new Map([['g.xml', graphFile('hgx-a100-4', 1)]]);
    expect(() => planned(sourceOf(state, undefined, other)!)).toThrow(/ranks 4, 5, 6, 7 are not in it/);
  });

  it('topologies of several hosts make one cluster', () => {
    const texts = new Map([['b.xml', topology('hgx-a100-4')]]);
    const state = stateOf(fragmentOf({ ...stateOf('file=a.xml&nodes=1'), others: 'b.xml:2, dgx-a100' }));
    const source = sourceOf(state, { name: 'a.xml', text: topology('dgx-a100') }, texts)!;
    expect(source.title).toBe('a.xml + 2 x b.xml + dgx-a100');
    expect(source.cluster.hosts.map(({ count }) => count)).toEqual([1, 2, 1]);
    expect(planned(source).plan.nodes.nRanks).toBe(24);
  });

  it('names the file of an error', () => {
    const texts = new Map([['b.xml', '<system version="1"><cpu']]);
    const state = stateOf('machine=dgx-a100&others=b.xml');
    expect(() => sourceOf(state, undefined, texts)).toThrow(expect.objectContaining({ file: 'b.xml' }));
    const prose = new Map([['b.txt', 'no machine']]);
    expect(() => sourceOf(stateOf('machine=dgx-a100&others=b.txt'), undefined, prose)).toThrow('has no machine');
  });
});
