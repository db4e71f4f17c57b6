import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { environment, missing as missingDawn } from './dawn.js';
import { forEach, ranksOf, started } from './device-ranks.js';

const folder = fileURLToPath(new URL('../tensors', import.meta.url));
const missing = existsSync(`${folder}/node_modules/@tensorflow/tfjs-backend-webgpu`)
  ? missingDawn
  : ' (needs: npm ci --ignore-scripts --prefix test/tensors)';

/** Runs a job of test/tensors/webgpu.mjs. Returns what each rank said, in the order of ranks. */
const run = (nRanks: number, job: readonly string[]): readonly unknown[] =>
  started(ranksOf(nRanks, ['node', `${folder}/webgpu.mjs`, ...job]), environment);

const both = <T>(of: (rank: number) => T): readonly T[] => forEach(2, of);

describe.skipIf(missing)(`tensors in GPUBuffers${missing}`, () => {
  it('of TensorFlow.js are reduced, gathered and broadcast, and none stays behind', () => {
    const float = (shape: number[], data: number[]) => ({ shape, type: 'float32', data });
    expect(run(2, ['calls'])).toEqual(
      both((rank) => ({
        sum: float([2, 2], [3, 6, 9, 12]),
        max: { shape: [2], type: 'int32', data: [1, 5] },
        rows: float([2, 2], [0, 9, 1, 9]),
        scalar: float([], [8]),
        either: { shape: [3], type: 'bool', data: [1, 0, 1] },
        input: float(
          [2, 2],
          [1, 2, 3, 4].map((x) => x * (rank + 1)),
        ),
        isOnGpu: 16,
        // Four inputs and five results.
        kept: 9,
      })),
    );
  });

  it('of TensorFlow.js are trained by two ranks with the losses of one', () => {
    const [one] = run(1, ['training']) as readonly { readonly losses: readonly number[] }[];
    const two = run(2, ['training']);
    expect(two).toEqual(
      both(() => ({ losses: one?.losses.map((loss) => expect.closeTo(loss, 5) as number), nBuckets: 3, leaks: false })),
    );
    expect(one?.losses[7]).toBeLessThan((one?.losses[0] ?? 0) / 20);
  });

  it('are arrays of the device: averaged over passes, scaled, saved and loaded', () => {
    const temporary = mkdtempSync(join(tmpdir(), 'tccl-gpu-tensors-'));
    const [weights, bias] = [[10.5, 21], [14]];
    expect(run(2, ['arrays', join(temporary, 'model.safetensors')])).toEqual(
      both(() => ({ started: [1, 5], gradients: [weights, bias], norm: Math.hypot(...weights, ...bias), loaded: [1, 5] })),
    );
    rmSync(temporary, { recursive: true });
  });

  it('are refused with one line each', () => {
    const device = 'pass a device, as in tfjsTensors(tf, gpu) after const gpu = await webgpu(comm), not an object of class';
    const freed = 'ready: the gradient of x: download: the array was freed; pass one that was not';
    expect(run(2, ['refusals'])).toEqual(
      both((rank) => ({
        'no device': `ARGUMENT_TYPE: tfjsTensors: ${device} Object`,
        adapter: `ARGUMENT_TYPE: tfjsTensors: ${device} GPUDevice`,
        'no tensors': 'ARGUMENT_TYPE: deviceTensors: pass an array of the device, not an object of class Float32Array',
        'not variable': 'ARGUMENT_TYPE: dataParallel: a tensor of TensorFlow.js cannot change; pass a tf.variable',
        'other device':
          'ARGUMENT_TYPE: download: the GPUBuffer is of another GPUDevice than that of webgpu(); pass a buffer that this device made',
        'in noSync': 'BUFFER_SIZE: ready: the gradient of x has 3 elements, its parameter 2',
        'no tensor': 'ARGUMENT_TYPE: deviceTensors: pass an array of the device, not an object of class Float32Array',
        second:
          'UNSUPPORTED: ready: the gradient of x is there already; add up gradients of one step first, and call finish() before the next, or noSync()',
        class:
          'ARGUMENT_TYPE: ready: the gradient of x is an object of class Float64Array, its parameter an object of class Float32Array',
        freed: rank === 1 ? `BUFFER_DETACHED: ${freed}` : `ABORTED: rank 1 aborted the communicator: ${freed}`,
      })),
    );
  });
});
