import { PassThrough, Writable } from 'node:stream';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { formatRanks } from '../../../../src/runtime/bootstrap/rank-list.js';
import { JobOutput } from '../../../../src/runtime/launch/job-output.js';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const CAUSE = 'file:///job.mjs:5\nif (rank === 1) throw new Error()\n\nError: bad shard\n    at job.mjs:5\n\nNode.js v20\n';
const CONSEQUENCE = 'RemoteError: rank 1 died\n    at job.mjs:6\n';

/** Error streams of ranks, and the lines that were printed of them. */
function job(nRanks: number, { prefix = true } = {}) {
  let text = '';
  const stderr = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString();
      done();
    },
  });
  const output = new JobOutput(
    { kind: 'merged', stdout: stderr, stderr, prefix: (ranks) => (prefix ? `[${formatRanks(ranks)}] ` : '') },
    0,
    nRanks,
  );
  const sources = Array.from({ length: nRanks }, () => new PassThrough());
  const taken = sources.map((source, rank) => output.take(rank, 'stderr', source));
  return { sources, taken, lines: () => text.trimEnd().split('\n') };
}

/** Lets streams pass on what they have. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
}

test('equal errors of several ranks are printed once, after the first one, with all these ranks', async () => {
  const { sources, taken, lines } = job(5);
  sources[1]!.end(CAUSE);
  await taken[1];
  for (const rank of [4, 0, 3]) sources[rank]!.end(`rank ${String(rank)} says\n${CONSEQUENCE}`);
  sources[2]!.end();
  await Promise.all(taken);
  expect(lines()).toEqual([
    ...CAUSE.trimEnd().split('\n').map((line) => `[1] ${line}`),
    '[4] rank 4 says',
    '[0] rank 0 says',
    '[3] rank 3 says',
    '[0,3,4] RemoteError: rank 1 died',
    '[0,3,4]     at job.mjs:6',
  ]); // prettier-ignore
});

test('errors of other ranks that equal the first are named, not repeated; other ones are printed', async () => {
  const { sources, taken, lines } = job(4);
  for (const rank of [0, 1, 2]) sources[rank]!.end('TypeError: x\n');
  sources[3]!.end('TypeError: y\n');
  await Promise.all(taken);
  expect(lines()).toEqual(['[0] TypeError: x', '[1,2] the same error as of rank 0', '[3] TypeError: y']);
});

test.each([
  ['of a script that is an argument', '[eval]:1\nthrow new Error()\n^\n\nError\n', '[eval]:1\nthrow new Error()\n^\n\nError\n'],
  ['of a rank that is ended while it writes', CONSEQUENCE, CONSEQUENCE.slice(0, 30)],
])('equal errors %s are named, not repeated', async (_name, first, second) => {
  const { sources, taken, lines } = job(2);
  sources[0]!.end(first);
  await taken[0];
  sources[1]!.end(second);
  await taken[1];
  expect(lines()).toEqual([
    ...first.trimEnd().split('\n').map((line) => `[0] ${line}`),
    '[1] the same error as of rank 0',
  ]); // prettier-ignore
});

test('errors are kept back for a time at most: neither of a program that goes on, nor for a rank that does not end', async () => {
  const { sources, lines } = job(3);
  sources[0]!.write('Error: tried again\n');
  await turns();
  expect(lines()).toEqual(['']);
  vi.advanceTimersByTime(1000);
  await turns();
  expect(lines()).toEqual(['[0] Error: tried again']);
  sources[1]!.end(CONSEQUENCE);
  sources[2]!.end(CONSEQUENCE);
  await turns();
  vi.advanceTimersByTime(1000);
  await turns();
  expect(lines().slice(-1)).toEqual(['[2] the same error as of rank 1']);
});

test.each([
  ['in pieces', ['no error\nErr', 'or: x\n', 'more\n'], ['[0] no error', '[0] Error: x', '[0] more']],
  ['in the middle of a line', ['a ', 'Error: x\n'], ['[0] a Error: x']],
  ['long', ['Error: ', 'x'.repeat(100_000)], [`[0] Error: ${'x'.repeat(100_000)}`]],
])('an error that comes %s is complete', async (_, pieces, expected) => {
  const { sources, taken, lines } = job(1);
  for (const piece of pieces) {
    sources[0]!.write(piece);
    await turns();
  }
  sources[0]!.end();
  await Promise.all(taken);
  expect(lines()).toEqual(expected);
});

test('without prefixes, which would name the ranks, every error is printed', async () => {
  const { sources, taken, lines } = job(2, { prefix: false });
  for (const source of sources) source.end('Error: x\n');
  await Promise.all(taken);
  expect(lines()).toEqual(['Error: x', 'Error: x']);
});
