// Jobs of a pool that exchange tensors of TensorFlow.js and ONNX Runtime.
import * as tf from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-backend-cpu';
import '@tensorflow/tfjs-layers'; // registers the gradients of all operations
import * as ort from 'onnxruntime-node';
import {
  dataParallel,
  loadCheckpoint,
  onnxTensors,
  saveCheckpoint,
  tensorCalls,
  tfjsTensors,
  whenGradient,
} from '../../dist/ddp/index.js';

tf.enableProdMode();
await tf.setBackend('cpu');
const show = (tensor) => ({
  shape: tensor.shape ?? tensor.dims,
  type: tensor.dtype ?? tensor.type,
  data: [...(tensor.data?.length ? tensor.data : tensor.dataSync())],
});

export async function tfjsCalls(comm) {
  const calls = tensorCalls(comm, tfjsTensors(tf));
  const matrix = tf.mul(tf.tensor2d([1, 2, 3, 4], [2, 2]), comm.rank + 1);
  const sum = await calls.allReduce(matrix);
  const max = await calls.allReduce(tf.tensor1d([comm.rank, 5], 'int32'), 'max');
  const rows = await calls.allGather(tf.tensor2d([comm.rank, 9], [1, 2]));
  const scalar = await calls.broadcast(tf.scalar(comm.rank + 7), 1);
  return { sum: show(sum), max: show(max), rows: show(rows), scalar: show(scalar), input: show(matrix) };
}

export async function tfjsErrors(comm) {
  const tensors = tfjsTensors(tf);
  const messageOf = (promise) => promise.then(String, ({ message }) => message);
  return [
    await messageOf(tensorCalls(comm, tensors).allReduce(tf.tensor1d(['a']))),
    await messageOf(dataParallel(comm, { x: tf.tensor1d([1]) }, { tensors })),
  ];
}

/** Two steps of a model y = (x·u)·v with other data on each rank. */
export async function tfjsTraining(comm) {
  const u = tf.variable(tf.tensor2d([[comm.rank + 1, 2]]), true, 'u');
  const v = tf.variable(tf.tensor2d([[3], [comm.rank]]), true, 'v');
  const ddp = await dataParallel(comm, { u, v }, { tensors: tfjsTensors(tf), bucketBytes: 1 });
  const started = [show(u), show(v)];
  const order = [];
  const x = tf.tensor2d([[comm.rank + 1]]);
  const watch = (name, variable) =>
    whenGradient(tf, variable, (gradient) => {
      order.push(name);
      ddp.ready(name, gradient);
    });
  const averages = [];
  for (let step = 0; step < 2; step++) {
    tf.tidy(() => tf.variableGrads(() => tf.sum(tf.matMul(tf.matMul(x, watch('u', u)), watch('v', v))), [u, v]));
    const gradients = await ddp.finish();
    averages.push([show(gradients.u), show(gradients.v)]);
    tf.train.sgd(0).applyGradients(gradients);
    tf.dispose(gradients);
  }
  ddp.close();
  return { started, order, averages };
}

/** Kept gradients of tensors, clipped: the sums of both steps have the norm 13 on average. */
export async function clipped(comm) {
  const u = tf.variable(tf.tensor2d([[0, 0]]));
  const half = new ort.Tensor('float16', new Uint16Array(2), [2]);
  const ofTfjs = await dataParallel(comm, { u }, { tensors: tfjsTensors(tf) });
  const ofOnnx = await dataParallel(comm, { half }, { tensors: onnxTensors(ort) });
  const backward = (gradient) => {
    ofTfjs.ready('u', tf.tensor2d([gradient.map((each) => each * 2 * comm.rank)]));
    // 1 and 2 as float16.
    ofOnnx.ready('half', new ort.Tensor('float16', Uint16Array.of(0x3c00, comm.rank === 0 ? 0 : 0x4000), [2]));
  };
  await ofTfjs.noSync(() => ofOnnx.noSync(() => backward([5, 2])));
  backward([0, 10]);
  const gradients = [(await ofTfjs.finish({ maxNorm: 6.5 })).u, (await ofOnnx.finish({ maxNorm: 1e9 })).half];
  return { gradients: gradients.map(show), norms: [ofTfjs.gradientNorm, ofOnnx.gradientNorm] };
}

/** Tensors that are saved and loaded, and refused in another shape. */
export async function checkpoints(comm, file) {
  const tensors = { tensors: tfjsTensors(tf) };
  const kernelOf = (value, shape) => tf.variable(tf.fill(shape, value));
  await saveCheckpoint(comm, file, { kernel: kernelOf(comm.rank + 1, [2, 3]) }, tensors);
  const kernel = kernelOf(0, [2, 3]);
  await loadCheckpoint(comm, file, { kernel }, tensors);
  const refused = await loadCheckpoint(comm, file, { kernel: kernelOf(0, [3, 2]) }, tensors).catch(({ message }) => message);
  const half = new ort.Tensor('float16', Uint16Array.of(0x3c00 + comm.rank, 0x4000), [2]);
  await saveCheckpoint(comm, file, { half }, { tensors: onnxTensors(ort) });
  const loaded = new ort.Tensor('float16', new Uint16Array(2), [2]);
  await loadCheckpoint(comm, file, { half: loaded }, { tensors: onnxTensors(ort) });
  return { kernel: show(kernel), refused: refused.replace(/.*: /, ''), loaded: show(loaded) };
}

/** A model of one node: y = x + x. */
function doubling() {
  const bytes = (text) => [...Buffer.from(text)];
  const field = (number, content) => [(number << 3) | 2, content.length, ...content];
  const value = (name) => [...field(1, bytes(name)), ...field(2, field(1, [8, 1, ...field(2, field(1, [8, 2]))]))];
  const node = [...field(1, bytes('x')), ...field(1, bytes('x')), ...field(2, bytes('y')), ...field(4, bytes('Add'))];
  const graph = [...field(1, node), ...field(2, bytes('g')), ...field(11, value('x')), ...field(12, value('y'))];
  return Uint8Array.from([8, 8, ...field(7, graph), ...field(8, [...field(1, []), 16, 13])]);
}

export async function onnxCalls(comm) {
  const calls = tensorCalls(comm, onnxTensors(ort));
  const session = await ort.InferenceSession.create(doubling());
  const { y } = await session.run({ x: new ort.Tensor('float32', [comm.rank, 1], [2]) });
  const sum = await calls.allReduce(y);
  const again = await session.run({ x: sum });
  const rows = await calls.allGather(new ort.Tensor('int64', BigInt64Array.of(BigInt(comm.rank)), [1, 1]));
  const half = await calls.allReduce(new ort.Tensor('float16', Uint16Array.of(0x3c00, 0x4000), [2]), 'avg');
  return { sum: show(sum), again: show(again.y), rows: show(rows), half: show(half) };
}

export async function onnxParameters(comm) {
  const weight = new ort.Tensor('float32', [comm.rank + 1, 5], [1, 2]);
  const ddp = await dataParallel(comm, { weight }, { tensors: onnxTensors(ort) });
  ddp.ready('weight', new ort.Tensor('float32', [comm.rank, 10], [1, 2]));
  const gradients = await ddp.finish();
  return { weight: show(weight), gradient: show(gradients.weight) };
}
