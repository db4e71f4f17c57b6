import { describe, expect, it } from 'vitest';
import { GraphId } from '../../../../src/planner/graph/graph.js';
import { searchHost } from '../../../../src/planner/graph/search-host.js';
import { SearchReport } from '../../../../src/planner/graph/search-report.js';
import type { SearchEvent } from '../../../../src/planner/graph/trace.js';
import * as planner from '../../../../src/planner/index.js';
import { PathType } from '../../../../src/planner/topology/types.js';
import { parseXml } from '../../../../src/planner/topology/xml/parse.js';
import type { XmlElement } from '../../../../src/planner/topology/xml/tree.js';
import { cpu, gpu, nic, onlyLocalSystem, parametersWith, pciSwitch, systemXml } from '../topology/machine.js';

const oneSwitch = systemXml(cpu(0, pciSwitch('01', gpu('02', 0) + gpu('03', 1) + nic('04', 0))));
/** The NIC is near one GPU and far from the other. */
const twoSwitches = systemXml(cpu(0, pciSwitch('01', gpu('02', 0) + nic('04', 0)) + pciSwitch('10', gpu('11', 1))));

function events(root: XmlElement, ranks: number, graphFile?: XmlElement): SearchEvent[] {
  const heard: SearchEvent[] = [];
  const parameters = parametersWith({});
  searchHost(onlyLocalSystem(root, parameters, ranks), parameters, {
    trace: (event) => heard.push(event),
    ...(graphFile ? { graphFile } : {}),
  });
  return heard;
}

function reportOf(root: XmlElement, ranks: number, graphFile?: XmlElement) {
  const report = new SearchReport();
  for (const event of events(root, ranks, graphFile)) report.listen(event);
  return report.graphs;
}

describe('the trace', () => {
  it('has one search after the other, each from its first settings to its result', () => {
    const heard = events(oneSwitch, 4);
    const frames = heard.filter(({ kind }) => kind === 'search' || kind === 'result').map(({ kind }) => kind);
    expect(frames).toEqual(['search', 'result', 'search', 'result']);
    expect(heard[0]).toMatchObject({ kind: 'search', graph: GraphId.RING, inter: true, maxGbps: 24, totalGbps: 24 });
    expect(heard[1]).toMatchObject({ kind: 'attempt', pass: 1, bwInter: 24, sameChannels: true, steps: 256 });
  });

  it('gives the channels found and the improvements', () => {
    expect(events(oneSwitch, 4).find(({ kind }) => kind === 'solution')).toEqual({
      kind: 'solution',
      nChannels: 1,
      gbps: 24,
      nHops: 12,
      better: 'first',
    });
  });

  it('names refused paths with the reason', () => {
    const heard = events(oneSwitch, 4);
    expect(heard.filter(({ kind }) => kind === 'refused-entry')[0]).toEqual({
      kind: 'refused-entry',
      nic: 'NET/0-0',
      reason: 'bandwidth',
    });
    // The tree needs twice the switch's bandwidth into its second GPU and out to the NIC.
    expect(heard.filter((event) => event.kind === 'refused-path' && event.reason.why === 'bandwidth')[0]).toEqual({
      kind: 'refused-path',
      from: 'GPU/0-2000',
      to: 'GPU/0-3000',
      reason: { why: 'bandwidth', linkFrom: 'DEV/0-2000', linkTo: 'PCI/0-1000', needed: 24, left: 12 },
    });
    expect(events(twoSwitches, 4).find((event) => event.kind === 'refused-path' && event.reason.why === 'type')).toEqual({
      kind: 'refused-path',
      from: 'GPU/0-11000',
      to: 'NET/0-0',
      reason: { why: 'type', type: PathType.PHB, allowed: PathType.PIX, back: false },
    });
  });

  it('names the relaxed setting', () => {
    expect(
      events(oneSwitch, 4)
        .filter((event) => event.kind === 'relaxed')
        .slice(0, 2),
    ).toEqual([
      { kind: 'relaxed', what: 'sameChannels', from: 1, to: 0 },
      { kind: 'relaxed', what: 'typeInter', from: 4, to: 5 },
    ]);
  });
});

it('a listener receives the searches of a plan, machine by machine, and can print and keep their results', () => {
  const reports = new Map<string, planner.SearchReport>();
  const made = planner.plan(
    {
      hosts: [
        { machine: oneSwitch, count: 2, name: 'near' },
        { machine: twoSwitches, count: 1, name: 'far' },
      ],
    },
    planner.defaultParameters,
    {
      onSearch: (event: planner.SearchEvent, { machine }) => {
        const report = reports.get(machine) ?? new planner.SearchReport();
        reports.set(machine, report);
        report.listen(event);
      },
    },
  );
  expect([...reports].map(([machine, { graphs }]) => [machine, graphs.length])).toEqual([
    ['near', 2],
    ['far', 2],
  ]);
  const [local] = planner.localSystems(
    planner.buildSystem(oneSwitch, { parameters: planner.defaultParameters }),
    planner.defaultParameters,
    6,
  );
  const graphs = planner.searchHost(local!, planner.defaultParameters);
  expect(graphs).toEqual(made.nodes.kinds[0]?.graphs);
  expect(planner.graphLines(graphs.ring, local!)[1]).toBe(' 0 : NET/0-0 GPU/0-2000 GPU/0-3000 NET/0-0');
  expect(planner.writeXml(planner.graphsToXml(graphs, local!))).toMatch(/^<graphs version="1">\n {2}<graph id="0" pattern="4" /);
});

describe('the story', () => {
  it('is written in sentences, one graph at a time', () => {
    const [ring, tree] = reportOf(oneSwitch, 4);
    expect([ring?.id, tree?.id]).toEqual([GraphId.RING, GraphId.TREE]);
    expect(ring?.sentences[0]).toBe('The best path between a GPU and a NIC carries 24 GB/s, and a GPU can move 24 GB/s in all.');
    expect(ring?.sentences).toContain(
      '  Found 1 × 24 GB/s with (all channels alike, GPUs up to PIX, NICs up to PIX): the first solution.',
    );
    expect(ring?.sentences).toContain('All that a GPU can move is in use, so the first pass ends.');
    expect(ring?.sentences.at(-1)).toBe('Result: 1 channel of 24 GB/s, GPUs at most PIX apart, NICs PIX.');
    expect(tree?.sentences.join('\n')).toContain('a link has too little left');
  });

  it('mentions no NIC where all ranks are on one host', () => {
    expect(reportOf(oneSwitch, 2)[0]?.sentences.join('\n')).not.toContain('NIC');
  });

  it('of a graph from a file is short', () => {
    const graphFile =
      parseXml(`<graphs version="1"><graph id="0" pattern="4" crossnic="0" nchannels="1" speedintra="3" speedinter="3" typeintra="PIX" typeinter="PIX" samechannels="1">
      <channel><net dev="0"/><gpu dev="0"/><gpu dev="0x1"/><net dev="0"/></channel></graph></graphs>`).root;
    expect(reportOf(oneSwitch, 4, graphFile)[0]?.sentences).toEqual([
      'The best path between a GPU and a NIC carries 24 GB/s, and a GPU can move 24 GB/s in all.',
      'The graph file has it, so nothing was searched.',
      'Result: 1 channel of 3 GB/s, GPUs at most PIX apart, NICs PIX.',
    ]);
  });
});
