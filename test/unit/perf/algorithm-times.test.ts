import { afterEach, expect, test, vi } from 'vitest';
import type { Communicator } from '../../../src/runtime/communicator/communicator.js';
import * as clock from '../../../src/perf/clock.js';
import { timedCells, timeAlgorithms, type AlgorithmTime } from '../../../src/perf/algorithm-times.js';
import { changesBy, timesOf, tunedSizes } from '../../../src/perf/tune.js';

test('every collective is timed once at every size that divides into whole blocks', () => {
  const cells = timedCells(8, [8, 64, 600, 1000]);
  const counts = (kind: string) => cells.filter((cell) => cell.kind === kind).map(({ size, shape }) => [size, shape.count]);
  expect(counts('allReduce')).toEqual([
    [8, 2],
    [64, 16],
    [600, 150],
    [1000, 250],
  ]);
  // Blocks of 16 bytes for each of 8 ranks: nothing is left of 8 and 64 bytes.
  expect(counts('allGather')).toEqual([
    [600, 16],
    [1000, 28],
  ]);
  expect(new Set(cells.map(({ kind }) => kind)).size).toBe(8);
});

afterEach(() => void vi.restoreAllMocks());

/**
 * Calls of a rank in a timing among two, of which the other one reads the clock in 50 ns, and a ring takes three times as long
 * as direct.
 */
async function callsIn(ownClockSeconds: number): Promise<string[]> {
  vi.spyOn(clock, 'clockCost').mockReturnValue(ownClockSeconds);
  const calls: string[] = [];
  const candidate = ({ algorithm }: { readonly algorithm: string }): Communicator =>
    new Proxy(Object.create(null) as Communicator, {
      get: (_, name: string) => {
        if (name === 'close') return () => Promise.resolve();
        if (name === 'then') return undefined;
        if (name === 'explain') return () => ({ algorithm, protocol: 'LL' });
        return () => calls.push(`${algorithm} ${name}`);
      },
    });
  const comm = {
    rank: 0,
    nRanks: 2,
    stream: (options: { readonly algorithm: string }) => Promise.resolve(candidate(options)),
    alloc: (type: typeof Float64Array, length: number) => new type(length),
    free: () => undefined,
    barrierSync: () => undefined,
    allReduceSync: (array: Float64Array, _: Float64Array, operator: string) => {
      if (operator === 'min') array[0] = Math.min(array[0] ?? 0, 0.000_05);
      else if (array.length === 1)
        array[0] = 1000; // what a warm-up took
      else array.fill(calls.at(-1)?.startsWith('direct') === true ? 0.000_3 : 0.000_9);
    },
  };
  await timeAlgorithms(comm as unknown as Communicator, { sizes: [8], rounds: 3, turnMs: 6, withChoice: false }, () => undefined);
  return calls;
}

test('ranks drop the same algorithms, though their times differ', async () => {
  const calls = await callsIn(50e-9);
  expect(calls.filter((call) => call === 'ring allReduceSync').length).toBeGreaterThan(0);
  expect(await callsIn(150e-9)).toEqual(calls);
});

test('the largest requested size is measured, even if it is no step of eight', () => {
  expect(tunedSizes(8)).toEqual([8]);
  expect(tunedSizes(512)).toEqual([8, 64, 512]);
  expect(tunedSizes(2 ** 26).slice(-3)).toEqual([2 ** 21, 2 ** 24, 2 ** 26]);
});

test('results become times by number of ranks, kind and algorithm, the minimum of all passes', () => {
  const result = { kind: 'reduce', size: 8, bytes: 8, chosen: false, algorithm: 'direct', protocol: 'LL', us: 1 } as const;
  const results: AlgorithmTime[] = [
    { ...result, ranks: 2 },
    { ...result, ranks: 2, algorithm: 'ring', us: 2.00004 },
    { ...result, ranks: 2, size: 64, bytes: 64, us: 3 },
    { ...result, ranks: 4, us: 9 },
    { ...result, ranks: 2, us: 0.5 },
    { ...result, ranks: 2, algorithm: 'ring', us: 4 },
  ];
  expect(timesOf(results)).toEqual({
    2: {
      reduce: {
        direct: [
          [8, 0.5],
          [64, 3],
        ],
        ring: [[8, 2]],
      },
    },
    4: { reduce: { direct: [[8, 9]] } },
  });
});

test('changes by a profile are listed by collective and number of ranks', () => {
  const profile = { format: 'tccl profile', formatVersion: 1, machine: 'made', cores: 2 } as const;
  const scatter = {
    direct: [
      [64, 9],
      [1024, 9],
      [16384, 9],
    ],
    pairs: [
      [64, 9],
      [1024, 6],
      [16384, 12],
    ],
  } as const;
  expect(changesBy({ ...profile, times: { 2: { scatter: { direct: scatter.direct } }, 8: { scatter } } })).toEqual([
    'scatter of 8 ranks: direct up to 256 bytes, then pairs up to 4096 bytes, then direct',
  ]);
});
