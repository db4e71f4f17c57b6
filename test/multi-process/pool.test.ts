import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { openPool, type Pool, type PoolOptions, RemoteError } from '../../dist/index.js';
import { fixture, needsNode, start } from './cli.js';

const module = fixture('pool-jobs.mjs');

let pool: Pool | undefined;
afterEach(async () => {
  await pool?.close().catch(() => undefined);
  pool = undefined;
});

async function open(ranks: number, options: Partial<PoolOptions> = {}): Promise<Pool> {
  pool = await openPool({ ranks, module, graceMs: 50, ...options });
  return pool;
}

/** The error with which `promise` rejects. */
async function errorOf(promise: Promise<unknown>): Promise<RemoteError> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof RemoteError)) throw new Error('ended without a RemoteError', { cause: error });
  return error;
}

describe('a pool', () => {
  it('runs jobs on standing ranks, and returns their results in the order of ranks', async () => {
    const { run } = await open(3).then((opened) => ({ run: opened.run.bind(opened) }));
    const results = (value: number, calls: number) =>
      [0, 1, 2].map((rank) => ({ rank, calls, pid: process.pid, sum: [6 * value, 6 * value, 6 * value] }));
    expect(await run('sum', 1)).toEqual(results(1, 1));
    expect(await run('sum', 10)).toEqual(results(10, 2));
  });

  it('runs jobs in the order of the calls, one after the other', async () => {
    const opened = await open(2);
    const jobs = await Promise.all([1, 2, 3, 4, 5].map((value) => opened.run('sum', value)));
    expect(jobs).toMatchObject(
      [1, 2, 3, 4, 5].map((value) => [0, 1].map((rank) => ({ rank, calls: value, sum: [3 * value, 3 * value, 3 * value] }))),
    );
  });

  it('keeps the state of modules between jobs; arrays of alloc arrive without a copy', async () => {
    const opened = await open(2);
    await opened.run('keep', 2);
    const [first, second] = (await opened.run('reduceKept')) as Float32Array[];
    expect([...first!]).toEqual([4, 4, 4, 4]);
    expect(first!.buffer).toBeInstanceOf(SharedArrayBuffer);
    expect(second).toEqual(first);
  });

  it.each([false, true])(
    'names the rank that threw, ends the calls of the others, and stays usable (blocking: %s)',
    async (blocking) => {
      const opened = await open(3);
      const error = await errorOf(opened.run('fail', 1, blocking));
      expect(error).toMatchObject({ code: 'JOB_FAILED', rank: 1, message: 'run: rank 1 of 3 failed in fail: told to fail' });
      expect(error.cause).toMatchObject({
        name: 'RangeError',
        code: 'TOLD',
        when: new Date(0),
        stack: expect.stringMatching(/failAsTold .*pool-jobs\.mjs:\d+/) as string,
      });
      expect(await opened.run('sum', 1)).toMatchObject([{ sum: [6, 6, 6] }, { sum: [6, 6, 6] }, { sum: [6, 6, 6] }]);
      await errorOf(opened.run('fail', 2, blocking));
      expect(await opened.run('sum', 1)).toHaveLength(3);
    },
  );

  it('frees the arrays of a job after its end, except for those that it returned', async () => {
    const opened = await open(2);
    for (let job = 0; job < 4; job++) await opened.run('leaveArray');
    await vi.waitFor(async () => expect(await opened.run('usedByArrays')).toEqual([0, 0]), 30_000);
    const [, returned] = (await opened.run('leaveArray', true)) as Float32Array[];
    for (let job = 0; job < 4; job++) await opened.run('leaveArray');
    expect(returned?.every((value) => value === 1)).toBe(true);
  });

  it('ends waits in communicators that a job has made when it throws', async () => {
    const opened = await open(3);
    const settled = await opened.runSettled('failInChild', 1);
    const gone = { code: 'CLOSED', rank: 1, message: expect.stringContaining('rank 1 returned from failInChild') as string };
    expect(settled).toMatchObject([{ reason: gone }, { reason: { message: 'told to fail' } }, { reason: gone }]);
    expect(await opened.run('sum', 1)).toHaveLength(3);
  });

  it('keeps arrays of alloc after a failed job', async () => {
    const opened = await open(2);
    await opened.run('keep', 1);
    await errorOf(opened.run('fail', 0));
    const [array] = (await opened.run('reduceKept')) as Float32Array[];
    expect([...array!]).toEqual([2, 2, 2, 2]);
  });

  it('returns the results and errors of all ranks', async () => {
    const opened = await open(3);
    const outcomes = await opened.runSettled('fail', 2);
    expect(outcomes).toMatchObject([
      { status: 'rejected', reason: { code: 'ABORTED', rank: 2 } },
      { status: 'rejected', reason: { code: 'ABORTED', rank: 2 } },
      { status: 'rejected', reason: { name: 'RangeError', message: 'told to fail' } },
    ]);
    expect(await opened.runSettled('sum', 1)).toMatchObject([
      { status: 'fulfilled', value: { rank: 0 } },
      { status: 'fulfilled', value: { rank: 1 } },
      { status: 'fulfilled', value: { rank: 2 } },
    ]);
  });

  it.each(['allReduce', 'allReduceSync', 'recv', 'recvSync', 'object', 'split'])(
    'ends a %s that waits for a rank whose function has returned, and stays usable',
    async (how) => {
      const opened = await open(3);
      for (let i = 0; i < 2; i++) {
        const outcomes = await opened.runSettled('leaveEarly', how);
        expect(outcomes[0]).toEqual({ status: 'fulfilled', value: 'early' });
        const gone = { code: 'CLOSED', rank: 0, message: expect.stringContaining('rank 0 returned from leaveEarly') as string };
        expect(outcomes.slice(1)).toContainEqual({ status: 'rejected', reason: expect.objectContaining(gone) as Error });
        expect(outcomes.slice(1)).toMatchObject([{ status: 'rejected' }, { status: 'rejected' }]);
        expect(await opened.run('sum', 1)).toHaveLength(3);
      }
    },
  );

  it('gives the next job a usable communicator after a job that caught an error, or closed its own', async () => {
    const opened = await open(2);
    expect(await opened.run('seeClosed')).toEqual(['early', 'CLOSED']);
    expect(await opened.run('sum', 1)).toHaveLength(2);
    await opened.run('shut');
    expect(await opened.run('sum', 1)).toHaveLength(2);
  });

  it('lets a call go on that a function has left', async () => {
    const opened = await open(3);
    for (let i = 0; i < 3; i++) expect(await opened.run('leaveCall')).toEqual([undefined, 3, 3]);
  });

  it('keeps the process alive while it runs a job, and no longer', async () => {
    const program = `
      import { openPool } from 'tccl';
      const pool = await openPool({ ranks: 2, module: ${JSON.stringify(module)} });
      console.log((await pool.run('sum', 1)).length);
      void pool.run('sum', 1).then((results) => console.log(results.length));`;
    const { code, stdout } = await start(process.execPath, ['--input-type=module', '-e', program]).finished;
    expect({ code, stdout }).toEqual({ code: 0, stdout: '2\n2\n' });
  });

  it('passes on errors of tccl and values that are no errors', async () => {
    const opened = await open(2);
    expect((await errorOf(opened.run('misfit'))).cause).toMatchObject({ name: 'InvalidUsageError', code: 'CALL_MISMATCH' });
    expect((await errorOf(opened.run('throwText'))).cause).toBe('only a text');
    expect(await errorOf(opened.run('unsendable'))).toMatchObject({
      rank: 1,
      message: expect.stringContaining('run: the result of unsendable cannot be copied') as string,
    });
    expect(await opened.run('sum', 1)).toHaveLength(2);
  });

  it.each([0, 3])('ends with the reason when a rank exits with %s', async (code) => {
    const opened = await open(2);
    const job = opened.run('exit', 1, code);
    const next = opened.run('sum', 1);
    const reason = { code: 'RANK_DIED', rank: 1, message: `rank 1 of 2 exited with code ${code}` };
    expect(await errorOf(job)).toMatchObject(reason);
    expect(await errorOf(next)).toMatchObject(reason);
    expect(await errorOf(opened.run('sum', 1))).toMatchObject(reason);
    await opened.close();
  });

  it('ends when a rank fails outside of its job', async () => {
    expect(await errorOf((await open(2)).run('reject'))).toMatchObject({
      code: 'RANK_DIED',
      cause: { message: 'nobody listens' },
    });
  });

  it('ends when its signal is aborted, even if ranks spin', async () => {
    const controller = new AbortController();
    const opened = await open(2, { signal: controller.signal, onMessage: () => controller.abort(new Error('enough')) });
    await expect(opened.run('spin')).rejects.toThrow('enough');
  });

  it('has ports to its ranks, and takes their messages', async () => {
    const answers: unknown[] = [];
    const opened = await open(2, { onMessage: (message, rank) => (answers[rank] = message) });
    const job = opened.run('answer');
    opened.ranks[1]!.postMessage('for rank 1');
    opened.ranks[0]!.postMessage(new Uint8Array(7));
    expect(await job).toEqual([7, 10]);
    expect(answers).toEqual([
      { rank: 0, got: new Uint8Array(7) },
      { rank: 1, got: 'for rank 1' },
    ]);
  });

  it('closes once, after its jobs, even if the module left timers or ports open', async () => {
    const opened = await open(2);
    await opened.run('linger');
    const job = opened.run('sum', 1);
    const closing = opened.close();
    expect(opened.close()).toBe(closing);
    await closing;
    expect(await job).toHaveLength(2);
    await expect(opened.run('sum', 1)).rejects.toThrow(
      expect.objectContaining({ code: 'CLOSED', message: 'run: the pool was closed before "sum" was run' }),
    );
  });

  const noSymbol = needsNode('20.4');
  it.skipIf(noSymbol)(`closes at the end of a block with await using, and its process exits${noSymbol}`, async () => {
    const script = `
      import { openPool } from ${JSON.stringify(new URL('../../dist/index.js', import.meta.url).href)};
      const pool = await openPool({ ranks: 2, module: ${JSON.stringify(pathToFileURL(module).href)} });
      const [first] = await pool.run('sum', 1);
      console.log(first.sum.join());
      await pool[Symbol.asyncDispose]();
    `;
    const { stdout, stderr, code } = await start(process.execPath, ['--input-type=module', '-e', script]).finished;
    expect({ stdout, stderr, code }).toEqual({ stdout: '3,3,3\n', stderr: '', code: 0 });
  });

  it.each([
    ['sums', [], 'UNKNOWN_NAME', 'run: the module exports no function "sums"; did you mean sum?; there are answer, exit'],
    ['notAFunction', [], 'UNKNOWN_NAME', 'run: the module exports no function "notAFunction"'],
    [() => 0, [], 'ARGUMENT_TYPE', 'run takes the name of a function that the module exports, not a function'],
    ['sum', [() => 0], 'ARGUMENT_TYPE', 'run: the arguments of sum cannot be copied to the ranks: () => 0 could not be cloned'],
  ])('refuses %s with %o and goes on', async (name, args, code, message) => {
    const opened = await open(1);
    await expect(opened.run(name as string, ...args)).rejects.toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(message) as string }),
    );
    expect(await opened.run('sum', 1)).toHaveLength(1);
  });

  it.each([
    [{ ranks: 0 }, 'ARGUMENT_RANGE', 'openPool takes a number of ranks from 1, not 0'],
    [{ module: 5 }, 'ARGUMENT_TYPE', 'openPool: module is a path or a file: URL'],
    [{ modul: '' }, 'UNKNOWN_NAME', 'openPool: there is no option "modul"; did you mean module?'],
    [{ module: '/no/such/module.mjs' }, 'FILE', 'openPool: the module /no/such/module.mjs does not exist'],
    [{ signal: 1 }, 'ARGUMENT_TYPE', 'openPool: signal is an AbortSignal, not 1'],
    [{ execArgv: ['--no-such-option'] }, 'ARGUMENT_TYPE', 'openPool cannot start rank 0'],
  ])('is not opened with %o', async (options, code, message) => {
    await expect(open(1, options as object)).rejects.toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(message) as string }),
    );
  });
});
