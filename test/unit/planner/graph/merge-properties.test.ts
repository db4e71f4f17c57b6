import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CrossNic, GraphId, Pattern } from '../../../../src/planner/graph/graph.js';
import { mergeHosts } from '../../../../src/planner/graph/merge/merge.js';
import { TREE_ARITY } from '../../../../src/planner/graph/merge/trees.js';
import { defaultParameters } from '../../../../src/planner/parameters.js';
import { graph, host } from './made-hosts.js';

/** A host of any size, with channels in any order and any tree pattern. */
const hosts = fc.integer({ min: 1, max: 6 }).chain((ranks) => {
  const way = fc.shuffledSubarray(
    Array.from({ length: ranks }, (_, rank) => rank),
    { minLength: ranks, maxLength: ranks },
  );
  return fc.record({
    rings: fc.array(way, { minLength: 1, maxLength: 4 }),
    trees: fc.array(way, { minLength: 1, maxLength: 4 }),
    crossNic: fc.constantFrom(...Object.values(CrossNic)),
    pattern: ranks === 1 ? fc.constant(Pattern.TREE) : fc.constantFrom(Pattern.BALANCED_TREE, Pattern.SPLIT_TREE, Pattern.TREE),
    count: fc.integer({ min: 1, max: 5 }),
  });
});

it('for any hosts, each ring visits every rank once and each tree has all ranks below one root', () => {
  fc.assert(
    fc.property(fc.array(hosts, { minLength: 1, maxLength: 4 }), (cluster) => {
      const runs = cluster.map(({ rings, trees, crossNic, pattern, count }) => ({
        host: host(rings, { graphs: { ring: graph(rings, { crossNic }), tree: graph(trees, { id: GraphId.TREE, pattern }) } }),
        count,
      }));
      const {
        nodes: { nRanks },
        rings,
        trees,
      } = mergeHosts(runs, defaultParameters);
      const all = Array.from({ length: nRanks }, (_, rank) => rank);
      for (let ring = 0; ring < rings.count; ring++) {
        const order = rings.order.subarray(ring * nRanks, (ring + 1) * nRanks);
        expect(order[0]).toBe(0);
        expect([...order].sort((a, b) => a - b)).toEqual(all);
      }
      for (let tree = 0; tree < trees.count; tree++) {
        const up = (rank: number) => trees.up[tree * nRanks + rank] ?? -1;
        const down = (rank: number) =>
          [...trees.down.subarray((tree * nRanks + rank) * TREE_ARITY, (tree * nRanks + rank + 1) * TREE_ARITY)].filter(
            (child) => child >= 0,
          );
        const roots = all.filter((rank) => up(rank) === -1);
        expect(roots).toHaveLength(1);
        const reached = [...roots];
        for (let next = 0; next < reached.length; next++) {
          for (const child of down(reached[next] ?? 0)) {
            expect(up(child)).toBe(reached[next]);
            reached.push(child);
          }
        }
        expect(reached.sort((a, b) => a - b)).toEqual(all);
      }
    }),
  );
});
