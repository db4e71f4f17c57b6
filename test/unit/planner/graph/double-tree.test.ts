import { describe, expect, it } from 'vitest';
import { doubleTree } from '../../../../src/planner/graph/merge/double-tree.js';

const trees = (count: number) =>
  ([0, 1] as const).map((tree) => Array.from({ length: count }, (_, node) => doubleTree(count, node)[tree]));

describe('the double binary tree', () => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 33, 100])(
    'of %i nodes: both trees hold every node, and parents and children name each other',
    (count) => {
      for (const places of trees(count)) {
        expect(places.filter(({ parent }) => parent === -1)).toHaveLength(1);
        places.forEach(({ parent, slot, children }, node) => {
          if (parent >= 0) expect(places[parent]?.children[slot]).toBe(node);
          for (const child of children) if (child >= 0) expect(places[child]?.parent).toBe(node);
          let root = node;
          let depth = 0;
          while ((places[root]?.parent ?? -1) >= 0 && depth <= count) {
            root = places[root]?.parent ?? -1;
            depth++;
          }
          expect(depth).toBeLessThanOrEqual(Math.ceil(Math.log2(count)));
        });
      }
    },
  );

  it.each([4, 6, 16, 100])('of %i nodes: a leaf of one tree forwards in the other', (count) => {
    const [first, second] = trees(count);
    for (let node = 0; node < count; node++) {
      const isLeaf = [first, second].map((places) => places?.[node]?.children.every((child) => child === -1) === true);
      expect(isLeaf.filter(Boolean)).toHaveLength(1);
    }
  });

  it('has the shapes of its drawing', () => {
    const [first, shifted] = trees(7);
    expect(first?.map(({ parent }) => parent)).toEqual([-1, 2, 4, 2, 0, 6, 4]);
    expect(shifted?.map(({ parent }) => parent)).toEqual([5, -1, 3, 5, 3, 1, 0]);
    expect(trees(6)[1]?.map(({ parent }) => parent)).toEqual([1, 5, 3, 1, 3, -1]);
  });
});
