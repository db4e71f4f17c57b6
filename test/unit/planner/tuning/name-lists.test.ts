import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InvalidUsageError } from '../../../../src/errors.js';
import { readNameList } from '../../../../src/planner/tuning/name-lists.js';
import { algorithms, type Collective, collectives, protocols } from '../../../../src/planner/tuning/names.js';

const algorithmsOf = (text: string | undefined) => readNameList('NCCL_ALGO', text, algorithms);
const protocolsOf = (text: string | undefined) => readNameList('NCCL_PROTO', text, protocols);

const on = (asked: Readonly<Record<string, string>>) => Object.keys(asked).filter((name) => asked[name] === 'on');

describe('NCCL_ALGO and NCCL_PROTO', () => {
  it('have no effect when unset or empty', () => {
    for (const text of [undefined, '', ';;']) {
      for (const collective of collectives)
        expect(protocolsOf(text)[collective]).toEqual({ LL: 'unset', LL128: 'unset', Simple: 'unset' });
    }
  });

  it('without a collective apply to all, in upper or lower case', () => {
    const asked = algorithmsOf('RING,nvlstree');
    for (const collective of collectives) expect(on(asked[collective])).toEqual(['Ring', 'NVLSTree']);
  });

  it('with ^ exclude the names', () => {
    expect(protocolsOf('^LL128').AllReduce).toEqual({ LL: 'on', LL128: 'off', Simple: 'on' });
    expect(protocolsOf('^').AllReduce).toEqual({ LL: 'on', LL128: 'on', Simple: 'on' });
  });

  it.each<[string, Partial<Record<Collective, string[]>>]>([
    ['allreduce:tree;broadcast:ring', { AllReduce: ['Tree'], Broadcast: ['Ring'], Reduce: [] }],
    ['Ring;allreduce:Tree', { AllReduce: ['Tree'], Reduce: ['Ring'], AllGather: ['Ring'] }],
    [
      'ring,collnetdirect;allreduce:^ring,tree',
      { AllReduce: ['CollNetDirect', 'CollNetChain', 'NVLS', 'NVLSTree', 'PAT'], Reduce: ['Ring', 'CollNetDirect'] },
    ],
    ['allreduce:tree;allreduce:ring', { AllReduce: ['Ring'] }],
    ['allgather:pat:ring', { AllGather: ['PAT'] }],
    [':ring', { AllReduce: ['Ring'] }],
  ])('%s: a later entry replaces an earlier one for its collective', (text, expected) => {
    const asked = algorithmsOf(text);
    for (const [collective, names] of Object.entries(expected)) expect(on(asked[collective as Collective])).toEqual(names);
  });

  it.each([
    ['nonsense', 'NCCL_ALGO=nonsense: no nonsense (there are Tree, Ring,'],
    ['rign', 'NCCL_ALGO=rign: no rign; did you mean Ring?'],
    ['ring;alreduce:tree', 'NCCL_ALGO=ring;alreduce:tree: no collective alreduce; did you mean AllReduce?'],
    ['ring;tree', 'NCCL_ALGO=ring;tree: only the first entry may leave out the collective; write for example allreduce:tree'],
    [';ring', 'only the first entry may leave out the collective'],
    ['ring, tree', 'NCCL_ALGO=ring, tree: no  tree; did you mean Tree?'],
    ['allreduce:', 'no allreduce'],
    [':', 'an entry has nothing but colons'],
  ])('%s is refused', (text, message) => {
    expect(() => algorithmsOf(text)).toThrow(InvalidUsageError);
    expect(() => algorithmsOf(text)).toThrow(message);
  });

  it('a list and its opposite together have every name once', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.constantFrom(...algorithms), { minLength: 1 }),
        fc.constantFrom(...collectives),
        (names, collective) => {
          const list = on(algorithmsOf(`${collective}:${names.join(',')}`)[collective]);
          const opposite = on(algorithmsOf(`${collective}:^${names.join(',')}`)[collective]);
          expect([...list, ...opposite].sort()).toEqual([...algorithms].sort());
          expect(list.sort()).toEqual([...names].sort());
        },
      ),
    );
  });
});
