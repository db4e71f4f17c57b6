import fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Call } from '../../../../src/runtime/algorithms/call.js';
import { encodeActivity } from '../../../../src/runtime/algorithms/activity.js';
import { WaitChains, type Awaited } from '../../../../src/runtime/algorithms/wait-chains.js';
import { int32 } from '../../../../src/runtime/device/types.js';
import type { WaitReport } from '../../../../src/runtime/device/wait-report.js';

const barrier: Call = { kind: 'barrier', type: int32, operator: 'sum', root: 0, count: 0, algorithm: 'ring' };
const FRESH_MS = 1000;
const LOOK_MS = 200;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'Date'], now: 2 ** 41 - 500 });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Ranks that wait for others, by rank; those without a list do not wait. */
type Waits = readonly (readonly number[] | undefined)[];

/** Ranks of which some wait, poll and report to all. */
class Ranks {
  readonly waitChains: readonly WaitChains[];
  /** Access to the report of each rank, in two ways. */
  readonly #awaited: readonly (readonly Awaited[])[];
  readonly #reports: (WaitReport | undefined)[] = [];

  constructor(
    public waits: Waits,
    readonly reporting: readonly number[] = [],
    /** Ranks that report their last call while they do not wait. */
    readonly answering: readonly number[] = [],
  ) {
    this.waitChains = waits.map((_, rank) => new WaitChains(rank));
    // Ranks with odd numbers report by the second way only.
    this.#awaited = waits.map((_, peer) => [
      { peer, waitReport: () => (peer % 2 === 0 ? this.#reports[peer] : undefined) },
      { peer, waitReport: () => this.#reports[peer] },
    ]);
  }

  /** Time passes in which waiting ranks poll, each at a moment of its own. */
  pass(ms: number): void {
    for (let passed = 0; passed < ms; passed += LOOK_MS) {
      this.waits.forEach((_, rank) => {
        vi.advanceTimersByTime(LOOK_MS / this.waits.length);
        const awaited = this.#of(rank);
        if (awaited !== undefined)
          this.#say(rank, this.waitChains[rank]!.look(awaited, 4 * FRESH_MS, undefined, this.reporting.includes(rank)));
        else if (this.answering.includes(rank)) this.#say(rank, encodeActivity({ kind: 'last', number: 7, call: barrier }));
      });
    }
  }

  found(rank: number): number[] {
    return this.waitChains[rank]!.find(this.#of(rank) ?? [], 4 * FRESH_MS);
  }

  #say(rank: number, words: readonly number[]): void {
    this.#reports[rank] = { count: (this.#reports[rank]?.count ?? 0) + 1, words };
  }

  #of(rank: number): Awaited[] | undefined {
    return this.waits[rank]?.flatMap((peer) => this.#awaited[peer]!);
  }
}

test('every rank of a chain names the rank at its end', () => {
  const ranks = new Ranks([[1], [2], [3], [4], undefined]);
  ranks.pass(3 * FRESH_MS);
  for (const rank of [0, 1, 2, 3]) expect(ranks.found(rank)).toEqual([4]);
});

test('without reports, a rank names the ranks that it waits for', () => {
  const ranks = new Ranks([[1, 2], [2], undefined]);
  expect(ranks.found(0)).toEqual([1, 2]);
});

test('a rank that reports its last call does not wait, and is named with that call', () => {
  const ranks = new Ranks([[1], [2], undefined], [], [2]);
  ranks.pass(3 * FRESH_MS);
  for (const rank of [0, 1]) expect(ranks.found(rank)).toEqual([2]);
  expect(ranks.waitChains[1]!.doing(2)).toBe('last call barrier (ring), call 7');
});

test('a rank that stops after it reported a wait is named', () => {
  const ranks = new Ranks([[1], [2], undefined]);
  ranks.pass(3 * FRESH_MS);
  expect(ranks.found(0)).toEqual([2]);
  ranks.waits = [[1], undefined, undefined];
  ranks.pass(3 * FRESH_MS);
  expect(ranks.found(0)).toEqual([1]);
});

test('an observation of a rank that has called meanwhile expires, also among ranks in a circle', () => {
  const ranks = new Ranks([[1], [0, 2], undefined, undefined]);
  ranks.pass(3 * FRESH_MS);
  expect(ranks.found(0)).toEqual([2]);
  ranks.waits = [[1], [0, 2], [3], undefined];
  ranks.pass(4 * FRESH_MS);
  for (const rank of [0, 1, 2]) expect(ranks.found(rank)).toEqual([3]);
});

test('ranks in a circle name the next one, or all name the rank that reports the deadlock', () => {
  const circle = new Ranks([[1], [2], [0]]);
  circle.pass(4 * FRESH_MS);
  expect([0, 1, 2].map((rank) => circle.found(rank))).toEqual([[1], [2], [0]]);
  const reported = new Ranks([[1], [2], [0]], [2]);
  reported.pass(4 * FRESH_MS);
  expect([0, 1, 2].map((rank) => reported.found(rank))).toEqual([[2], [2], [0]]);
});

test('in any graph of waits, a rank names exactly the reachable ranks that do not wait', () => {
  const graphs = fc
    .integer({ min: 2, max: 9 })
    .chain((n) =>
      fc.array(fc.option(fc.uniqueArray(fc.nat(n - 1), { minLength: 1, maxLength: 3 }), { nil: undefined, freq: 4 }), {
        minLength: n,
        maxLength: n,
      }),
    );
  fc.assert(
    fc.property(graphs, fc.uniqueArray(fc.nat(8)), (drawn, answering) => {
      const waits = drawn
        .map((peers, rank) => peers?.filter((peer) => peer !== rank))
        .map((peers) => (peers?.length === 0 ? undefined : peers));
      const ranks = new Ranks(waits, [], answering);
      ranks.pass(4 * FRESH_MS);
      waits.forEach((peers, rank) => {
        if (peers === undefined) return;
        const expected = silentOnes(waits, rank);
        expect(ranks.found(rank)).toEqual(expected.length > 0 ? expected : [...peers].sort((a, b) => a - b));
      });
    }),
    { numRuns: 100 },
  );
});

/** Those that do not wait of all that a rank waits for, however indirectly. */
function silentOnes(waits: Waits, from: number): number[] {
  const reached = new Set([from]);
  for (const rank of reached) for (const peer of waits[rank] ?? []) reached.add(peer);
  return [...reached].filter((rank) => waits[rank] === undefined).sort((a, b) => a - b);
}
