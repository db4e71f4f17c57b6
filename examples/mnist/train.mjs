// Data-parallel training: every rank has the whole model and a share of each batch; after each batch the ranks average
// their gradients, so that all take the same step. Run it in this folder:
//
//   npm install
//   npx tccl run -n 4 -- node train.mjs
//   npx tccl run -n 1 -- node train.mjs       (the same loss, to rounding)
import '@tensorflow/tfjs-backend-cpu';
import * as tf from '@tensorflow/tfjs-core';
import { layers, sequential } from '@tensorflow/tfjs-layers';
import { init } from 'tccl';
import { PIXELS, readDigits } from './digits.mjs';

const [epochs, batchSize, learningRate] = [Number(process.env.EPOCHS ?? 3), 240, 0.1];

tf.enableProdMode(); // no advertisement in the output
const comm = await init();
if (batchSize % comm.nRanks !== 0) throw new Error(`a batch of ${batchSize} does not divide by ${comm.nRanks} ranks`);
const { train, test } = readDigits();
const share = batchSize / comm.nRanks;
const batches = Math.floor(train.count / batchSize);

// The same seeds on every rank: all start from the same weights.
const model = sequential({
  layers: [
    layers.dense({ inputShape: [PIXELS], units: 64, activation: 'relu', kernelInitializer: seeded(1) }),
    layers.dense({ units: 10, kernelInitializer: seeded(2) }),
  ],
});
const weights = model.trainableWeights.map((weight) => weight.read());
const optimizer = tf.train.sgd(learningRate);

// One array holds all gradients, so that one call averages them. It comes from alloc, so that the ranks of a host
// work on it in place.
const lengths = weights.map((weight) => weight.size);
const gradients = comm.alloc(Float32Array, lengths.reduce((sum, length) => sum + length, 0) + 1);

let computing = 0;
let communicating = 0;
for (let epoch = 1; epoch <= epochs; epoch++) {
  let loss = 0;
  for (let batch = 0; batch < batches; batch++) {
    const first = batch * batchSize + comm.rank * share;
    const begun = performance.now();
    gradients[gradients.length - 1] = computeGradients(train.slice(first, share), gradients);
    const computed = performance.now();
    await comm.allReduce(gradients, gradients, 'avg');
    const reduced = performance.now();
    applyGradients(gradients);
    loss += gradients[gradients.length - 1];
    computing += computed - begun + (performance.now() - reduced);
    communicating += reduced - computed;
  }
  if (comm.rank === 0) console.log(`epoch ${epoch}: loss ${(loss / batches).toFixed(6)}`);
}
if (comm.rank === 0) {
  console.log(`accuracy on ${test.count} other digits: ${(100 * accuracy(test)).toFixed(2)}%`);
  console.log(
    `computation ${(computing / 1e3).toFixed(2)} s, communication ${(communicating / 1e3).toFixed(2)} s (${comm.nRanks} ranks)`,
  );
}
await comm.close();

/** Writes the gradients of all weights into `into`, one after the other; returns the mean loss of these digits. */
function computeGradients(digits, into) {
  return tf.tidy(() => {
    const x = tf.tensor2d(digits.pixels, [digits.count, PIXELS]);
    const labels = tf.oneHot(tf.tensor1d(digits.labels, 'int32'), 10);
    const { value, grads } = tf.variableGrads(() => tf.losses.softmaxCrossEntropy(labels, model.apply(x)), weights);
    let at = 0;
    for (const weight of weights) {
      into.set(grads[weight.name].dataSync(), at);
      at += weight.size;
    }
    return value.dataSync()[0];
  });
}

function applyGradients(from) {
  tf.tidy(() => {
    let at = 0;
    optimizer.applyGradients(
      Object.fromEntries(
        weights.map((weight) => {
          const gradient = tf.tensor(from.slice(at, at + weight.size), weight.shape);
          at += weight.size;
          return [weight.name, gradient];
        }),
      ),
    );
  });
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
