import dns from 'node:dns/promises';
import { syncBuiltinESMExports } from 'node:module';
import { hostname } from 'node:os';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { UniqueId } from '../../../../src/runtime/bootstrap/unique-id.js';
import { init } from '../../../../src/runtime/init/init.js';
import { localMeetingPoint } from '../../../../src/runtime/launch/meeting-point.js';

beforeEach(() => {
  vi.spyOn(dns, 'lookup');
  syncBuiltinESMExports();
});
afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

/** Look-ups that fail `times` times, then give this host's address. */
const unknownNames = (times: number): void => {
  for (let i = 0; i < times; i++)
    vi.mocked(dns.lookup).mockRejectedValueOnce(Object.assign(new Error('getaddrinfo ENOTFOUND train-0'), { code: 'ENOTFOUND' }));
  vi.mocked(dns.lookup).mockResolvedValue([{ address: '127.0.0.1', family: 4 }] as never);
};

const place = { TCCL_RANK: '0', TCCL_NRANKS: '2' };

test.each([
  ['localhost', 'TCCL_COMM_ID: "localhost" is not an address: write IPV4:PORT'],
  ['tccl1:cut', 'TCCL_COMM_ID: the unique id'],
])('an invalid id in a variable is named with the variable: %s', async (id, message) => {
  await expect(init({ env: { ...place, TCCL_COMM_ID: id } })).rejects.toMatchObject({
    code: 'UNIQUE_ID',
    message: expect.stringContaining(message) as string,
  });
});

test('an invalid id that the program gave is not', async () => {
  await expect(init({ rank: 0, nRanks: 2, commId: 'localhost', env: { TCCL_COMM_ID: 'localhost' } })).rejects.toThrow(
    /^"localhost" is not an address/,
  );
});

test.each([2, -1, 0.5, '1', undefined])('an impossible rank is refused before its host is looked up: %s', async (rank) => {
  await expect(init({ rank: rank as number, nRanks: 2, commId: 'train-0:1' })).rejects.toMatchObject({
    code: rank === undefined ? 'RANK_UNKNOWN' : 'ARGUMENT_RANGE',
  });
  expect(dns.lookup).not.toHaveBeenCalled();
});

test('the error of a root that does not answer names rank 0 where rank 0 opens it, but not with a given id', async () => {
  const late = { rank: 1, nRanks: 2, timeoutMs: 300 };
  const id = UniqueId.create({ host: '127.0.0.1', port: 1 });
  const [opened, ...given] = await Promise.all(
    ['127.0.0.1:1', id, id.toString()].map((commId) => init({ ...late, commId }).catch((reason: unknown) => reason)),
  );
  expect(opened).toMatchObject({
    code: 'TIMEOUT',
    ranks: [0],
    message: expect.stringMatching(/^rank 1 found no root at 127\.0\.0\.1:1, in the process of rank 0, within 300 ms/) as string,
  });
  for (const error of given) {
    expect(error).toMatchObject({ code: 'TIMEOUT' });
    expect(Object.keys(error as object)).not.toEqual(expect.arrayContaining(['rank']));
    expect(Object.keys(error as object)).not.toEqual(expect.arrayContaining(['ranks']));
  }
});

test('an unknown name is looked up again, and rank 0 warns once', async () => {
  unknownNames(2);
  const warnings: string[] = [];
  const env = { TCCL_COMM_ID: 'train-0:1', TCCL_RANK: '0', TCCL_NRANKS: '2' };
  // Only root may listen at port 1, so the next error differs; a signal ends it.
  const given = new AbortController();
  const joining = init({ env, onWarning: (text) => warnings.push(text), signal: given.signal }).catch((error: unknown) => error);
  await vi.waitFor(() => {
    expect(vi.mocked(dns.lookup).mock.calls.length).toBeGreaterThanOrEqual(3);
  }, 10_000);
  given.abort(new Error('seen'));
  expect(await joining).toBeInstanceOf(Error);
  expect(warnings).toEqual([
    `the host name "train-0" of the root cannot be resolved on ${hostname()} (getaddrinfo ENOTFOUND train-0): check TCCL_COMM_ID or --rendezvous, or give an address; retrying for 60 s`,
  ]);
});

test('rank 0 says at once, and in its error, that the name of the meeting point does not lead to it', async () => {
  // No process can connect to this address.
  vi.mocked(dns.lookup).mockResolvedValue([{ address: '255.255.255.255', family: 4 }] as never);
  const { TCCL_COMM_ID } = await localMeetingPoint();
  const commId = TCCL_COMM_ID.replace('127.0.0.1', 'train-0');
  const warnings: string[] = [];
  const env = { TCCL_JOB_ID: 'ours' };
  const options = { nRanks: 2, commId, env, timeoutMs: 300, onWarning: (text: string) => warnings.push(text) };
  const join = (rank: number) => init({ ...options, rank }).catch((error: unknown) => error);
  const [first, second] = await Promise.all([0, 1].map(join));
  const explanation = String.raw`rank 0 listens on .+, but train-0:\d+ is 255\.255\.255\.255:\d+, where it cannot be reached \(connect .+\): start rank 0 on that host, or give the name of [^;]+`;
  expect(warnings).toEqual([expect.stringMatching(new RegExp(`^${explanation}; retrying for 0\\.3 s$`))]);
  const found = String.raw`found no root at 255\.255\.255\.255:\d+`;
  expect(first).toMatchObject({
    code: 'TIMEOUT',
    ranks: [0],
    message: expect.stringMatching(new RegExp(`^rank 0 ${found} within 300 ms: ${explanation}$`)) as string,
  });
  expect(second).toMatchObject({
    code: 'TIMEOUT',
    ranks: [0],
    message: expect.stringMatching(
      `^rank 1 ${found}, in the process of rank 0, within 300 ms \\(connect ENETUNREACH .*; no interface of .* leads there`,
    ) as string,
  });
});

test('a name that stays unknown fails at the timeout, and immediately when the caller aborts', async () => {
  unknownNames(100);
  const env = { TCCL_COMM_ID: 'train-0:29555', TCCL_RANK: '1', TCCL_NRANKS: '2' };
  await expect(init({ env, timeoutMs: 1 })).rejects.toMatchObject({
    code: 'NETWORK',
    message: expect.stringContaining('"train-0" of the root cannot be resolved') as string,
  });
  const given = new AbortController();
  const joining = init({ env, signal: given.signal });
  given.abort(new Error('enough'));
  await expect(joining).rejects.toThrow('enough');
});

test.each([
  [{ onWarning: 3 }, 'init: onWarning is a function, not 3'],
  [{ env: 5 }, 'init: env is an object of variables, not 5'],
  [{ device: 0 }, 'init: device is a string, not 0'],
])('refuses %o', async (options, message) => {
  await expect(init(options as never)).rejects.toMatchObject({ code: 'ARGUMENT_TYPE', message });
});
