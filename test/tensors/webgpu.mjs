// Jobs of ranks whose tensors are in GPUBuffers of Dawn: `tccl run -n 2 node webgpu.mjs JOB`. Each prints its result as JSON.
import * as tf from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-layers'; // registers the gradients of all operations
import { init } from '../../dist/index.js';
import {
  dataParallel,
  deviceTensors,
  loadCheckpoint,
  saveCheckpoint,
  tensorCalls,
  tfjsTensors,
  whenGradient,
} from '../../dist/ddp/index.js';
import { webgpu } from '../../dist/webgpu/index.js';
import { gpu as dawn, newDevice } from '../webgpu/devices.mjs';

globalThis.navigator ??= {};
Object.defineProperty(navigator, 'gpu', { value: dawn });
await import('@tensorflow/tfjs-backend-webgpu');
tf.enableProdMode();
await tf.setBackend('webgpu');

const show = async (tensor) => ({ shape: tensor.shape, type: tensor.dtype, data: [...(await tensor.data())] });
const messageOf = (promise) => promise.then(String, ({ code, message }) => `${code}: ${message}`);
/** A tensor whose values are in a GPUBuffer: those of a constructor stay on the host until an operation needs them. */
const onGpu = (values, shape, dtype) => tf.tidy(() => tf.add(tf.zeros(shape, dtype), tf.tensor(values, shape, dtype)));

async function withGpu(comm, job) {
  // The backend computes with few elements on the host otherwise.
  tf.env().set('WEBGPU_CPU_FORWARD', false);
  const gpu = await webgpu(comm, tf.backend().device);
  const result = await job(gpu);
  await gpu.close();
  return result;
}

const jobs = {
  calls: (comm) =>
    withGpu(comm, async (gpu) => {
      const calls = tensorCalls(comm, tfjsTensors(tf, gpu));
      const one = onGpu([1, 2, 3, 4], [2, 2]);
      const matrix = tf.mul(one, comm.rank + 1);
      const before = tf.memory().numTensors;
      // Without await between them, and of different lengths: carried out in order.
      const [sum, max, scalar] = await Promise.all([
        calls.allReduce(matrix),
        calls.allReduce(onGpu([comm.rank, 5], [2], 'int32'), 'max'),
        calls.broadcast(tf.scalar(comm.rank + 7), 1),
      ]);
      const rows = await calls.allGather(onGpu([comm.rank, 9], [1, 2]));
      const either = await calls.allReduce(tf.tensor1d([comm.rank, 0, 1], 'bool'), 'max');
      const kept = tf.memory().numTensors - before;
      const isOnGpu = sum.dataToGPU().buffer.size;
      return {
        sum: await show(sum),
        max: await show(max),
        rows: await show(rows),
        scalar: await show(scalar),
        either: await show(either),
        input: await show(matrix),
        isOnGpu,
        kept,
      };
    }),

  /** Trains a small network on this rank's share of the same points, for any number of ranks: losses of the steps. */
  training: (comm) =>
    withGpu(comm, async (gpu) => {
      const kernel = (name, rows, columns) =>
        tf.variable(
          onGpu(
            Float32Array.from({ length: rows * columns }, (_, i) => Math.sin(i + 1) + comm.rank),
            [rows, columns],
          ),
          true,
          name,
        );
      const parameters = {
        first: kernel('first', 2, 16),
        bias: tf.variable(tf.zeros([16]), true, 'bias'),
        second: kernel('second', 16, 1),
      };
      const ddp = await dataParallel(comm, parameters, { tensors: tfjsTensors(tf, gpu), bucketBytes: 80 });
      const points = Array.from({ length: 64 }, (_, i) => [Math.cos(i), Math.sin(2 * i)]);
      const own = points.filter((_, i) => i % comm.nRanks === comm.rank);
      const x = tf.tensor2d(own);
      const y = tf.tensor2d(own.map(([a, b]) => [a * b]));
      const optimizer = tf.train.sgd(0.05);
      const losses = [];
      const nTensors = new Set();
      for (let step = 0; step < 8; step++) {
        const loss = tf.tidy(() => {
          const watch = (name) => whenGradient(tf, parameters[name], (gradient) => ddp.ready(name, gradient));
          const forward = () => {
            const hidden = tf.tanh(tf.add(tf.matMul(x, watch('first')), watch('bias')));
            return tf.mean(tf.squaredDifference(tf.matMul(hidden, watch('second')), y));
          };
          // Disposes of the gradients as it ends: those that ready() got are copies.
          return tf.keep(tf.variableGrads(forward, Object.values(parameters)).value);
        });
        const gradients = await ddp.finish();
        optimizer.applyGradients(gradients);
        tf.dispose(gradients);
        losses.push((await ddp.average({ loss: (await loss.data())[0] })).loss);
        loss.dispose();
        nTensors.add(tf.memory().numTensors);
      }
      ddp.close();
      return { losses, nBuckets: ddp.nBuckets, leaks: nTensors.size > 1 };
    }),

  /** Arrays of the device as parameters, over several backward passes, and as a file. */
  arrays: (comm, file) =>
    withGpu(comm, async (gpu) => {
      const tensors = deviceTensors(gpu);
      const of = async (...values) => {
        const array = await gpu.alloc(Float32Array, values.length);
        await array.upload(Float32Array.from(values));
        return array;
      };
      const weights = await of(comm.rank + 1, 5);
      const bias = await of(7);
      const ddp = await dataParallel(comm, { weights, bias }, { tensors });
      const started = [...(await weights.download())];
      const gradient = await of(comm.rank, 1);
      const backward = () => {
        ddp.ready('weights', gradient);
        ddp.ready('bias', bias);
      };
      await ddp.noSync(backward);
      await gradient.upload(Float32Array.of(10, 20));
      backward();
      const averaged = await ddp.finish({ maxNorm: 1e9 });
      const gradients = [[...(await averaged.weights.download())], [...(await averaged.bias.download())]];
      await saveCheckpoint(comm, file, { weights, bias }, { tensors });
      await weights.upload(Float32Array.of(-1, -1));
      await loadCheckpoint(comm, file, { weights, bias }, { tensors });
      return { started, gradients, norm: ddp.gradientNorm, loaded: [...(await weights.download())] };
    }),

  /** Messages of errors. */
  refusals: (comm) =>
    withGpu(comm, async (gpu) => {
      const said = {};
      const x = await gpu.alloc(Float32Array, 2);
      const tensors = deviceTensors(gpu);
      const attempt = async (name, run) => (said[name] = await messageOf((async () => run())()));
      await attempt('no device', () => tfjsTensors(tf, {}));
      await attempt('adapter', () => tfjsTensors(tf, tf.backend().device));
      await attempt('no tensors', () => dataParallel(comm, { x: new Float32Array(2) }, { tensors }));
      await attempt('not variable', () => dataParallel(comm, { x: onGpu([1], [1]) }, { tensors: tfjsTensors(tf, gpu) }));
      const other = await webgpu(comm, await newDevice());
      await attempt('other device', () => tensorCalls(comm, tfjsTensors(tf, other)).allReduce(onGpu([1], [1])));
      await other.close();
      const ddp = await dataParallel(comm, { x }, { tensors });
      await attempt('in noSync', () => ddp.noSync(async () => ddp.ready('x', await gpu.alloc(Float32Array, 3))));
      await attempt('no tensor', () => ddp.ready('x', new Float32Array(2)));
      await attempt('second', () => ddp.noSync(() => (ddp.ready('x', x), ddp.ready('x', x))));
      await attempt('class', () => ddp.noSync(async () => ddp.ready('x', await gpu.alloc(Float64Array, 2))));
      // The communicator is whole still.
      ddp.ready('x', x);
      await ddp.finish();
      if (comm.rank === 1) {
        const freed = await gpu.alloc(Float32Array, 2);
        freed.free();
        ddp.ready('x', freed);
      } else ddp.ready('x', x);
      await attempt('freed', () => ddp.finish());
      return said;
    }),
};

const comm = await init();
const [job, ...rest] = process.argv.slice(2);
console.log(JSON.stringify(await jobs[job](comm, ...rest)));
await comm.close();
