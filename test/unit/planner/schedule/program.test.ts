import { describe, expect, it } from 'vitest';
import {
  defaultParameters,
  machine,
  prepareCluster,
  type Program,
  readMscclXml,
  schedule,
  simulatorOf,
  verifySchedule,
} from '../../../../src/planner/index.js';

/** A ring that all-reduces in place, in MSCCL's XML: `instances` channels. */
function ringXml(nRanks: number, instances: number, proto: string): string {
  const chunks = nRanks * instances;
  const gpus = Array.from({ length: nRanks }, (_, rank) => {
    const blocks = Array.from({ length: instances }, (_unused, channel) => {
      const types = ['s', ...Array<string>(nRanks - 2).fill('rrs'), 'rrcs', ...Array<string>(nRanks - 2).fill('rcs'), 'r'];
      const steps = types.map((type, step) => {
        const offset = ((((rank - step) % nRanks) + nRanks) % nRanks) * instances + channel;
        return `<step s="${step}" type="${type}" srcbuf="i" srcoff="${offset}" dstbuf="o" dstoff="${offset}" cnt="1" depid="-1" deps="-1" hasdep="0"/>`;
      });
      return `<tb id="${channel}" send="${(rank + 1) % nRanks}" recv="${(rank + nRanks - 1) % nRanks}" chan="${channel}">\n${steps.join('\n')}\n</tb>`;
    });
    return `<gpu id="${rank}" i_chunks="${chunks}" o_chunks="${chunks}" s_chunks="0">\n${blocks.join('\n')}\n</gpu>`;
  });
  return `<algo name="ring" nchunksperloop="${chunks}" nchannels="${instances}" proto="${proto}" ngpus="${nRanks}" coll="allreduce" inplace="1">\n${gpus.join('\n')}\n</algo>`;
}

/** All-reduce of two ranks by way of scratch space: a block receives, another waits for it and adds. */
const pairs: Program = {
  name: 'pair',
  collective: 'AllReduce',
  nRanks: 2,
  chunks: 2,
  protocol: 'LL',
  isInPlace: false,
  ranks: [0, 1].map((rank) => ({
    scratchChunks: 2,
    blocks: [
      {
        channel: 0,
        sendTo: 1 - rank,
        receiveFrom: 1 - rank,
        steps: [
          { kind: 'send', from: { buffer: 'input', chunk: 0 }, count: 2 },
          { kind: 'receive', to: { buffer: 'scratch', chunk: 0 }, count: 2 },
        ],
      },
      {
        channel: 1,
        steps: [
          { kind: 'copy', from: { buffer: 'input', chunk: 0 }, to: { buffer: 'output', chunk: 0 }, count: 2 },
          {
            kind: 'add',
            from: { buffer: 'scratch', chunk: 0 },
            to: { buffer: 'output', chunk: 0 },
            count: 2,
            after: [{ block: 0, step: 1 }],
          },
        ],
      },
    ],
  })),
};

describe('a program of the caller', () => {
  it('is right at any size, with scratch space and blocks that wait for each other', () => {
    for (const bytes of [2, 64, 32_768, 100_000]) expect(verifySchedule(schedule(pairs, bytes), 2)).toBeUndefined();
  });

  it('is a fault if it does not wait for the data that it adds', () => {
    const [first, second] = pairs.ranks[0]?.blocks ?? [];
    const hasty = { ...second, channel: 1, steps: (second?.steps ?? []).map((step) => ({ ...step, after: [] })) };
    const blocks = first === undefined ? [] : [hasty, first];
    const ranks = pairs.ranks.map(({ scratchChunks }, rank) => ({
      scratchChunks,
      blocks: blocks.map((block) => ({ ...block, ...(block === hasty ? {} : { sendTo: 1 - rank, receiveFrom: 1 - rank }) })),
    }));
    expect(verifySchedule(schedule({ ...pairs, ranks }, 64), 2)).toMatch(/reads byte 0 of the scratch before it is written/);
  });

  it('is a deadlock if blocks wait for each other in a circle', () => {
    const ranks = pairs.ranks.map(({ scratchChunks, blocks: [first, second] }) => ({
      scratchChunks,
      blocks: [
        { ...first, channel: 0, steps: (first?.steps ?? []).map((step) => ({ ...step, after: [{ block: 1, step: 1 }] })) },
        { ...second, channel: 1, steps: second?.steps ?? [] },
      ],
    }));
    expect(verifySchedule(schedule({ ...pairs, ranks }, 64), 2)).toMatch(
      /^deadlock: rank 0, thread block 0 waits in step 0 \(send\) for thread block 1, step 1;/,
    );
  });

  it.each([
    ['a rank too few', { ...pairs, nRanks: 3 }, /is for 3 ranks and has 2/],
    [
      'chunks that there are not',
      { ...pairs, chunks: 1 },
      /rank 0, thread block 0, step 0 \(send\): chunks 0 to 1 of the input, which has 1/,
    ],
    [
      'a send to nobody',
      {
        ...pairs,
        ranks: pairs.ranks.map((rank) => ({
          ...rank,
          blocks: rank.blocks.map(({ channel, steps }) => ({ channel, steps, receiveFrom: 0 })),
        })),
      },
      /step 0 \(send\): the block has no rank that it sends to/,
    ],
    [
      'a peer that is itself',
      {
        ...pairs,
        ranks: pairs.ranks.map((rank, me) => ({ ...rank, blocks: rank.blocks.map((block) => ({ ...block, sendTo: me })) })),
      },
      /rank 0 has the peer 0: itself/,
    ],
  ])('%s is refused', (_, program, message) => {
    expect(() => schedule(program, 64)).toThrow(message);
  });
});

describe('XML of MSCCL', () => {
  it.each([
    [2, 1],
    [4, 3],
    [8, 2],
  ])('a ring of %i ranks on %i channels is right in place, with four messages a connection', (nRanks, instances) => {
    const made = schedule(readMscclXml(ringXml(nRanks, instances, 'Simple')), nRanks * instances * 16);
    expect(verifySchedule(made, 4)).toBeUndefined();
  });

  it('a ring takes as long as NCCL’s own one', () => {
    const simulator = simulatorOf(
      prepareCluster({ hosts: [{ machine: machine('dgx-a100'), count: 1 }] }, defaultParameters),
      defaultParameters,
    );
    const bytes = 24 * 8 * 2 ** 19;
    const own = schedule(readMscclXml(ringXml(8, 24, 'Simple')), bytes);
    const ours = simulator.simulateSchedule(own, 'Simple');
    const theirs = simulator.simulate('AllReduce', bytes);
    expect(theirs?.choice).toMatchObject({ algorithm: 'Ring', protocol: 'Simple', nChannels: 24 });
    expect(ours / (theirs?.timeUs ?? 0)).toBeGreaterThan(0.9);
    expect(ours / (theirs?.timeUs ?? 0)).toBeLessThan(1.1);
  });

  it('steps that only wait are joined with the next one, and dependencies keep the numbers of the file', () => {
    const xml = ringXml(2, 1, 'LL').replace(
      /<\/tb>\n<\/gpu>/,
      '</tb>\n<tb id="1" send="-1" recv="-1" chan="0"><step s="0" type="nop" srcbuf="i" srcoff="-1" dstbuf="o" dstoff="-1" cnt="0" depid="0" deps="1" hasdep="0"/><step s="1" type="cpy" srcbuf="i" srcoff="0" dstbuf="s" dstoff="0" cnt="1" depid="0" deps="2" hasdep="0"/></tb>\n</gpu>',
    );
    const program = readMscclXml(xml.replace('s_chunks="0"', 's_chunks="1"'));
    expect(program.ranks[0]?.blocks[1]?.steps).toEqual([
      {
        kind: 'copy',
        id: 1,
        from: { buffer: 'input', chunk: 0 },
        to: { buffer: 'scratch', chunk: 0 },
        count: 1,
        after: [
          { block: 0, step: 1 },
          { block: 0, step: 2 },
        ],
      },
    ]);
  });

  const good = ringXml(2, 1, 'Simple');
  it.each([
    ['no XML', 'hello', 1, /no XML/],
    ['XML that breaks off', good.slice(0, 200), 4, /no XML/],
    ['another root', '<system/>', 1, /<system> where an MSCCL algorithm has <algo>/],
    ['a collective without a promise', good.replace('"allreduce"', '"custom"'), 1, /coll="custom" defines no result/],
    ['a protocol that there is not', good.replace('"Simple"', '"simple"'), 1, /proto="simple" is none of LL, LL128, Simple/],
    ['a gpu twice', good.replace('gpu id="1"', 'gpu id="0"'), 9, /gpu 0 is there twice/],
    ['a gpu missing', good.replace('ngpus="2"', 'ngpus="3"'), 1, /gpu 2 of 3 is missing/],
    ['a step of no kind', good.replace('type="rrcs"', 'type="rrx"'), 5, /^gpu 0, tb 0, step 1: type="rrx" is none of/],
    [
      'a buffer that there is not',
      good.replace('srcbuf="i"', 'srcbuf="x"'),
      4,
      /^gpu 0, tb 0, step 0: srcbuf="x" is none of i, o, s/,
    ],
    ['a step without its count', good.replace(' cnt="1"', ''), 4, /<step> has no cnt/],
    [
      'a dependency on nothing',
      good.replace('depid="-1" deps="-1"', 'depid="7" deps="0"'),
      4,
      /step 0 of tb 7, which is not there/,
    ],
  ])('%s is refused with its line', (_, text, line, message) => {
    expect(() => readMscclXml(text)).toThrow(message);
    expect(() => readMscclXml(text)).toThrow(expect.objectContaining({ line }) as Error);
  });
});
