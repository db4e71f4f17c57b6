import { expect, it } from 'vitest';
import { mostNicPairs, nicsBetween, ringInOrder, type Channels } from '../../../../src/runtime/algorithms/channels.js';

/** Channels of two hosts with a rank each, whose rings have these NICs, by number. */
function ringsOver(...nicsOfRings: readonly (readonly [number, number])[]): Channels {
  const order = [0, 1];
  const rings = nicsOfRings.map((nics) => ({
    order,
    nics: nics.map((dev, rank) => ({ dev, name: `${rank === 0 ? 'eth' : 'net'}${dev}` })),
  }));
  return { ...ringInOrder([[0], [1]], ''), rings };
}

it('ranks of two hosts have the NICs of the rings between them, in turns like the number of rings', () => {
  const even = ringsOver([0, 0], [1, 1], [0, 0], [1, 1]);
  expect(nicsBetween(even, 0, 1)).toEqual({ nics: ['eth0', 'eth1'], turns: [0, 1, 0, 1] });
  expect(nicsBetween(even, 1, 0)).toEqual({ nics: ['net0', 'net1'], turns: [0, 1, 0, 1] });
  const uneven = ringsOver([0, 0], [0, 0], [0, 0], [1, 1]);
  expect(nicsBetween(uneven, 0, 1).turns).toEqual([0, 0, 1, 0]);
  expect([mostNicPairs(even), mostNicPairs(uneven)]).toEqual([2, 2]);
});

it('both ends have as many pairs of NICs where rails cross', () => {
  const crossed = ringsOver([0, 1], [1, 0], [1, 1]);
  expect(nicsBetween(crossed, 0, 1)).toEqual({ nics: ['eth0', 'eth1', 'eth1'], turns: [0, 1, 2] });
  expect(nicsBetween(crossed, 1, 0)).toEqual({ nics: ['net1', 'net0', 'net1'], turns: [0, 1, 2] });
});

it('rings without NICs give none', () => {
  const unplanned = ringInOrder([[0], [1]], 'no plan');
  expect([nicsBetween(unplanned, 0, 1), mostNicPairs(unplanned)]).toEqual([{ nics: [], turns: [] }, 1]);
});
