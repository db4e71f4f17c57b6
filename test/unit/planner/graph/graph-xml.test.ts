import { describe, expect, it } from 'vitest';
import { CrossNic, GraphId, Pattern } from '../../../../src/planner/graph/graph.js';
import { givenGraph, graphsToXml } from '../../../../src/planner/graph/graph-xml.js';
import { searchHost } from '../../../../src/planner/graph/search-host.js';
import { findMachine } from '../../../../src/planner/topology/catalogue/machines.js';
import { PathType } from '../../../../src/planner/topology/types.js';
import { parseXml } from '../../../../src/planner/topology/xml/parse.js';
import { writeXml } from '../../../../src/planner/topology/xml/write.js';
import { inputError } from '../topology/input-error.js';
import { cpu, gpu, nic, onlyLocalSystem, parametersWith, pciSwitch, systemXml } from '../topology/machine.js';

const parameters = parametersWith({});
const twoGpus = onlyLocalSystem(systemXml(cpu(0, pciSwitch('01', gpu('02', 0) + gpu('03', 1) + nic('04', 0)))), parameters, 4);

/** A graph file with one channel of that content. */
function file(channel: string, attributes = 'nchannels="1"', id: number = GraphId.RING): string {
  return `<graphs version="1">
<graph id="${id}" pattern="4" crossnic="0" ${attributes} speedintra="12" speedinter="6" latencyinter="0" typeintra="PIX" typeinter="PHB" samechannels="1">
<channel>${channel}</channel>
</graph>
</graphs>`;
}

const good = '<net dev="0"/><gpu dev="0x1"/><gpu dev="0"/><net dev="0"/>';

function read(text: string, id: GraphId = GraphId.RING, crossNic = 2) {
  return givenGraph(parseXml(text).root, id, twoGpus, crossNic);
}

describe('a graph file', () => {
  it('gives channels by dev or by rank', () => {
    const expected = {
      pattern: Pattern.RING,
      crossNic: CrossNic.NEVER,
      nChannels: 1,
      bwIntra: 12,
      bwInter: 6,
      typeIntra: PathType.PIX,
      typeInter: PathType.PHB,
      sameChannels: true,
      intra: Int32Array.of(1, 0),
      inter: BigInt64Array.of(0n, 0n),
    };
    expect(read(file(good))).toMatchObject(expected);
    expect(read(file('<net dev="0"/><gpu dev="0x77" rank="1"/><gpu dev="0x78" rank="0"/><net dev="0"/>'))).toMatchObject(
      expected,
    );
  });

  it('without channels may have speeds of 0 and types that NCCL cannot read, as dumps do', () => {
    const empty = file('', 'nchannels="0"').replace('"12"', '"0"').replace('"PHB"', '"C2C"');
    expect(read(empty)).toMatchObject({ nChannels: 0, bwIntra: 0, typeInter: PathType.LOC });
  });

  it('is not used where it has no graph of that id', () => {
    expect(read(file(good), GraphId.TREE)).toBeUndefined();
  });

  it('may not cross NICs with NCCL_CROSS_NIC=0', () => {
    const crossing = file(good).replace('crossnic="0"', 'crossnic="1"');
    expect(read(crossing, GraphId.RING, 0)).toBeUndefined();
    expect(read(crossing)?.crossNic).toBe(CrossNic.ALLOWED);
  });

  it('replaces the search for the graphs that it has, and only for these', () => {
    const graphFile = parseXml(file(good)).root;
    const { ring, tree } = searchHost(twoGpus, parameters, { graphFile });
    expect(ring).toMatchObject({ nChannels: 1, bwInter: 6, nHops: 0 });
    expect(tree).toMatchObject({ nChannels: 1, bwInter: 15 });
  });

  it('without channels gives the first settings of the search', () => {
    const graphFile = parseXml(file('', 'nchannels="0"')).root;
    const { ring } = searchHost(twoGpus, parameters, { graphFile });
    // The search would have found PIX; but it began at PHB.
    expect(ring).toMatchObject({ nChannels: 1, bwInter: 24, typeInter: PathType.PHB });
  });

  it('that was written is read back unchanged', () => {
    for (const name of ['dgx-h100', 'dgx-a100']) {
      const local = onlyLocalSystem(findMachine(name)!.build(), parameters, 16);
      const graphs = searchHost(local, parameters);
      const graphFile = parseXml(writeXml(graphsToXml(graphs, local))).root;
      const again = searchHost(local, parameters, { graphFile });
      for (const graph of ['ring', 'tree'] as const) {
        expect(again[graph]).toEqual({
          ...graphs[graph],
          nHops: 0,
          minChannels: again[graph].minChannels,
          maxChannels: again[graph].maxChannels,
        });
      }
    }
  });
});

describe('an invalid graph file', () => {
  it.each([
    [
      'more GPUs than the machine',
      file(good.replace('<gpu dev="0"/>', '<gpu dev="0"/><gpu dev="0x2"/>')),
      3,
      '<channel> (line 3): 3 <gpu> in it, but the machine has 2: NCCL would write over the next channel',
    ],
    [
      'a rank twice',
      file(good.replace('dev="0x1"', 'dev="0"')),
      3,
      '<gpu dev="0"> (line 3): rank 0 is in the channel twice: NCCL would fail when it connects the ring',
    ],
    [
      'a rank missing',
      file('<net dev="0"/><gpu dev="0x1"/><net dev="0"/>'),
      3,
      '<channel> (line 3): rank 0 is not in it: NCCL would take rank 0 instead and fail when it connects the ring',
    ],
    [
      'a GPU that is not there',
      file(good.replace('0x1', '0x8')),
      2,
      '<gpu dev="0x8"> (line 3): the machine has no GPU with dev 0x8, and NCCL fails with a system error',
    ],
    [
      'a rank that is not there',
      file(good.replace('dev="0x1"', 'dev="0x1" rank="5"')),
      3,
      '<gpu dev="0x1"> (line 3): the machine has no rank 5, only 0, 1: NCCL would fail when it connects the ring',
    ],
    [
      'a NIC that is not there',
      file(good.replace('net dev="0"', 'net dev="0x3"')),
      3,
      '<net dev="0x3"> (line 3): the machine has no NET/0-3, only NET/0-0: NCCL would fail when it connects the channel',
    ],
    [
      'a channel without a way out',
      file('<net dev="0"/><gpu dev="0x1"/><gpu dev="0"/>'),
      3,
      '<channel> (line 3): 1 <net> in it, but a channel between hosts has two, where it comes in and where it goes out: NCCL would take NET/0-0 for what is missing',
    ],
    [
      'a channel with three ends',
      file(`${good}<net dev="0"/>`),
      3,
      '<channel> (line 3): 3 <net> in it, but a channel between hosts has two, where it comes in and where it goes out: NCCL would write over the next channel',
    ],
    [
      'fewer channels than it says',
      file(good, 'nchannels="2"'),
      3,
      '<graph> (line 2): nchannels="2", but there are 1 <channel> in it: NCCL would fill the rest with rank 0',
    ],
    ['too many channels', file(good, 'nchannels="65"'), 3, '<graph> (line 2): nchannels="65" is not 0 to 64'],
    [
      'an unknown pattern',
      file(good).replace('pattern="4"', 'pattern="9"'),
      3,
      '<graph> (line 2): pattern="9" is none of 1, 2, 3, 4, 5, 6',
    ],
    [
      'a missing attribute',
      file(good).replace(' speedintra="12"', ''),
      3,
      '<graph> (line 2): attribute speedintra is missing, and NCCL needs it; add it, or leave the element out',
    ],
    [
      'a speed that is no number',
      file(good).replace('"12"', '"fast"'),
      3,
      '<graph> (line 2): speedintra="fast" is no number of GB/s above 0: NCCL would take its channels to move 0 GB/s, and its model of time would be wrong',
    ],
    [
      'a speed below 0',
      file(good).replace('speedinter="6"', 'speedinter="-6"'),
      3,
      '<graph> (line 2): speedinter="-6" is no number of GB/s above 0: NCCL would take its channels to move -6 GB/s, and its model of time would be wrong',
    ],
    [
      'a type that is none',
      file(good).replace('"PHB"', '"PBH"'),
      3,
      '<graph> (line 2): typeinter="PBH" is no path type, and NCCL would take it for LOC: write one of LOC, NVL, NVB, PIX, PXB, P2C, PXN, PHB, SYS',
    ],
    ['no GPU', file('<net dev="0"/><net dev="0"/>'), 3, '<channel> (line 3): no <gpu> in it: NCCL would take rank 0 everywhere'],
    [
      'another version',
      file(good).replace('version="1"', 'version="2"'),
      5,
      '<graphs> (line 1): version 2 is not 1, the only one that NCCL reads',
    ],
    [
      'a topology',
      '<system version="1"/>',
      5,
      '<system> (line 1): a graph file begins with <graphs version="1">; NCCL would find no graph in this and search on its own',
    ],
  ])('%s', (_, text, ncclResult, message) => {
    const error = inputError(() => read(text));
    expect(error.message).toBe(message);
    expect(error.ncclResult).toBe(ncclResult);
  });
});
