import { expect, it } from 'vitest';
import { loadRankCode } from '../../../testing/world/code.js';
import { runJob } from '../../../testing/world/job.js';

const code = loadRankCode();

it('repeats the trace of a seed, byte for byte', async () => {
  const [first, second, other] = [
    await runJob(9, await code, 4),
    await runJob(9, await code, 4),
    await runJob(10, await code, 4),
  ];
  expect(second.trace.join('\n')).toBe(first.trace.join('\n'));
  expect(other.trace.join('\n')).not.toBe(first.trace.join('\n'));
});

it('finds that ranks end a job without a fault in order, with the right data', async () => {
  for (let seed = 1; seed <= 5; seed++) {
    const { broken, trace } = await runJob(seed, await code, 3, []);
    expect(broken).toEqual([]);
    expect(trace.filter((line) => line.endsWith(' ends'))).toHaveLength(3);
  }
});

it('finds that the others of a crashed rank name it and go on without it', async () => {
  const { broken, trace } = await runJob(4, await code, 4, [{ kind: 'crash', rank: 2, atMs: 320 }]);
  expect(broken).toEqual([]);
  expect(trace.filter((line) => line.includes('RANK_DIED'))).toHaveLength(3);
  expect(trace.filter((line) => line.includes('allReduce of 5 among 3'))).toHaveLength(3);
});

/** Seeds that failed once, and the fault that they showed. */
const corpus: readonly (readonly [seed: number, fault: string])[] = [
  [50, 'a rank of a host without shared memory threw a RangeError when a rank of it could not be reached'],
];

it.each(corpus)('seed %i: %s', async (seed) => {
  expect((await runJob(seed, await code)).broken).toEqual([]);
});
