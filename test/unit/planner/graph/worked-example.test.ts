import { describe, expect, it } from 'vitest';
import { ringFrom, ringNeighbours } from '../../../../src/planner/graph/merge/links.js';
import { mergeHosts } from '../../../../src/planner/graph/merge/merge.js';
import { defaultParameters } from '../../../../src/planner/parameters.js';
import { host } from './made-hosts.js';
import { ringNeighbourLines } from './nccl-lines.js';

/**
 * The example that descriptions of NCCL work out: two hosts of eight. Ranks of a graph count within the host, so the
 * second host's 10 9 8 13 12 15 14 11 is 2 1 0 5 4 7 6 3.
 */
describe('two hosts of eight, with rings 0 7 6 3 2 5 4 1 and 10 9 8 13 12 15 14 11', () => {
  const merged = mergeHosts(
    [
      { host: host([[0, 7, 6, 3, 2, 5, 4, 1]]), count: 1 },
      { host: host([[2, 1, 0, 5, 4, 7, 6, 3]]), count: 1 },
    ],
    defaultParameters,
  );

  it('rank 6 has the ring 6 3 2 5 4 1 10 9 8 13 12 15 14 11 0 7', () => {
    expect([...ringFrom(merged, 0, 6)]).toEqual([6, 3, 2, 5, 4, 1, 10, 9, 8, 13, 12, 15, 14, 11, 0, 7]);
  });

  it("within a host a rank has the neighbours of its host's graph", () => {
    expect(ringNeighbours(merged, 0, 6)).toEqual({ prev: 7, next: 3 });
  });

  it('the last rank of each host sends to the first of the other', () => {
    expect([1, 10, 11, 0].map((rank) => ringNeighbourLines(merged, rank)[0])).toEqual([
      'Ring 00 : 4 -> 1 -> 10',
      'Ring 00 : 1 -> 10 -> 9',
      'Ring 00 : 14 -> 11 -> 0',
      'Ring 00 : 11 -> 0 -> 7',
    ]);
  });
});
