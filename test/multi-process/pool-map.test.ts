import { afterEach, describe, expect, it } from 'vitest';
import { type MapProgress, openPool, type Pool } from '../../dist/index.js';
import { fixture } from './cli.js';

let pool: Pool | undefined;
afterEach(async () => {
  await pool?.close().catch(() => undefined);
  pool = undefined;
});

async function open(ranks: number): Promise<Pool> {
  pool = await openPool({ ranks, module: fixture('pool-tasks.mjs'), graceMs: 50 });
  return pool;
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

/** Resolves when so many tasks have begun. */
async function begun(gate: Int32Array, count: number): Promise<void> {
  for (let now = Atomics.load(gate, 0); now < count; now = Atomics.load(gate, 0)) await Atomics.waitAsync(gate, 0, now).value;
}

describe('pool.map', () => {
  it.each([0, 1, 2, 7, 10_000])('has the results of %d items in their order', async (count) => {
    const opened = await open(3);
    expect(await opened.map('square', upTo(count))).toEqual(upTo(count).map((value) => value * value));
    expect(await opened.map('indexOf', new Set(upTo(count).map(String)))).toEqual(upTo(count));
  });

  it('gives further items to ranks that are free', async () => {
    const opened = await open(2);
    const gate = new Int32Array(new SharedArrayBuffer(8));
    // One rank is held up by the first item: the other does all that the first had not been sent already.
    const results = opened.map('held', [{ gate, holds: true }, ...upTo(200).map(() => ({ gate, holds: false }))]);
    await begun(gate, 190);
    Atomics.store(gate, 1, 1);
    expect(new Set(await results).size).toBe(2);
  });

  it('runs maps and jobs in the order of the calls', async () => {
    const opened = await open(2);
    const [first, second, third] = await Promise.all([
      opened.map('square', [1, 2, 3]),
      opened.run('sum', 5),
      opened.map('square', [4]),
    ]);
    expect([first, second, third]).toEqual([[1, 4, 9], [10, 10], [16]]);
  });

  it('tells its progress', async () => {
    const opened = await open(2);
    const told: MapProgress[] = [];
    await opened.map('square', upTo(500), { onProgress: (progress) => told.push(progress) });
    expect(told.at(-1)).toEqual({ done: 500, total: 500 });
    expect(told.map(({ done }) => done)).toEqual(told.map(({ done }) => done).toSorted((a, b) => a - b));
  });

  it('names the item that failed and its rank, begins no other, and the pool stays usable', async () => {
    const opened = await open(1);
    const told: MapProgress[] = [];
    const items = ['a', 'b', 'bad', 'd', 'e'];
    await expect(opened.map('fail', items, { onProgress: (each) => told.push(each) })).rejects.toMatchObject({
      code: 'JOB_FAILED',
      rank: 0,
      message: 'map: rank 0 failed in fail of item 2: told to fail',
      cause: { name: 'RangeError', code: 'TOLD' },
    });
    expect(told.at(-1)?.done ?? 0).toBeLessThan(3);
    expect(await opened.map('square', [3])).toEqual([9]);
    expect(await opened.run('sum', 1)).toEqual([1]);
  });

  it('ends with what the caller threw in onProgress', async () => {
    const opened = await open(2);
    const thrown = new Error('enough');
    await expect(
      opened.map('square', upTo(100), {
        onProgress() {
          throw thrown;
        },
      }),
    ).rejects.toBe(thrown);
    expect(await opened.map('square', [3])).toEqual([9]);
  });

  it('ends at once when its signal is aborted; ranks begin no further item', async () => {
    const opened = await open(2);
    const gate = new Int32Array(new SharedArrayBuffer(8));
    const cancel = new AbortController();
    const map = opened.map(
      'waitFor',
      upTo(100).map((index) => ({ gate, index })),
      { signal: cancel.signal },
    );
    await begun(gate, 2);
    const reason = new Error('no longer wanted');
    cancel.abort(reason);
    await expect(map).rejects.toBe(reason);
    Atomics.store(gate, 1, 1);
    expect(await opened.map('square', [3])).toEqual([9]);
    expect(gate[0]).toBe(2);
    await expect(opened.map('square', [3], { signal: cancel.signal })).rejects.toBe(reason);
  });

  it('does not begin when its signal is aborted while jobs before it run', async () => {
    const opened = await open(1);
    const gate = new Int32Array(new SharedArrayBuffer(8));
    const cancel = new AbortController();
    const first = opened.map('waitFor', [{ gate, index: 0 }]);
    const second = opened.map('waitFor', [{ gate, index: 1 }], { signal: cancel.signal });
    await begun(gate, 1);
    cancel.abort();
    await expect(second).rejects.toBe(cancel.signal.reason);
    Atomics.store(gate, 1, 1);
    await first;
    await opened.map('square', [1]);
    expect(gate[0]).toBe(1);
  });

  it('says which rank ended, and at which item, in place of a result', async () => {
    const opened = await open(1);
    await expect(opened.map('exit', upTo(5))).rejects.toMatchObject({
      code: 'RANK_DIED',
      rank: 0,
      message: 'map: rank 0 of 1 exited with code 3, in exit of item 2',
    });
    await expect(opened.map('square', [1])).rejects.toMatchObject({ code: 'RANK_DIED' });
  });

  it.each<readonly [args: readonly unknown[], message: string]>([
    [['sqare', [1]], 'map: the module exports no function "sqare"; did you mean square?'],
    [['square', 5], "map takes an array or another iterable of items, as in pool.map('digest', files, { signal }), not 5"],
    [['square', [1], { onprogress: 1 }], 'map: there is no option "onprogress"; did you mean onProgress?'],
    [['square', [1], { onProgress: 1 }], 'map: onProgress is a function, not 1'],
    [['square', [1], { signal: 1 }], 'map: signal is an AbortSignal, not 1'],
    [['square', [1, 2, () => 3]], 'map: item 2 of square cannot be copied to a rank: '],
    [['functionOf', [1, 2, 3, 4]], 'map: rank 0 failed in functionOf of item 2: the result of functionOf cannot be copied: '],
  ])('refuses %j', async (args, message) => {
    const opened = await open(1);
    const map = opened.map.bind(opened) as (...given: readonly unknown[]) => Promise<unknown>;
    await expect(map(...args)).rejects.toThrow(message);
    expect(await opened.map('square', [3])).toEqual([9]);
  });

  it('says that a function written for run gets no communicator', async () => {
    const opened = await open(1);
    const failed = 'map: rank 0 failed in';
    const advice = '; map calls sum(item, index), without a communicator, and run sum(comm, …)';
    await expect(opened.map('sum', [1])).rejects.toThrow(`${failed} sum of item 0: comm.allReduce is not a function${advice}`);
    await expect(opened.map('words', [1])).rejects.toMatchObject({
      message: `${failed} words of item 0: text.split is not a function`,
    });
  });

  it('refuses after close()', async () => {
    const opened = await open(1);
    await opened.close();
    await expect(opened.map('square', [1])).rejects.toMatchObject({ code: 'CLOSED' });
  });
});
