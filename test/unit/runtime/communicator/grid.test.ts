import { expect, test } from 'vitest';
import { Grid } from '../../../../src/runtime/communicator/grid.js';

/** Its declaration hides the constructor from programs. */
const OpenGrid = Grid as unknown as new (member: object, dimensions: readonly number[], options?: object) => Grid;

const member = { rank: 0, nRanks: 4, addMessage: () => undefined };
const grid = new OpenGrid(member, [2, 2], { periodic: true });
/** As JavaScript programs call it. */
const wrong = (value: unknown): never => value as never;
const x = new Float64Array(1);

test.each<[string, () => unknown, string, string]>([
  ['a dimension', () => grid.neighbours(2), 'ARGUMENT_RANGE', 'neighbours: there is no dimension 2; dimensions go from 0 to 1'],
  [
    'coordinates that are too few',
    () => grid.rankAt([1]),
    'ARGUMENT_RANGE',
    'rankAt: pass an array with a whole number for each of 2 dimensions, not [1]',
  ],
  [
    'coordinates that are no array',
    () => grid.rankAt(wrong(1)),
    'ARGUMENT_RANGE',
    'rankAt: pass an array with a whole number for each of 2 dimensions, not 1',
  ],
  ['a rank', () => grid.coordinatesOf(4), 'ARGUMENT_RANGE', 'coordinatesOf: there is no rank 4; ranks go from 0 to 3'],
  [
    'a rank of another kind',
    () => grid.coordinatesOf(wrong([1, 1])),
    'ARGUMENT_RANGE',
    'coordinatesOf: a rank is a whole number from 0 to 3, not an object of class Array',
  ],
  [
    'numbers for periodic',
    () => new OpenGrid(member, [2, 2], { periodic: wrong([1, 0]) }),
    'ARGUMENT_TYPE',
    'grid: periodic is true or false, or an array of these, not 1',
  ],
])('a grid refuses %s', (_, act, code, message) => {
  expect(act).toThrow(expect.objectContaining({ code, message }));
});

test.each<[string, never, string]>([
  [
    'borders of more dimensions',
    wrong([undefined, undefined, {}]),
    'exchange: there are borders for 3 dimensions, but the grid has 2; pass one entry a dimension',
  ],
  [
    'a border of another name',
    wrong([{ sendLow: x, recvhigh: x }]),
    'exchange: there is no option "recvhigh"; did you mean recvHigh?; there are sendLow, sendHigh, recvLow, recvHigh',
  ],
])('an exchange refuses %s', async (_, halos, message) => {
  await expect(grid.exchange(halos)).rejects.toThrow(expect.objectContaining({ message }));
});
