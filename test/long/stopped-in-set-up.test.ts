import { describe, test } from 'vitest';
import { runRanks } from '../multi-process/ranks.js';

const ways = [
  { way: 'in one segment', env: {} },
  { way: 'over sockets', env: { TCCL_SHM_DISABLE: '1' } },
];
/** Milliseconds beyond its limit that a call may take on a busy machine; without a limit it would wait until the job is ended. */
const BEYOND_MS = 8000;
/** The same while ranks meet: on a quiet machine it is below 500. */
const BEYOND_MEETING_MS = 2000;

describe('a rank that stops while a communicator is made', () => {
  test.for(ways)('is missing in init on all others, within the limit: $way', async ({ env }, { expect }) => {
    const { records, stderr } = await runRanks(3, 'stops-in-init.mjs', ['timeoutMs'], { env, flags: ['--grace', '1'] });
    expect(records.map(({ rank }) => rank).sort(), stderr).toEqual([1, 2]);
    for (const record of records) {
      expect(record).toMatchObject({
        code: 'RANK_MISSING',
        ranks: [0],
        message: expect.stringMatching(/rank 0 \(process \d+ on \S+\) joined, but did not get ready within 4 s/) as string,
      });
      expect(record['beyondMs'], stderr).toBeLessThan(BEYOND_MS);
    }
  });

  // The second write answers the root; later ones join the ring, and pass on what the ranks say of themselves.
  test.for(ways.flatMap((one) => [2, 5, 6, 8, 10, 12].map((write) => ({ ...one, write }))))(
    'is the missing one while ranks still meet: before write $write, $way',
    async ({ env, write }, { expect }) => {
      const { records, stderr } = await runRanks(4, 'stops-while-meeting.mjs', [String(write)], { env, flags: ['--grace', '4'] });
      expect(records.map(({ rank }) => rank).sort(), stderr).toEqual([0, 1, 3]);
      for (const record of records) {
        expect(record).toMatchObject({ code: 'RANK_MISSING', ranks: [2] });
        expect(record['beyondMs'], stderr).toBeLessThan(BEYOND_MEETING_MS);
      }
    },
  );

  test('is the one that ranks name which have left init, while others are still there', async ({ expect }) => {
    // Its second write in the last barrier is what one rank waits for; the others are in their first call.
    const env = { TCCL_SHM_DISABLE: '1', TCCL_TIMEOUT: '3', TCCL_INIT_TIMEOUT: '8' };
    const { records, stderr } = await runRanks(4, 'stops-at-end-of-init.mjs', ['2'], { env, flags: ['--grace', '1'] });
    expect(records.map(({ call }) => call).sort(), stderr).toEqual(['allReduce', 'allReduce', 'init']);
    for (const record of records) expect(record).toMatchObject({ code: 'TIMEOUT', ranks: [0] });
  });

  test.for(ways)('does not keep init from ending by its signal: $way', async ({ env }, { expect }) => {
    const { records, stderr } = await runRanks(3, 'stops-in-init.mjs', ['signal'], { env, flags: ['--grace', '1'] });
    expect(records.map(({ rank }) => rank).sort(), stderr).toEqual([1, 2]);
    // The end of the first one reaches the other.
    expect(records.map(({ name }) => name)).toContain('TimeoutError');
    for (const record of records) expect(record['beyondMs'], stderr).toBeLessThan(BEYOND_MS);
  });

  test.for(ways.flatMap((one) => ['barrier', 'window'].map((call) => ({ ...one, call }))))(
    'is missing in shrink on all others, within the limit: after a $call, $way',
    async ({ env, call }, { expect }) => {
      const { records, stderr } = await runRanks(5, 'shrinks-beside-stopped.mjs', [call], { env, flags: ['--grace', '1'] });
      expect(records.map(({ rank }) => rank).sort(), stderr).toEqual([1, 2, 3, 4]);
      for (const record of records) {
        expect(record).toMatchObject({ code: 'RANK_MISSING', ranks: [0] });
        expect(record['beyondMs'], stderr).toBeLessThan(BEYOND_MS);
      }
    },
  );
});
