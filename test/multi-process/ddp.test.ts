import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openPool, type Pool } from '../../dist/index.js';
import { fixture } from './cli.js';

let pool: Pool;
beforeAll(async () => {
  pool = await openPool({ ranks: 3, module: fixture('ddp-jobs.mjs') });
});
afterAll(() => pool.close());

describe('dataParallel', () => {
  it.each([
    [1, 4],
    [300, 3],
    [2 ** 20, 1],
  ])('averages gradients in buckets of %s bytes, in any order', async (bucketBytes, nBuckets) => {
    const lengths = [5, 70, 300, 1];
    const expected = {
      nBuckets,
      // Those of rank 0.
      parameters: [[1], [1], [1], [1]],
      sums: [1, 2, 3].map((step) => lengths.map((length) => [2 * step * length])),
    };
    expect(await pool.run('steps', bucketBytes, 3)).toEqual([expected, expected, expected]);
  });

  it('begins an all-reduce as soon as its bucket and those before it are full', async () => {
    const expected = { d: [1], b: [1], a: [1], c: [1, 300, 70, 5] };
    expect(await pool.run('begun')).toEqual([expected, expected, expected]);
  });

  it('refuses parameters that differ, on all ranks', async () => {
    const outcomes = await pool.runSettled('differ');
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({
        reason: {
          code: 'CALL_MISMATCH',
          message:
            'dataParallel: rank 0 has "bias" (2 of Float32Array) as parameter 1, rank 1 "bias" (3 of Float32Array); pass the same parameters on all ranks',
        },
      });
    }
  });

  it('refuses wrong gradients and options, and stays usable', async () => {
    const results = (await pool.run('wrong')) as { messages: string[]; kernel: number }[];
    results.forEach(({ messages, kernel }, rank) => {
      expect(messages).toEqual([
        'UNKNOWN_NAME ready: there is no parameter "kernels"; did you mean kernel?',
        'BUFFER_SIZE ready: the gradient of kernel has 7 elements, its parameter 8',
        'ARGUMENT_TYPE ready: the gradient of kernel is an object of class Float64Array, its parameter an object of class Float32Array',
        'UNSUPPORTED ready: the gradient of kernel is there already; add up gradients of one step first, and call finish() before the next',
        `UNSUPPORTED finish: rank ${rank} has no gradient of bias; hand it to ready(), or give dataParallel { allowUnused: true }`,
        'UNKNOWN_NAME dataParallel: there is no option "bucketbytes"; did you mean bucketBytes?; there are tensors, bucketBytes, allowUnused',
        'ARGUMENT_RANGE dataParallel: bucketBytes is a number of bytes above 0, not 0',
      ]);
      expect(kernel).toBe(1);
    });
  });

  it('counts missing gradients as zeros where that is allowed', async () => {
    const [first] = (await pool.run('unused')) as [number[], bigint[]][];
    expect(first![0]).toEqual(Array(3).fill(expect.closeTo(4 / 3, 6)));
    expect(first![1]).toEqual([0n, 0n]);
  });

  it('averages metrics, with weights, and refuses different names', async () => {
    const results = await pool.runSettled('metrics');
    results.forEach((outcome) => {
      expect(outcome).toMatchObject({
        value: {
          plain: { loss: 1, accuracy: 0.5 },
          weighted: { loss: (0 * 1 + 1 * 2 + 2 * 3) / 6 },
          error: expect.stringMatching(/^CALL_MISMATCH average: rank \d passes \w+, another rank other names/) as string,
        },
      });
    });
  });

  it('rejects finish() with errors of all-reduces, and leaves no rejection unhandled', async () => {
    const outcomes = await pool.runSettled('fail');
    expect(outcomes[0]).toMatchObject({ reason: { code: 'ABORTED', rank: 1 } });
    expect(outcomes[1]).toMatchObject({ reason: { message: 'out of luck' } });
    expect(await pool.run('begun')).toHaveLength(3);
  });
});
