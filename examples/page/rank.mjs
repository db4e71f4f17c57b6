// A rank: trains a network of two inputs, 16 hidden units and one output on its part of the points.
import { init } from '/tccl/index.js';

const N_POINTS = 400;
const N_HIDDEN = 16;
const N_EPOCHS = 200;
const RATE = 0.5;

const comm = await init();
/** Two interleaved half-circles: x, y, and 1 for points of the second. */
const points = Array.from({ length: N_POINTS }, (_, i) => {
  const angle = (Math.PI * (i >> 1)) / (N_POINTS / 2 - 1);
  return i % 2 === 0 ? [Math.cos(angle), Math.sin(angle), 0] : [1 - Math.cos(angle), 0.5 - Math.sin(angle), 1];
});
/** Weights of each hidden unit: of x, of y, its bias, and of its output; then the output's bias. All ranks begin alike. */
const weights = Float64Array.from({ length: 4 * N_HIDDEN + 1 }, (_, i) => Math.sin(12.9898 * (i + 1)));
/** Gradients of the weights, then the loss: one all-reduce adds both. */
const sums = comm.alloc(Float64Array, weights.length + 1);
const hidden = new Float64Array(N_HIDDEN);

for (let epoch = 1; epoch <= N_EPOCHS; epoch++) {
  sums.fill(0);
  for (let point = comm.rank; point < N_POINTS; point += comm.nRanks) addGradients(...points[point]);
  await comm.allReduce(sums);
  for (let i = 0; i < weights.length; i++) weights[i] -= (RATE * sums[i]) / N_POINTS;
  if (comm.rank === 0) postMessage({ epoch, nEpochs: N_EPOCHS, loss: sums.at(-1) / N_POINTS });
}
await comm.close();

/** Adds the gradients of the cross-entropy of one point. */
function addGradients(x, y, label) {
  let output = weights[4 * N_HIDDEN];
  for (let unit = 0; unit < N_HIDDEN; unit++) {
    const at = 4 * unit;
    hidden[unit] = Math.tanh(weights[at] * x + weights[at + 1] * y + weights[at + 2]);
    output += weights[at + 3] * hidden[unit];
  }
  const probability = 1 / (1 + Math.exp(-output));
  const error = probability - label;
  for (let unit = 0; unit < N_HIDDEN; unit++) {
    const at = 4 * unit;
    const back = error * weights[at + 3] * (1 - hidden[unit] ** 2);
    sums[at] += back * x;
    sums[at + 1] += back * y;
    sums[at + 2] += back;
    sums[at + 3] += error * hidden[unit];
  }
  sums[4 * N_HIDDEN] += error;
  sums[4 * N_HIDDEN + 1] -= Math.log(label === 1 ? probability : 1 - probability);
}
