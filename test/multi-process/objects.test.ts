import { expect, test } from 'vitest';
import { runRanks } from './ranks.js';

/** The errors of both ranks in a case of object-errors.mjs, by rank. */
async function errorsOf(name: string): Promise<readonly (readonly Record<string, unknown>[])[]> {
  const { records, stderr } = await runRanks(2, 'object-errors.mjs', [name]);
  expect(stderr).not.toContain('triggerUncaughtException');
  return [0, 1].map((rank) => records.filter((record) => record['rank'] === rank));
}

test('objects that cannot be sent are refused, and the communicator stays usable', async () => {
  for (const [rank, records] of (await errorsOf('alone')).entries()) {
    expect(records.map(({ code }) => code)).toEqual([
      'ARGUMENT_TYPE',
      'BUFFER_SIZE',
      'ARGUMENT_RANGE',
      'ROOT_RANGE',
      'UNSUPPORTED',
      undefined,
    ]);
    expect(records.slice(0, 4).every(({ blamed }) => blamed === rank)).toBe(true);
    expect(records.map(({ message }) => message).slice(1, 3)).toEqual([
      'scatterObjects: the root passes an array with a value for each of 2 ranks, not an array of 1',
      'sendObject: there is no rank 7; ranks go from 0 to 1',
    ]);
    expect(records.at(-1)).toEqual({ rank, sum: 2 });
  }
});

test.each([
  ['array for object', /^(send|recv): rank 0 sent an object to rank 1, which receives 4 float32 there/],
  ['object for array', /^(send|recvObject): rank 0 sent 4 float32 to rank 1, which receives an object there/],
  [
    'bytes for object',
    /rank 0 called broadcast of 256 uint8 from rank 0 .*; rank 1 called broadcastObject from rank 0 \(direct\)/,
  ],
  ['gather for all', /rank 0 called gatherObject .*rank 1 called allGatherObject/],
  ['other root', /^gatherObject: rank 0 called gatherObject to rank 0 where rank 1 called gatherObject to rank 1/],
])('%s: ranks that do not fit together hear what both did', async (name, message) => {
  const [, receiver] = await errorsOf(name);
  expect(receiver).toEqual([
    expect.objectContaining({ code: 'CALL_MISMATCH', message: expect.stringMatching(message) as string }),
  ]);
});

test('an array that is detached while its object is being sent ends the communicator with that reason', async () => {
  const [[sender], [receiver]] = (await errorsOf('detached')) as [Record<string, unknown>[], Record<string, unknown>[]];
  expect(sender).toMatchObject({ name: 'InvalidArgumentError', code: 'BUFFER_DETACHED', blamed: 0 });
  expect(receiver).toMatchObject({ name: 'RemoteError', code: 'BUFFER_DETACHED', blamed: 0 });
});

test('memory of an array in an object cannot be freed before the object was sent', async () => {
  const [sender, receiver] = await errorsOf('freed');
  expect(sender).toMatchObject([
    { code: 'ARGUMENT_TYPE', message: expect.stringContaining('free: a call') as string },
    { freed: true },
  ]);
  expect(receiver).toEqual([{ rank: 1, freed: true }]);
});
