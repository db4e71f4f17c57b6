// Data-parallel training: every rank has the whole model and a share of each batch. While the backward pass goes on, the
// ranks already average the gradients that it has computed; then all take the same step. Run it in this folder:
//
//   npm install
//   npx tccl run -n 4 -- node train.mjs
//   npx tccl run -n 1 -- node train.mjs       (the same loss, to rounding)
import '@tensorflow/tfjs-backend-cpu';
import * as tf from '@tensorflow/tfjs-core';
import { layers, sequential } from '@tensorflow/tfjs-layers';
import { init } from 'tccl';
import { dataParallel, tfjsTensors, whenGradient } from 'tccl/ddp';
import { PIXELS, readDigits } from './digits.mjs';

const [epochs, batchSize, learningRate] = [Number(process.env.EPOCHS ?? 3), 240, 0.1];

tf.enableProdMode(); // no advertisement in the output
const comm = await init();
if (batchSize % comm.nRanks !== 0) throw new Error(`a batch of ${batchSize} does not divide by ${comm.nRanks} ranks`);
const { train, test } = readDigits();
const share = batchSize / comm.nRanks;
const batches = Math.floor(train.count / batchSize);

const model = sequential({
  layers: [
    layers.dense({ inputShape: [PIXELS], units: 64, activation: 'relu', kernelInitializer: seeded(1) }),
    layers.dense({ units: 10, kernelInitializer: seeded(2) }),
  ],
});
const weights = Object.fromEntries(model.trainableWeights.map((weight) => [weight.name, weight.read()]));
const optimizer = tf.train.sgd(learningRate);

// All ranks start from rank 0's weights. The gradients of the first kernel, which come last, have a bucket of their own.
const ddp = await dataParallel(comm, weights, { tensors: tfjsTensors(tf), bucketBytes: 2 ** 16 });
let training = false;
for (const weight of model.trainableWeights) {
  const read = weight.read.bind(weight);
  weight.read = () => (training ? whenGradient(tf, read(), (gradient) => ddp.ready(weight.name, gradient)) : read());
}

let computing = 0;
let communicating = 0;
for (let epoch = 1; epoch <= epochs; epoch++) {
  let loss = 0;
  for (let batch = 0; batch < batches; batch++) {
    const first = batch * batchSize + comm.rank * share;
    const begun = performance.now();
    loss += backward(train.slice(first, share));
    const computed = performance.now();
    const gradients = await ddp.finish();
    const reduced = performance.now();
    optimizer.applyGradients(gradients);
    tf.dispose(gradients);
    computing += computed - begun + (performance.now() - reduced);
    communicating += reduced - computed;
  }
  const mean = await ddp.average({ loss: loss / batches });
  if (comm.rank === 0) console.log(`epoch ${epoch}: loss ${mean.loss.toFixed(6)}`);
}
if (comm.rank === 0) {
  console.log(`accuracy on ${test.count} other digits: ${(100 * accuracy(test)).toFixed(2)}%`);
  console.log(
    `computation ${(computing / 1e3).toFixed(2)} s, waiting for gradients ${(communicating / 1e3).toFixed(2)} s (${comm.nRanks} ranks)`,
  );
}
await comm.close();

/** Computes the gradients of all weights, and hands each over as soon as it is there; returns the mean loss. */
function backward(digits) {
  training = true;
  try {
    return tf.tidy(() => {
      const x = tf.tensor2d(digits.pixels, [digits.count, PIXELS]);
      const labels = tf.oneHot(tf.tensor1d(digits.labels, 'int32'), 10);
      const { value } = tf.variableGrads(() => tf.losses.softmaxCrossEntropy(labels, model.apply(x)), Object.values(weights));
      return value.dataSync()[0];
    });
  } finally {
    training = false;
  }
}

function accuracy(digits) {
  return tf.tidy(() => {
    const guesses = tf.argMax(model.predict(tf.tensor2d(digits.pixels, [digits.count, PIXELS])), 1).dataSync();
    return guesses.filter((guess, i) => guess === digits.labels[i]).length / digits.count;
  });
}

function seeded(seed) {
  return { className: 'GlorotUniform', config: { seed } };
}
