import { expect, test } from 'vitest';
import { runRanks } from './ranks.js';

const config = (options: object): Record<string, string> => ({ TCCL_TEST_CONFIG: JSON.stringify(options) });
const apart = { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' };

test.each<[string, string[], Record<string, string>]>([
  ['in shared memory', [], {}],
  ['in shared memory, blocking', ['--sync'], {}],
  ['over sockets', [], apart],
  ['over sockets, in place', [], { ...apart, ...config({ blocking: true }) }],
  ['over sockets, in place, blocking', ['--sync'], { ...apart, ...config({ blocking: true }) }],
  ['beside engine threads', [], config({ engine: 'thread' })],
])('messages of unknown length can be probed and received, %s', async (_, args, env) => {
  const { code, records, stderr } = await runRanks(2, 'any-length.mjs', args, { env });
  expect(records, stderr).toHaveLength(2);
  for (const rank of [0, 1]) expect(records).toContainEqual({ rank, wrong: [] });
  expect(code).toBe(0);
});

test('a message longer than the array is refused on both ranks', async () => {
  // A short message does not wait for its receiver.
  const send = 'comm.send(new Int32Array(5), 1).then(() => comm.recv(new Int32Array(1), 1))';
  const calls = [send, 'comm.recv(new Int32Array(4), 0, { atMost: true })'];
  const { records, stderr } = await runRanks(2, 'calls-differ.mjs', calls);
  expect(records, stderr).toHaveLength(2);
  for (const record of records)
    expect(record).toMatchObject({
      code: 'CALL_MISMATCH',
      message: expect.stringContaining('recv: rank 0 sent 5 int32 to rank 1, which receives at most 4 int32 there') as string,
    });
});

test.each<[string, Record<string, string>]>([
  ['in shared memory', {}],
  ['over sockets', apart],
])('a probe of a rank that has left ends, %s', async (_, env) => {
  const calls = ['comm.close()', 'comm.probe(0)'];
  const { records, stderr } = await runRanks(2, 'calls-differ.mjs', calls, { env: { TCCL_TIMEOUT: '20', ...env } });
  expect(
    records.find(({ rank }) => rank === 1),
    stderr,
  ).toMatchObject({ code: 'CLOSED' });
});
