import { expect, test } from 'vitest';
import { runRanks } from './ranks.js';

/** Of random-withdrawals.mjs; TCCL_TEST_SEED repeats a run that failed. */
const seed = Number(process.env['TCCL_TEST_SEED'] ?? Math.floor(Math.random() * 1e6));
const configurations = [
  ['in shared memory', {}],
  ['over sockets', { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' }],
  ['on engine threads', { TCCL_TEST_CONFIG: '{"engine":"thread"}' }],
] as const;

/** Results of the calls of each rank in a case of cancel.mjs. */
async function outcomes(name: string, env: Record<string, string> = {}) {
  const { records, stderr } = await runRanks(2, 'cancel.mjs', [name], { env });
  expect(stderr).not.toContain('triggerUncaughtException');
  return [0, 1].map((rank) => records.filter((record) => record['rank'] === rank));
}

test('a call whose signal is aborted before is refused on its rank alone, and all ranks continue', async () => {
  for (const records of await outcomes('before')) {
    expect(records.map(({ call, message }) => [call, message])).toEqual([
      ...['allReduce', 'barrier', 'send', 'recv'].map((call) => [call, 'too late']),
      [undefined, undefined],
    ]);
    expect(records.at(-1)).toMatchObject({ goesOn: true });
  }
});

test.each(configurations)('receives can be withdrawn, and the next ones get their messages (%s)', async (_, env) => {
  const [, receiver] = await outcomes('recv', env);
  expect(receiver).toEqual([
    expect.objectContaining({ call: 'first', message: 'enough' }),
    expect.objectContaining({ call: 'third', message: 'enough' }),
    expect.objectContaining({
      call: 'late',
      code: 'TIMEOUT',
      ranks: [0],
      message: 'recv: no message from rank 0 came to rank 1 within 0.03 s (its timeoutMs)',
    }),
    { rank: 1, call: 'second' },
    { rank: 1, first: [2, 2, 2, 2], second: [5, 6, 7, 8] },
    { rank: 1, goesOn: true },
  ]);
  const [, long] = await outcomes('long message', env);
  expect(long?.slice(1)).toEqual([
    { rank: 1, call: 'recv' },
    { rank: 1, whole: true },
    { rank: 1, goesOn: true },
  ]);
});

test.each([
  ['in shared memory', {}],
  ['over sockets', { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' }],
])('messages for receives that are withdrawn at random arrive once, complete and in order (%s)', async (_, env) => {
  const { code, records, stdout, stderr } = await runRanks(3, 'random-withdrawals.mjs', [String(seed), '60'], { env });
  expect(code, `seed ${seed}\n${stdout}\n${stderr}`).toBe(0);
  expect(records).toHaveLength(3);
});

test.each(configurations)(
  'a collective that is cancelled ends the communicator on all ranks, with the reason (%s)',
  async (_, env) => {
    const [canceller, other] = await outcomes('collective', env);
    const aborted = { code: 'ABORTED', message: 'rank 0 aborted the communicator: its allReduce was cancelled (enough)' };
    expect(canceller).toMatchObject([{ call: 'call', message: 'enough' }, aborted]);
    expect(other).toMatchObject([aborted, aborted]);
  },
);

test.each(configurations)('a collective that takes longer than its limit ends with TIMEOUT on all ranks (%s)', async (_, env) => {
  for (const records of await outcomes('collective in time', env)) {
    expect(records.map(({ code }) => code)).toEqual(['TIMEOUT', 'TIMEOUT']);
    expect(records[0]?.['message']).toMatch(/^\w+: rank 0 waited 0\.05 s in allReduce .*\(timeoutMs of its allReduce\)$/);
  }
});

test('blocking calls refuse signals, calls in groups refuse limits, and all calls wrong ones', async () => {
  for (const records of await outcomes('blocking and groups')) {
    expect(records.map(({ message }) => message)).toEqual([
      ...['allReduceSync', 'broadcastObjectSync', 'recvSync', 'groupSync'].map(
        (call) => `${call}: a blocking call takes no signal; use the promise form, or pass timeoutMs`,
      ),
      ...['allReduce', 'sendRecv'].map(
        (call) => `${call}: a call in a group has no signal or timeoutMs of its own; pass them to the group`,
      ),
      'barrier: timeoutMs is a number of milliseconds above 0, 24 days at most, not -1',
      'barrier: signal is an AbortSignal, not "SIGINT"',
      undefined,
    ]);
  }
});

test('the timeout of init() applies to calls without progress, also of communicators made from it', async () => {
  for (const records of await outcomes('default', { TCCL_TEST_CONFIG: '{"timeoutMs":5000}' })) {
    expect(records).toMatchObject([
      { call: 5000, code: 'TIMEOUT' },
      { call: 5000, code: 'TIMEOUT' },
    ]);
    for (const { message } of records) expect(message).toMatch(/ waited 5 s in .* \(timeoutMs of init\(\)\)$/);
  }
});

test('await using closes a communicator', async () => {
  for (const records of await outcomes('dispose'))
    expect(records).toMatchObject([{ call: 'after', code: 'CLOSED' }, { goesOn: true }]);
});
