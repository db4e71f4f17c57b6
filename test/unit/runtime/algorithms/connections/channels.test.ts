import { describe, expect, it } from 'vitest';
import type { Algorithm } from '../../../../../src/runtime/algorithms/call.js';
import { collnetHeads, collnetTrees, headOf } from '../../../../../src/runtime/algorithms/connections/collnet-trees.js';
import { shareTrees } from '../../../../../src/runtime/algorithms/connections/nvls-tree.js';
import { networkMemoryBytes } from '../../../../../src/runtime/algorithms/connections/open-network.js';
import {
  mostNicPairs,
  nicsBetween,
  railTurns,
  ringInOrder,
  type Channels,
  type TreeChannel,
} from '../../../../../src/runtime/algorithms/connections/channels.js';

/** Channels of two hosts with a rank each, whose rings have these NICs, by number. */
function ringsOver(...nicsOfRings: readonly (readonly [number, number])[]): Channels {
  const order = [0, 1];
  const rings = nicsOfRings.map((nics) => ({
    order,
    nics: nics.map((dev, rank) => ({ dev, name: `${rank === 0 ? 'eth' : 'net'}${dev}` })),
  }));
  return { ...ringInOrder([[0], [1]], ''), rings };
}

it('ranks of two hosts have the NICs of the rings between them, in turns in proportion to the rings', () => {
  const even = ringsOver([0, 0], [1, 1], [0, 0], [1, 1]);
  expect(nicsBetween(even, 0, 1)).toEqual({ nics: ['eth0', 'eth1'], turns: [0, 1] });
  expect(nicsBetween(even, 1, 0)).toEqual({ nics: ['net0', 'net1'], turns: [0, 1] });
  const uneven = ringsOver([0, 0], [0, 0], [0, 0], [1, 1]);
  expect(nicsBetween(uneven, 0, 1).turns).toEqual([0, 0, 1, 0]);
  expect([mostNicPairs(even), mostNicPairs(uneven)]).toEqual([2, 2]);
});

it('both ends have as many pairs of NICs where rails cross', () => {
  const crossed = ringsOver([0, 1], [1, 0], [1, 1]);
  expect(nicsBetween(crossed, 0, 1)).toEqual({ nics: ['eth0', 'eth1', 'eth1'], turns: [0, 1, 2] });
  expect(nicsBetween(crossed, 1, 0)).toEqual({ nics: ['net1', 'net0', 'net1'], turns: [0, 1, 2] });
});

it('connections are dealt to rings with different NICs, in proportion to the rings', () => {
  expect(railTurns(ringsOver([0, 0], [0, 0], [1, 1], [1, 1]))).toEqual([0, 2]);
  expect(railTurns(ringsOver([0, 0], [0, 0], [0, 0], [1, 1]))).toEqual([0, 0, 3, 0]);
  expect(railTurns(ringInOrder([[0], [1]], 'no plan'))).toEqual([0]);
});

it('connections over all NICs have shorter slots than connections over one', () => {
  const hosts = Array.from({ length: 16 }, (_, host) => [host]);
  const order = hosts.flat();
  const over = (nNics: number): Channels => ({
    ...ringInOrder(hosts, ''),
    rings: Array.from({ length: nNics }, (_, dev) => ({ order, nics: order.map(() => ({ dev, name: `eth${dev}` })) })),
  });
  const bytes = (algorithm: Algorithm, nNics: number): number =>
    networkMemoryBytes([algorithm], over(nNics), { name: 'socket', sockets: 1 }, 0) -
    networkMemoryBytes([], over(nNics), { name: 'socket', sockets: 1 }, 0);
  expect(bytes('pairs', 8)).toBeLessThan(2 * bytes('pairs', 1));
  // Its slots are not shorter than 32 KiB.
  expect(bytes('hierarchical', 8)).toBeLessThan(5 * bytes('hierarchical', 1));
});

it('rings without NICs give none', () => {
  const unplanned = ringInOrder([[0], [1]], 'no plan');
  expect([nicsBetween(unplanned, 0, 1), mostNicPairs(unplanned)]).toEqual([{ nics: [], turns: [] }, 1]);
});

describe('shares of nvlstree', () => {
  const joined = (trees: readonly TreeChannel[], nRanks: number) =>
    trees.map(({ up, down }) => {
      const seen: number[] = [];
      const visit = (rank: number): void => {
        seen.push(rank);
        for (const child of down[rank]!) {
          expect(up[child]).toBe(rank);
          visit(child);
        }
      };
      visit(up.findIndex((parent) => parent === -1));
      return seen.sort((a, b) => a - b).join() === Array.from({ length: nRanks }, (_, rank) => rank).join();
    });

  it('are trees of all ranks, as many as the smallest host has', () => {
    const channels = ringInOrder(
      [
        [0, 3, 4],
        [1, 2],
        [5, 6, 7, 8],
      ],
      '',
    );
    const trees = shareTrees(channels);
    expect(joined(trees, 9)).toEqual([true, true]);
    expect(trees.map(({ up }) => up)).toEqual([
      [-1, 5, 1, 0, 0, 0, 5, 5, 5],
      [3, 2, -1, 2, 3, 6, 3, 6, 6],
    ]);
  });

  it('have the heads of the plan, in the order of its channels', () => {
    const hosts = [
      [0, 1, 2],
      [3, 4, 5],
    ];
    const trees = shareTrees({ ...ringInOrder(hosts, ''), heads: [[2, 0], [3, 5]] }); // prettier-ignore
    expect(joined(trees, 6)).toEqual([true, true]);
    expect(trees[0]!.up[2]).toBe(-1);
    expect(trees[0]!.up[3]).toBe(2);
    expect(trees[1]!.up[0]).toBe(5);
  });

  it('are of single ranks where these share no memory', () => {
    const trees = shareTrees({ ...ringInOrder([[0, 1, 2]], ''), teams: [[0], [1], [2]], heads: [[0, 1]] });
    expect(joined(trees, 3)).toEqual([true]);
  });
});

describe('shares of collnet', () => {
  const hosts = [
    [0, 3, 4],
    [1, 2],
  ];
  const unplanned: Channels = { ...ringInOrder(hosts, ''), aggregators: ['a:1', 'b:2'] };
  const planned: Channels = {
    ...unplanned,
    collnet: {
      heads: [[4], [1]],
      chains: [
        [
          [3, 0, 4],
          [0, 4, 3],
        ],
        [
          [2, 1],
          [2, 1],
        ],
      ],
    },
  };

  it('have every rank of the smallest host as a head without a plan, and aggregators in turn above them', () => {
    const [first, second, ...more] = collnetTrees(unplanned, 'direct');
    expect(more).toEqual([]);
    expect(first).toEqual({ up: [5, 5, 1, 0, 0], down: [[3, 4], [2], [], [], []] });
    expect(second).toEqual({ up: [3, 2, 6, 6, 3], down: [[], [], [1], [4, 0], []] });
    expect(collnetHeads(unplanned, 'collnet')).toEqual([[0, 1], [2, 3]]); // prettier-ignore
  });

  it('have the heads and the chains of the plan', () => {
    expect(collnetTrees(planned, 'direct')).toEqual([{ up: [4, 5, 1, 4, 5], down: [[], [2], [], [], [0, 3]] }]);
    const [first, second] = collnetTrees(planned, 'chain');
    expect(first).toEqual({ up: [3, 2, 5, 5, 0], down: [[4], [], [1], [0], []] });
    expect(second).toEqual({ up: [6, 2, 6, 4, 0], down: [[4], [], [1], [], [3]] });
  });

  it('are added in the order of the hosts', () => {
    expect(headOf(planned, 1, 5, 'tree 0', 'collnet')).toEqual({ aggregator: 0, share: 'collnet tree 0', member: 1, members: 2 });
  });

  it('treat ranks that share no memory as hosts', () => {
    const alone = { ...planned, teams: [[0], [3], [4], [1], [2]] };
    expect(collnetTrees(alone, 'direct')).toEqual([{ up: [5, 5, 5, 5, 5], down: [[], [], [], [], []] }]);
  });
});
