import { expect, it } from 'vitest';
import { peersOf, placeOf, nodeOf, ranksOnHost } from '../../../../src/runtime/bootstrap/peer-info.js';
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
