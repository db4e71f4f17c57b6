import { relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { openPool, RemoteError, spawnRanks } from '../../dist/index.js';
import { fixture, start } from './cli.js';

const thread = fixture('thread.mjs');

/** Runs ranks that fail, and gives the error. */
async function failureOf(nRanks: number, task: string): Promise<RemoteError> {
  const error: unknown = await spawnRanks(nRanks, thread, { args: [task], graceMs: 50 }).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof RemoteError)) throw new Error('ended without a RemoteError', { cause: error });
  return error;
}

describe('ranks as threads', () => {
  it('get their number, arguments, variables and data; their own threads are no ranks', async () => {
    const reports: unknown[] = [];
    await spawnRanks(2, new URL(`file://${thread}`), {
      args: ['report', '--fast'],
      env: { WORD: 'here' },
      workerData: { seed: 7 },
      onMessage: (message, rank) => {
        reports[rank] = message;
      },
    });
    expect(reports).toEqual(
      [0, 1].map((rank) => ({
        rank,
        nRanks: 2,
        launcher: 'threads',
        localRank: rank,
        nLocalRanks: 2,
        args: ['--fast'],
        workerData: { seed: 7 },
        word: 'here',
        placeOfChild: null,
      })),
    );
  });

  it('run the same code as processes', async () => {
    const results: unknown[] = [];
    await spawnRanks(3, fixture('sum.mjs'), {
      onMessage: (message, rank) => {
        results[rank] = message;
      },
    });
    expect(results).toEqual([0, 1, 2].map((rank) => ({ round: 0, rank, nRanks: 3, sums: [6, 6, 6, 6, 6] })));
  });

  it('share arrays of alloc with the thread that started them', async () => {
    const arrays: Float32Array[] = [];
    await spawnRanks(2, fixture('shared-array.mjs'), {
      onMessage: (message, rank) => {
        arrays[rank] = message as Float32Array;
      },
    });
    expect(arrays.map((array) => [array.buffer instanceof SharedArrayBuffer, ...array])).toEqual([
      [true, 3, 3, 3],
      [true, 3, 3, 3],
    ]);
  });

  it.each([relative(process.cwd(), thread), pathToFileURL(thread).href])('run the module %s', async (module) => {
    const ranks: number[] = [];
    await spawnRanks(2, module, { args: ['report'], onMessage: (_, rank) => ranks.push(rank) });
    expect(ranks.sort()).toEqual([0, 1]);
  });

  it('end when the handler of their messages throws, which is not their error', async () => {
    const ranks = spawnRanks(2, thread, {
      args: ['spin'],
      onMessage: () => {
        throw new Error('of the handler');
      },
    });
    await expect(ranks).rejects.toThrow(/^of the handler$/);
  });

  it('fail at a message that cannot be deserialized', async () => {
    expect(await failureOf(1, 'unreadable')).toMatchObject({
      rank: 0,
      message: expect.stringContaining('deserialize') as string,
    });
  });

  it('that throw are named, with their own error and its stack', async () => {
    const error = await failureOf(3, 'throw');
    expect(error).toMatchObject({ code: 'RANK_DIED', rank: 1, message: 'rank 1 of 3 failed: told to fail' });
    expect(error.cause).toMatchObject({
      name: 'RangeError',
      code: 'TOLD',
      stack: expect.stringMatching(/failAsTold .*thread\.mjs:\d+/) as string,
    });
  });

  it('that leave a rejection unhandled are named', async () => {
    expect(await failureOf(2, 'reject')).toMatchObject({ rank: 1, message: 'rank 1 of 2 failed: nobody listens' });
  });

  it('that exit are named with their code', async () => {
    expect(await failureOf(3, 'exit')).toMatchObject({ rank: 2, message: 'rank 2 of 3 exited with code 3' });
  });

  it('can be ended while they spin', async () => {
    expect(await failureOf(3, 'spin')).toMatchObject({ rank: 0 });
  });

  it.each([
    ['blocking', 'that throw'],
    ['promise', 'that throw'],
    ['promise', 'unsettled'],
  ])('that die fail the %s calls of the others (%s)', async (api, fate) => {
    const endings: unknown[] = [];
    const ranks = spawnRanks(3, fixture('bereaved.mjs'), {
      args: [api, fate],
      graceMs: 30_000,
      onMessage: (message, rank) => {
        endings[rank] = message;
      },
    });
    await expect(ranks).rejects.toMatchObject({ code: 'RANK_DIED', rank: 1 });
    expect(endings).toEqual([{ code: 'RANK_DIED', rank: 1 }, undefined, { code: 'RANK_DIED', rank: 1 }]);
  });

  it('get messages, also those posted before they run; buffers move', async () => {
    const answers: unknown[][] = [[], []];
    const ranks = spawnRanks(2, fixture('port.mjs'), {
      onMessage: (message, rank) => {
        if (answers[rank]!.push(message) === 2) ranks.ranks[rank]!.postMessage('end');
      },
    });
    const early = new Float32Array([1, 2]);
    const copied = { text: 'before' };
    ranks.ranks[0]!.postMessage(early, [early.buffer]);
    ranks.ranks[1]!.postMessage(copied);
    copied.text = 'after';
    expect(early.length).toBe(0);
    expect(() => ranks.ranks[1]!.postMessage(() => 0)).toThrow(
      expect.objectContaining({ code: 'ARGUMENT_TYPE', message: 'postMessage to rank 1: () => 0 could not be cloned.' }),
    );
    while (answers.some((got) => got.length === 0)) await new Promise(setImmediate);
    const late = new Uint8Array([3]);
    ranks.ranks[0]!.postMessage(late, [late.buffer]);
    ranks.ranks[1]!.postMessage('late');
    expect(late.length).toBe(0);
    await ranks;
    expect(answers).toEqual([
      [{ got: new Float32Array([1, 2]) }, { got: new Uint8Array([3]) }],
      [{ got: { text: 'before' } }, { got: 'late' }],
    ]);
  });

  it.each([
    ['idle', '0'],
    ['idle', '1'],
    ['call', '0'],
    ['call', '1'],
  ])('leave no descriptors when one with an engine thread fails: %s, TCCL_SHM_DISABLE=%s', async (state, disabled) => {
    const { stdout, ...end } = await start(process.execPath, [fixture('failing-engine-threads.mjs'), state], {
      env: { TCCL_SHM_DISABLE: disabled },
    }).finished;
    expect(end).toEqual({ code: 0, signal: null, stderr: '' });
    expect(JSON.parse(stdout)).toEqual({ codes: Array(4).fill('RANK_DIED'), left: 0 });
  });

  it('end when their signal is aborted', async () => {
    const controller = new AbortController();
    const ranks = spawnRanks(2, thread, {
      args: ['spin'],
      signal: controller.signal,
      onMessage: () => controller.abort(new Error('enough')),
    });
    await expect(ranks).rejects.toThrow('enough');
    await expect(spawnRanks(2, thread, { signal: controller.signal })).rejects.toThrow('enough');
  });

  it('without a module are an error', async () => {
    const code = 'FILE';
    for (const [call, failed] of [
      ['spawnRanks', (module: string) => spawnRanks(1, module)],
      ['openPool', (module: string) => openPool({ ranks: 1, module })],
    ] as const) {
      const message = `${call}: the module /no/such/module.js does not exist`;
      await expect(failed('/no/such/module.js')).rejects.toMatchObject({ code, message });
      await expect(failed('/')).rejects.toMatchObject({
        code,
        message: `${call}: the module / is a directory; name a file in it`,
      });
    }
  });

  it('whose top-level await cannot settle say what their exit code means', async () => {
    const module = new URL('fixtures/never.mjs', import.meta.url);
    await expect(spawnRanks(1, module)).rejects.toThrow(
      "rank 0 of 1 exited with code 13 (Node's for a top-level await that never settled: nothing that it waits for can still happen)",
    );
  });

  it.each([
    [2, thread, { args: 'x' }, 'ARGUMENT_TYPE', 'spawnRanks: args is an array of strings, not "x"'],
    [2, thread, { signal: 1 }, 'ARGUMENT_TYPE', 'spawnRanks: signal is an AbortSignal, not 1'],
    [2, thread, { env: 5 }, 'ARGUMENT_TYPE', 'spawnRanks: env is an object of variables, not 5'],
    [0, thread, {}, 'ARGUMENT_RANGE', 'a number of ranks from 1, not 0'],
    [1.5, thread, {}, 'ARGUMENT_RANGE', 'a number of ranks from 1, not 1.5'],
    [1, new URL('http://localhost/x.js'), {}, 'ARGUMENT_TYPE', 'spawnRanks cannot start rank 0'],
    [
      2,
      undefined,
      {},
      'ARGUMENT_TYPE',
      "spawnRanks: module is a path or a file: URL, as in spawnRanks(2, new URL('./rank.js', import.meta.url)), not undefined",
    ],
    [
      2,
      thread,
      { arg: ['throw'] },
      'UNKNOWN_NAME',
      'spawnRanks: there is no option "arg"; did you mean args?; there are args, env, workerData, execArgv, onMessage, graceMs, signal',
    ],
    [2, thread, null, 'ARGUMENT_TYPE', "spawnRanks: its options are an object, as in { args: ['--epochs', '3'] }, not null"],
    [2, thread, { workerData: () => 0 }, 'ARGUMENT_TYPE', 'spawnRanks cannot start rank 0'],
    [2, thread, { execArgv: ['--no-such-option'] }, 'ARGUMENT_TYPE', 'spawnRanks cannot start rank 0'],
  ])('are refused: %s ranks on %s with %o', async (nRanks, module, options, code, message) => {
    await expect(spawnRanks(nRanks, module as string, options as object)).rejects.toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(message) as string }),
    );
  });
});
