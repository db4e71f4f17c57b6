import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openPool, type Pool } from '../../dist/index.js';

const folder = fileURLToPath(new URL('../tensors', import.meta.url));
const isInstalled = existsSync(`${folder}/node_modules`);
const missing = isInstalled ? '' : ' (needs: npm ci --ignore-scripts --prefix test/tensors)';

describe.skipIf(!isInstalled)(`tensors of libraries${missing}`, () => {
  let pool: Pool;
  beforeAll(async () => {
    pool = await openPool({ ranks: 2, module: `${folder}/jobs.mjs` });
  });
  afterAll(() => pool.close());

  it('of TensorFlow.js are reduced, gathered and broadcast', async () => {
    const results = await pool.run('tfjsCalls');
    results.forEach((result, rank) => {
      expect(result).toEqual({
        sum: { shape: [2, 2], type: 'float32', data: [3, 6, 9, 12] },
        max: { shape: [2], type: 'int32', data: [1, 5] },
        rows: { shape: [2, 2], type: 'float32', data: [0, 9, 1, 9] },
        scalar: { shape: [], type: 'float32', data: [8] },
        input: { shape: [2, 2], type: 'float32', data: [1, 2, 3, 4].map((x) => x * (rank + 1)) },
      });
    });
  });

  it('of TensorFlow.js without numbers, or that cannot change, are refused', async () => {
    const [messages] = await pool.run('tfjsErrors');
    expect(messages).toEqual([
      'tfjsTensors: a tensor of dtype string has an object of class Array as its elements, not numbers',
      'dataParallel: a tensor of TensorFlow.js cannot change; pass a tf.variable',
    ]);
  });

  it('of TensorFlow.js are trained: gradients are averaged during the backward pass', async () => {
    const float = (shape: number[], data: number[]) => ({ shape, type: 'float32', data });
    // dy/du = x·vᵀ and dy/dv = (x·u)ᵀ, with x = 1 and 2 on the two ranks, u = [1, 2] and v = [3, 0] of rank 0.
    const averages = [float([1, 2], [4.5, 0]), float([2, 1], [1.5, 3])];
    for (const result of await pool.run('tfjsTraining')) {
      expect(result).toEqual({
        started: [float([1, 2], [1, 2]), float([2, 1], [3, 0])],
        order: ['v', 'u', 'v', 'u'],
        averages: [averages, averages],
      });
    }
  });

  it('have gradients that are kept and clipped', async () => {
    for (const result of await pool.run('clipped')) {
      expect(result).toEqual({
        gradients: [
          { shape: [1, 2], type: 'float32', data: [2.5, 6] },
          { shape: [2], type: 'float16', data: [0x4000, 0x4000] },
        ],
        norms: [13, Math.sqrt(8)],
      });
    }
  });

  it('are saved and loaded with their shapes', async () => {
    const temporary = mkdtempSync(join(tmpdir(), 'tccl-tensors-'));
    for (const result of await pool.run('checkpoints', join(temporary, 'model.safetensors'))) {
      expect(result).toEqual({
        kernel: { shape: [2, 3], type: 'float32', data: Array(6).fill(1) },
        refused: 'kernel is float32 [2,3] there, float32 [3,2] here',
        loaded: { shape: [2], type: 'float16', data: [0x3c00, 0x4000] },
      });
    }
    rmSync(temporary, { recursive: true });
  });

  it('of ONNX Runtime are reduced and gathered, and can be inputs again', async () => {
    for (const result of await pool.run('onnxCalls')) {
      expect(result).toEqual({
        sum: { shape: [2], type: 'float32', data: [2, 4] },
        again: { shape: [2], type: 'float32', data: [4, 8] },
        rows: { shape: [2, 1], type: 'int64', data: [0n, 1n] },
        half: { shape: [2], type: 'float16', data: [0x3c00, 0x4000] },
      });
    }
  });

  it('of ONNX Runtime are parameters and gradients', async () => {
    for (const result of await pool.run('onnxParameters')) {
      expect(result).toEqual({
        weight: { shape: [1, 2], type: 'float32', data: [1, 5] },
        gradient: { shape: [1, 2], type: 'float32', data: [0.5, 10] },
      });
    }
  });

  it('keep their types', () => {
    const project = mkdtempSync(join(tmpdir(), 'tccl-tensors-'));
    const repository = join(folder, '../..');
    mkdirSync(join(project, 'node_modules'));
    symlinkSync(repository, join(project, 'node_modules/tccl'));
    for (const name of ['@tensorflow', 'onnxruntime-node', 'onnxruntime-common'])
      symlinkSync(join(folder, 'node_modules', name), join(project, 'node_modules', name));
    const lines = [
      "import * as tf from '@tensorflow/tfjs-core';",
      "import * as ort from 'onnxruntime-node';",
      "import { init } from 'tccl';",
      "import { dataParallel, deviceTensors, onnxTensors, tensorCalls, tfjsTensors, whenGradient } from 'tccl/ddp';",
      "import { webgpu, type DeviceArray } from 'tccl/webgpu';",
      'const comm = await init();',
      "const t: tf.Tensor = await tensorCalls(comm, tfjsTensors(tf)).allReduce(tf.tensor([1]), 'avg');",
      'const v: tf.Tensor = tf.variable(t);',
      'const ddp = await dataParallel(comm, { v }, { tensors: tfjsTensors(tf) });',
      "const w: tf.Tensor = whenGradient(tf, v, (gradient) => ddp.ready('v', gradient));",
      "const one = new ort.Tensor('float32', [1], [1]);",
      'const o: ort.Tensor = await tensorCalls(comm, onnxTensors(ort)).allGather(one);',
      'const plain = await dataParallel(comm, { x: new Float32Array(1) });',
      "plain.ready('x', new Float32Array(1));",
      'const gpu = await webgpu(comm);',
      'const onGpu = await dataParallel(comm, { v }, { tensors: tfjsTensors(tf, gpu) });',
      'const gradient: tf.Tensor = (await onGpu.finish()).v;',
      'const p: ort.Tensor = await tensorCalls(comm, onnxTensors(ort, gpu)).broadcast(one);',
      'const x = await gpu.alloc(Float32Array, 4);',
      'const arrays = await dataParallel(comm, { x }, { tensors: deviceTensors(gpu) });',
      'const mean: DeviceArray = (await arrays.finish()).x;',
      '// @ts-expect-error another library',
      "ddp.ready('v', one);",
      'export const all = [w, o, gradient, p, mean];',
    ];
    writeFileSync(join(project, 'check.ts'), lines.join('\n'));
    writeFileSync(join(project, 'package.json'), '{ "type": "module" }');
    const options = [
      '--noEmit',
      '--strict',
      '--module',
      'nodenext',
      '--target',
      'es2022',
      '--skipLibCheck',
      '--preserveSymlinks',
    ];
    const tsc = join(repository, 'node_modules/typescript/bin/tsc');
    const { stdout, status } = spawnSync(process.execPath, [tsc, ...options, 'check.ts'], { cwd: project, encoding: 'utf8' });
    rmSync(project, { recursive: true });
    expect({ stdout, status }).toEqual({ stdout: '', status: 0 });
  });
});
