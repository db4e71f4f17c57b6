import { describe, expect, it } from 'vitest';
import { Ways, type Way } from '../../../../../src/runtime/algorithms/memory/direct-ways.js';

const CALL = 5;
const BYTES = 1 << 20;

/** Makes calls that take the given times, and returns the way of each. */
function make(ways: Ways, calls: number, times: Record<Way, number>, bytes = BYTES): Way[] {
  return Array.from({ length: calls }, () => {
    const way = ways.choose(CALL, bytes);
    ways.took(times[way]);
    return way;
  });
}

const share = (taken: readonly Way[], way: Way): number => taken.filter((one) => one === way).length / taken.length;

describe('the way of input outside the segment', () => {
  it.each(['open', 'staged'] as const)('is reading in place at first, and then the faster one (%s)', (faster) => {
    const ways = new Ways();
    const times = { open: faster === 'open' ? 1 : 2, staged: faster === 'staged' ? 1 : 2 };
    expect(make(ways, 8, times)).toEqual(Array(8).fill('open'));
    make(ways, 8, times);
    expect(share(make(ways, 1000, times), faster)).toBeGreaterThan(0.9);
  });

  it('is tried again so seldom that the slower one costs little', () => {
    const ways = new Ways();
    const times = { open: 1, staged: 5 };
    make(ways, 3000, times);
    expect(share(make(ways, 10_000, times), 'staged')).toBeLessThan(0.005);
  });

  it('changes at once when it has become slow, and some calls later when the other has become fast', () => {
    const ways = new Ways();
    const near = { open: 5, staged: 3 };
    const far = { open: 5, staged: 25 };
    make(ways, 3000, near);
    expect(make(ways, 10, far).slice(-4)).toEqual(Array(4).fill('open'));
    make(ways, 3000, far);
    make(ways, 1100, near);
    expect(share(make(ways, 100, near), 'staged')).toBeGreaterThan(0.9);
  });

  it('does not change for one slow call, nor for a little', () => {
    const ways = new Ways();
    make(ways, 100, { open: 10, staged: 20 });
    make(ways, 1, { open: 1000, staged: 1000 });
    expect(share(make(ways, 100, { open: 10, staged: 9.8 }), 'open')).toBeGreaterThan(0.9);
  });

  it('is learnt for each length separately', () => {
    const ways = new Ways();
    make(ways, 3000, { open: 5, staged: 3 });
    expect(make(ways, 8, { open: 1, staged: 2 }, 16 * BYTES)).toEqual(Array(8).fill('open'));
    expect(share(make(ways, 100, { open: 5, staged: 3 }), 'staged')).toBeGreaterThan(0.9);
  });

  it('is learnt from timed calls only', () => {
    const ways = new Ways();
    for (let i = 0; i < 100; i++) expect(ways.choose(CALL, BYTES)).toBe('open');
  });
});
