import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openPool, type Pool } from '../../dist/index.js';
import { fixture } from './cli.js';

/** The norm to which the job `trains` clips. */
const MAX_NORM = 1;

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
        'UNSUPPORTED ready: the gradient of kernel is there already; add up gradients of one step first, and call finish() before the next, or noSync()',
        `UNSUPPORTED finish: rank ${rank} has no gradient of bias; hand it to ready(), or give dataParallel { allowUnused: true }`,
        'UNKNOWN_NAME dataParallel: there is no option "bucketbytes"; did you mean bucketBytes?; there are tensors, bucketBytes, allowUnused',
        'ARGUMENT_RANGE dataParallel: bucketBytes is a number of bytes above 0, not 0',
      ]);
      expect(kernel).toBe(1);
    });
  });

  it('refuses arguments that it cannot use', async () => {
    const [messages] = await pool.run('refused');
    const tensors =
      'tensors is tfjsTensors(tf), onnxTensors(ort), deviceTensors(gpu) or an object with functions of these names, not';
    const all = 'which has no read, typeOf, make, write, shapeOf';
    expect(messages).toEqual([
      'ARGUMENT_TYPE dataParallel: pass a communicator of init() first, as in dataParallel(comm, { weights }), not an object of class Object',
      'ARGUMENT_TYPE dataParallel: pass a communicator of init() first, as in dataParallel(comm, { weights }), not an object of class Object',
      ...['undefined', '{}', 'an object of class Array'].map(
        (value) =>
          `ARGUMENT_TYPE dataParallel: pass a communicator and its parameters by name, as in dataParallel(comm, { weights }), not ${value} as parameters`,
      ),
      'ARGUMENT_TYPE dataParallel: parameter w is an object of class Array; pass a typed array: Float32Array.from(x)',
      'ARGUMENT_TYPE dataParallel: parameter v is the same array as w; pass it once, and add up its gradients',
      'ARGUMENT_TYPE dataParallel: parameter w is of int32, whose averages would be cut to whole numbers; pass it to comm.broadcast instead',
      `ARGUMENT_TYPE dataParallel: ${tensors} an object of class Object, ${all}`,
      'ARGUMENT_TYPE dataParallel: parameter w is an object of class Float32Array, no tensor to read: tensor.dataSync is not a function',
      'ARGUMENT_TYPE dataParallel: allowUnused is true or false, not "yes"',
      'ARGUMENT_TYPE tfjsTensors: pass the library, as in tfjsTensors(tf), not an object of class Object, which has no tensor',
      'ARGUMENT_TYPE onnxTensors: pass the library, as in onnxTensors(ort), not undefined, which has no Tensor',
      'ARGUMENT_TYPE whenGradient: pass the library, as in whenGradient(tf, tensor, ready), not an object of class Object, which has no customGrad',
      `ARGUMENT_TYPE tensorCalls: ${tensors} undefined, ${all}`,
      'ARGUMENT_TYPE tensorCalls: pass a communicator of init() first, as in tensorCalls(comm, tfjsTensors(tf)), not undefined',
      'ARGUMENT_TYPE ready: the gradient of w is undefined; pass a typed array',
      'UNKNOWN_NAME ready: there is no parameter undefined',
      'ARGUMENT_TYPE average: pass numbers by name, as in average({ loss }), not undefined',
      'ARGUMENT_TYPE average: a is a number, not "x"',
      'ARGUMENT_TYPE average: a is a number, not undefined',
      'ARGUMENT_RANGE average: the weight is a number from 0, not NaN',
      'ARGUMENT_RANGE average: the weight is a number from 0, not -1',
      'ARGUMENT_RANGE average: the weights of all ranks are 0; pass a weight above 0 on one rank at least',
    ]);
  });

  it('refuses calls after close(), but a second close()', async () => {
    const messages = [...['ready', 'finish', 'average'].map((call) => `CLOSED ${call}: this dataParallel was closed`), 'nothing'];
    const expected = { messages, array: [42, 42, 42, 42] };
    expect(await pool.run('closed')).toEqual([expected, expected, expected]);
  });

  it('keeps gradients of noSync() for the next step, of arrays of every type, in any order', async () => {
    const results = (await pool.run('kept')) as Record<string, unknown>[];
    for (const result of results) {
      expect(result).toEqual({
        // Averages of rank + 1, 10 (rank + 1) and 100 (rank + 1).
        sums: { single: [222, 222], double: [222], half: [0x5af0] },
        begunInside: 0,
        returned: 'result',
        next: { single: [2, 2], double: [2], half: [0x4000] },
        unused: { single: [2, 2], double: [0], half: [0] },
      });
    }
  });

  it('refuses noSync() out of order, and discards what it kept after an error', async () => {
    for (const [rank, { messages, after }] of ((await pool.run('keptWrong')) as Record<string, unknown>[]).entries()) {
      const unfinished = 'hand it to ready(), or give dataParallel { allowUnused: true }';
      expect(messages).toEqual([
        'ARGUMENT_TYPE noSync: pass a function, as in noSync(() => backward(batch)), not undefined',
        'undefined out of luck',
        `UNSUPPORTED noSync: rank ${rank} has no gradient of bias; ${unfinished}`,
        'UNSUPPORTED finish: a noSync() runs; wait for its end first',
        'UNSUPPORTED noSync: another noSync() runs; wait for its end first',
        'UNSUPPORTED ready: the gradient of kernel is there already; add up gradients of one step first, and call finish() before the next, or noSync()',
        'UNSUPPORTED noSync: this step has gradients already; wait for its end first',
      ]);
      expect(after).toEqual([[1], [1]]);
    }
  });

  it('scales gradients of all types down to one norm together, and leaves smaller ones and those beyond numbers', async () => {
    const results = (await pool.run('clipped')) as Record<string, unknown>[];
    for (const result of results) {
      expect(result).toEqual({
        larger: { norm: 13, single: [1.5, 2], double: [6], half: [0] },
        smaller: { norm: 13, single: [3, 4], double: [12], half: [0] },
        half: { norm: 4, single: [0, 0], double: [0], half: [0x3c00] },
        infinite: { norm: Infinity, single: [Infinity, 4], double: [12], half: [0] },
        without: { norm: undefined, single: [3, 4], double: [12], half: [0] },
        messages: [
          'ARGUMENT_RANGE finish: maxNorm is a finite number above 0, not 0',
          'ARGUMENT_RANGE finish: maxNorm is a finite number above 0, not "1"',
          'UNKNOWN_NAME finish: there is no option "maxnorm"; did you mean maxNorm?; there is maxNorm',
        ],
      });
    }
  });

  it.each([
    [1, 3],
    [2, 1],
    [2, 3],
    [4, 2],
  ])('%i ranks with %i steps of gradients each end with the weights of one rank', async (ranks, nKept) => {
    const [alone] = await pool.run('trainsAlone');
    const several = await openPool({ ranks, module: fixture('ddp-jobs.mjs') });
    try {
      const results = (await several.run('trains', nKept)) as { weights: number[]; norms: number[] }[];
      const { weights, norms } = alone as (typeof results)[number];
      for (const result of results) {
        expect(result).toEqual(results[0]);
        expect(result.weights).toEqual(weights.map((weight) => expect.closeTo(weight, 10) as number));
        expect(result.norms).toEqual(norms.map((norm) => expect.closeTo(norm, 10) as number));
      }
      // Some steps are clipped and others are not.
      expect(Math.max(...norms)).toBeGreaterThan(MAX_NORM);
      expect(Math.min(...norms)).toBeLessThan(MAX_NORM);
    } finally {
      await several.close();
    }
  });

  it('counts missing gradients as zeros where that is allowed', async () => {
    const [first] = (await pool.run('unused')) as [number[], number[]][];
    expect(first![0]).toEqual(Array(3).fill(expect.closeTo(4 / 3, 6)));
    expect(first![1]).toEqual([0, 0]);
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
