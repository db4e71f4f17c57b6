// Time of an all-reduce by an operator of the program's own beside 'sum': the best and the median of 7 rounds, in microseconds.
//     tccl run -n 2 --no-prefix node bench/own-operator.mjs
import { init } from 'tccl';

const ROUNDS = 7;
const comm = await init();
/** @type {import('tccl').ArrayOperator<Float32Array>} */
const arrays = {
  combine: (lower, higher) => {
    for (let i = 0; i < lower.length; i++) lower[i] = (lower[i] ?? 0) + (higher[i] ?? 0);
  },
};
/** @type {import('tccl').ElementOperator<Float32Array>} */
const numbers = (a, b) => a + b;
/** @type {[string, 'sum' | typeof numbers | typeof arrays][]} */
const operators = [
  ['sum', 'sum'],
  ['function', numbers],
  ['combine', arrays],
];
for (const { length, calls } of [
  { length: 2, calls: 3000 },
  { length: 2 ** 18, calls: 100 },
]) {
  const x = comm.alloc(Float32Array, length);
  for (const [name, operator] of operators) {
    /** @type {number[]} */
    const times = [];
    for (let round = 0; round < ROUNDS; round++) {
      comm.barrierSync();
      const begin = performance.now();
      for (let i = 0; i < calls; i++) comm.allReduceSync(x, x, operator);
      times.push(((performance.now() - begin) / calls) * 1000);
    }
    times.sort((a, b) => a - b);
    const [bestUs, medianUs] = [0, (ROUNDS - 1) / 2].map((place) => Number((times[place] ?? 0).toPrecision(3)));
    if (comm.rank === 0) console.log(JSON.stringify({ bytes: length * 4, operator: name, bestUs, medianUs }));
  }
}
await comm.close();
