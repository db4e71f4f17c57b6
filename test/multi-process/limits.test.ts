import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runRanks } from './ranks.js';

const configurations = [
  ['in shared memory', {}],
  ['over sockets', { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' }],
] as const;

/** Calls that only wait for data of another rank. */
const withdrawn = [
  'recv',
  'recv of at most',
  'recv of a tag',
  'probe',
  'recvObject',
  'waitSignal',
  'recvSync',
  'recvSync of at most',
]
  .concat(['recvAny', 'probeAny', 'recvAnyObject', 'recvAnySync', 'probeAnySync', 'recvAnyObjectSync'])
  .concat(['probeSync', 'recvObjectSync', 'waitSignalSync'])
  // These end on one rank alone, too: the others may go on without this rank.
  .concat(['shrink', 'agree']);

/** True for calls of the ranks that are left, which name those that are missing. */
const isOfRest = (call: string): boolean => call === 'shrink' || call === 'agree';

/** The name of a call in errors. */
const nameOf = (call: string): string => (call === 'program.run' ? 'run' : call.replace(/ .*/, ''));

async function outcomes(kind: string, env: Record<string, string> = {}) {
  const { code, records, stdout, stderr } = await runRanks(2, 'limits.mjs', [kind], { env });
  expect(code, `${stdout}\n${stderr}`).toBe(0);
  return records.map((record) => ({ ...record, call: String(record['call']) })) as readonly Record<string, string>[];
}

test.each(configurations)('every promise call with a signal aborted before is refused on its rank alone (%s)', async (_, env) => {
  const records = await outcomes('before', env);
  expect(records.length).toBe(114);
  for (const { call, message, code } of records) {
    // A root that lacks its input is refused for that.
    if (code === 'ARGUMENT_TYPE') expect(message).toMatch(/root (passes|, so it needs)|is the root/);
    else expect({ call, message }).toEqual({ call, message: 'too late' });
  }
});

test.each(configurations)(
  'a signal withdraws a call that only waits for data, and otherwise ends the communicator (%s)',
  async (_, env) => {
    const records = await outcomes('signal', env);
    expect(records.length).toBeGreaterThan(70);
    for (const { rank, call = '', message, next, why } of records) {
      if (rank === (0 as unknown)) expect({ call, message }).toEqual({ call, message: 'enough' });
      if (withdrawn.includes(call)) expect({ call, next }).toEqual({ call, next: 'goes on' });
      else {
        const reason = `rank 0 aborted the communicator: its ${nameOf(call)} was cancelled (enough)`;
        expect({ call, next, why }).toEqual({ call, next: 'ABORTED', why: reason });
      }
    }
  },
);

test.each([
  ['limit', 'in shared memory', {}],
  ['limit', 'over sockets', { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' }],
  ['blocking', 'in shared memory', {}],
  ['blocking', 'over sockets', { TCCL_SHM_DISABLE: '1' }],
] as const)('a timeout does the same with TIMEOUT, and names the call (%s, %s)', async (kind, _, env) => {
  const records = await outcomes(kind, env);
  expect(records.length).toBeGreaterThan(20);
  for (const { rank, call = '', code, message, next } of records) {
    if (rank === (0 as unknown)) {
      expect({ call, code }).toEqual({ call, code: isOfRest(call) ? 'RANK_MISSING' : 'TIMEOUT' });
      if (!isOfRest(call))
        expect(message).toMatch(new RegExp(`^${nameOf(call)}: |\\(timeoutMs of its ${nameOf(call).replace('Sync', '')}\\)$`));
    }
    expect({ call, next }).toEqual({ call, next: withdrawn.includes(call) ? 'goes on' : 'TIMEOUT' });
  }
});

test('calls of a window whose target is busy end by a signal or their timeout', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'tccl-limits-'));
  try {
    const records = await outcomes('busy target', { TCCL_SHM_DISABLE: '1', TCCL_TEST_FILE: join(directory, 'done') });
    expect(records).toEqual([
      { rank: 0, call: 'get', message: 'enough' },
      { rank: 0, call: 'fetchAndOp', message: 'enough' },
      { rank: 0, call: 'put', code: 'TIMEOUT', message: 'put: rank 0 did not end it within 0.03 s (its timeoutMs)' },
      { rank: 0, call: 'flush', message: 'enough' },
    ]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test('every public method that waits has a signal and a timeout', async () => {
  const { records } = await runRanks(2, 'limits.mjs', ['methods']);
  const unknown = (records[0]?.['unknown'] as string[]).filter((name) => !name.endsWith('Sync'));
  // Methods that do not wait, that close, or that are internal.
  const others = ['explain', 'alloc', 'free', 'register', 'deregister', 'memStats', 'grid', 'poll', 'close', 'abort', 'revoke'];
  const internal = [
    'checkUsable',
    'collectArrays',
    'keepArraysIn',
    'prepare',
    'start',
    'leave',
    'neighbours',
    'coordinatesOf',
    'rankAt',
    'deviceCall',
    'recvWithin',
    'note',
  ];
  const hooks = ['startChange', 'runChange', 'exchangeParts', 'receiveOrder'];
  expect(unknown.sort()).toEqual([...others, ...internal, ...hooks].sort());
});
