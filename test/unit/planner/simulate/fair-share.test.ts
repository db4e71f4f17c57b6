import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fairRates } from '../../../../src/planner/simulate/fair-share.js';

/** Flows over numbered links, each of weight 1. */
function flows(uses: readonly (readonly number[])[], most: readonly number[] = uses.map(() => Infinity)) {
  const first = new Int32Array(uses.length + 1);
  uses.forEach((links, flow) => (first[flow + 1] = first[flow]! + links.length));
  return {
    first,
    link: Int32Array.from(uses.flat()),
    weight: Float64Array.from(uses.flat(), () => 1),
    most: Float64Array.from(most),
  };
}

describe('fair shares of links', () => {
  it('two flows halve a link; a third that shares another link with one of them gets the rest there', () => {
    // Link 0 of 10 GB/s carries flows 0 and 1, link 1 of 20 GB/s flows 1 and 2.
    expect([...fairRates(flows([[0], [0, 1], [1]]), Float64Array.of(10, 20))]).toEqual([5, 5, 15]);
  });

  it('a flow with a low limit leaves the rest to others', () => {
    expect([...fairRates(flows([[0], [0]], [2, Infinity]), Float64Array.of(10))]).toEqual([2, 8]);
  });

  it('no link exceeds its capacity, and every flow reaches a full link or its own limit', () => {
    const world = fc.record({
      capacity: fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 8 }),
      routes: fc.array(
        fc.record({ links: fc.uniqueArray(fc.nat(7), { minLength: 1, maxLength: 4 }), most: fc.integer({ min: 1, max: 50 }) }),
        { minLength: 1, maxLength: 20 },
      ),
    });
    fc.assert(
      fc.property(world, ({ capacity, routes }) => {
        const uses = routes.map(({ links }) => [...new Set(links.map((link) => link % capacity.length))]);
        const rates = fairRates(
          flows(
            uses,
            routes.map(({ most }) => most),
          ),
          Float64Array.from(capacity),
        );
        const load = capacity.map((_, link) =>
          uses.reduce((sum, links, flow) => sum + (links.includes(link) ? rates[flow]! : 0), 0),
        );
        load.forEach((carried, link) => expect(carried).toBeLessThanOrEqual(capacity[link]! * (1 + 1e-6)));
        uses.forEach((links, flow) => {
          const isFull = links.some((link) => load[link]! >= capacity[link]! * (1 - 1e-6));
          expect(isFull || rates[flow]! >= routes[flow]!.most * (1 - 1e-6)).toBe(true);
        });
      }),
    );
  });
});
