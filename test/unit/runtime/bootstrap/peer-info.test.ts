import { describe, expect, it } from 'vitest';
import { peersOf, placeOf, nodeOf, ranksOnHost, withHosts } from '../../../../src/runtime/bootstrap/peer-info.js';
import type { Introduction } from '../../../../src/runtime/bootstrap/peer-info.js';
import { InvalidUsageError } from '../../../../src/errors.js';

/** Ranks from `host/device` or `host`. */
const introduce = (...places: string[]): Introduction[] =>
  places.map((place, rank) => {
    const [host = '', device] = place.split('/');
    return {
      rank,
      hostHash: `hash of ${host}`,
      processHash: 'p',
      hostname: host,
      pid: 1,
      version: '1',
      device,
      address: '127.0.0.1:1',
    };
  });

it('ranks without a device get one by their local rank', () => {
  expect(peersOf(introduce('a', 'b', 'a', 'b')).map(({ device }) => device)).toEqual(['cpu:0', 'cpu:0', 'cpu:1', 'cpu:1']);
});

it('a device that another rank names is not given again', () => {
  expect(peersOf(introduce('a', 'a/cpu:0', 'a', 'a/cpu:2')).map(({ device }) => device)).toEqual([
    'cpu:1',
    'cpu:0',
    'cpu:3',
    'cpu:2',
  ]);
});

it('the port of a rank is not part of peer information, its IP address is, for errors', () => {
  const peers = peersOf(introduce('a'));
  expect(JSON.stringify(peers)).not.toContain('127.0.0.1:1');
  expect(placeOf(peers, 0)).toBe('rank 0 on a (127.0.0.1)');
});

it('one device on two hosts is two devices; twice on one host is an error that names the ranks', () => {
  expect(peersOf(introduce('a/gpu:0', 'b/gpu:0')).length).toBe(2);
  const clash = () => peersOf(introduce('a/gpu:0', 'b/gpu:0', 'a/gpu:0', 'b/gpu:1', 'b/gpu:1'));
  expect(clash).toThrow(InvalidUsageError);
  expect(clash).toThrow(
    'ranks 0,2 all use device gpu:0 of host a; ranks 3,4 all use device gpu:1 of host b; each rank needs a device of its own',
  );
});

it('the ranks of a host are those with its hash', () => {
  const peers = peersOf(introduce('a', 'b', 'a', 'c'));
  expect(ranksOnHost(peers, 2)).toEqual([0, 2]);
  expect(ranksOnHost(peers, 3)).toEqual([3]);
});

it('hosts are numbered by their lowest ranks, independent of their names', () => {
  const peers = peersOf(introduce('z', 'a', 'z', 'c'));
  expect(peers.map(({ rank }) => nodeOf(peers, rank))).toEqual([0, 1, 0, 2].map((node) => ({ node, nNodes: 3 })));
});

describe('the hosts of ranks in a text', () => {
  const peers = peersOf(introduce('a', 'a', 'b', 'b', 'c', 'd', 'e', 'f'));
  const where = (text: string, about?: number): string => withHosts(text, peers, about);

  it('are added, ranks of one host together', () => {
    expect(where('rank 4 waits for ranks 0-3')).toBe(
      'rank 4 waits for ranks 0-3; rank 4 is on c (127.0.0.1), ranks 0,1 are on a (127.0.0.1), ranks 2,3 are on b (127.0.0.1)',
    );
    expect(where('no memory', 4)).toBe('no memory; rank 4 is on c (127.0.0.1)');
  });

  it('are not added where the text has them, from this rank or another', () => {
    const process = `rank 4 (process ${peers[4]!.pid} on c)`;
    for (const text of ['rank 4 on c (127.0.0.1) died', `${process} cannot be reached: its host 127.0.0.1 has not answered`])
      expect(where(text, 4)).toBe(text);
    expect(where(`${process} died`)).toBe(`${process} died; rank 4 is on c (127.0.0.1)`);
    for (const text of ['ranks 0,1,4 are late', 'late: ranks 0,2,4-7'].map((said) => where(said)))
      expect(where(`barrier: ${text} (communicator "x")`)).toBe(`barrier: ${text} (communicator "x")`);
  });

  it('are at most four', () => {
    expect(where('late: ranks 0,2,4-7')).toMatch(/rank 5 is on d \(127\.0\.0\.1\), 2 more hosts$/);
  });

  it('are left out on one host, and for ranks that there are not', () => {
    expect(withHosts('rank 1 closed', peersOf(introduce('a', 'a')))).toBe('rank 1 closed');
    const text = 'rank 8 of 9, frank 1, ranks -1, ranks 9-4000000000';
    expect(where(text)).toBe(text);
  });
});
