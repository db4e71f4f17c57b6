import { describeError } from '../../../../src/errors.js';
import { describe, expect, it } from 'vitest';
import { parseHostFile, parseHostList, placeRanks } from '../../../../src/runtime/launch/hosts/host-list.js';

const placed = (list: string, nRanks?: number) =>
  placeRanks(parseHostList(list), nRanks).map(({ host, ranks }) => [host.name, ranks.first, ranks.count]);

describe('a list of hosts', () => {
  it.each([
    [
      'a:4,b:4',
      [
        ['a', 4],
        ['b', 4],
      ],
    ],
    ['a', [['a', undefined]]],
    [
      ' me@a:2 , [fd00::1]:3,[fe80::1%eth0]',
      [
        ['me@a', 2],
        ['fd00::1', 3],
        ['fe80::1%eth0', undefined],
      ],
    ],
    [
      '10.0.0.1:1,node-7.cluster_x.example',
      [
        ['10.0.0.1', 1],
        ['node-7.cluster_x.example', undefined],
      ],
    ],
    [
      'a:2,b,a:1,b',
      [
        ['a', 3],
        ['b', 2],
      ],
    ],
  ])('%s', (text, expected) => {
    expect(parseHostList(text).map(({ name, slots }) => [name, slots])).toEqual(expected);
  });

  it.each([
    '',
    'a,,b',
    'a:',
    'a:x',
    'a:-1',
    'a:99999',
    'a b',
    '-oProxyCommand=x',
    '-l@a',
    '@a',
    'fd00::1',
    'a:1:2',
    'a;b',
    "a'b",
    '[a]:1',
    'me@',
  ])('refuses %j', (text) => {
    expect(() => parseHostList(text)).toThrow(/is no host|has an empty name/);
  });
});

describe('a host file', () => {
  it('of Open MPI', () => {
    const text = '# nodes\nnode0 slots=4 max_slots=8\nnode1 slots = 2 # small\n\nnode2 count=1 user=me\nme@node3\n';
    expect(parseHostFile(text, 'f')).toEqual([
      { name: 'node0', slots: 4 },
      { name: 'node1', slots: 2 },
      { name: 'me@node2', slots: 1 },
      { name: 'me@node3', slots: undefined },
    ]);
  });

  it('of MPICH', () => {
    expect(parseHostFile('node0:4 ifname=eth1\r\nnode1:2 binding=user:0\r\n', 'f')).toEqual([
      { name: 'node0', slots: 4, interfaceName: 'eth1' },
      { name: 'node1', slots: 2 },
    ]);
  });

  it('with a line for each rank, as of PBS', () => {
    expect(parseHostFile('n0\nn0\nn1\n', 'f')).toEqual([
      { name: 'n0', slots: 2 },
      { name: 'n1', slots: undefined },
    ]);
  });

  it.each([
    ['node0\nnode1 slot=4\n', /^f:2: "slot=4" has no meaning in a host file.*did you mean slots\?$/],
    ['node0 slots=x', /^f:1: "slots=x" is not a number of ranks/],
    ['a b', /^f:1: "b" has no meaning/],
    ['node0:x', /^f:1: "node0:x" is no host/],
    ['node0 user=-oProxyCommand=x', /^f:1: "user=-oProxyCommand=x" is no user/],
    ['# none\n', /^f: names no host/],
  ])('refuses %j', (text, message) => {
    let said = '';
    try {
      parseHostFile(text, 'f');
    } catch (error) {
      said = describeError(error);
    }
    expect(said).toMatch(message);
  });
});

describe('ranks', () => {
  it('fill hosts in their order', () => {
    expect(placed('a:3,b:1')).toEqual([
      ['a', 0, 3],
      ['b', 3, 1],
    ]);
    expect(placed('a:3,b:2', 4)).toEqual([
      ['a', 0, 3],
      ['b', 3, 1],
    ]);
    expect(placed('a:3,b:2', 2)).toEqual([['a', 0, 2]]);
    expect(placed('a:0,b:2')).toEqual([['b', 0, 2]]);
    expect(placed('a:2,b')).toEqual([
      ['a', 0, 2],
      ['b', 2, 1],
    ]);
  });

  it('are shared by hosts without numbers', () => {
    expect(placed('a,b')).toEqual([
      ['a', 0, 1],
      ['b', 1, 1],
    ]);
    expect(placed('a,b,c', 8)).toEqual([
      ['a', 0, 3],
      ['b', 3, 3],
      ['c', 6, 2],
    ]);
    expect(placed('a,b', 1)).toEqual([['a', 0, 1]]);
  });

  it('that do not fit are refused', () => {
    expect(() => placed('a:2,b:1', 4)).toThrow('4 ranks do not fit on the hosts, which take 3: raise their numbers (a:3)');
    expect(() => placed('a:0')).toThrow('the hosts take no rank');
  });
});
