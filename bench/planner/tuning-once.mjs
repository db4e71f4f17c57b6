/**
 * Plans one cluster of dgx-h100 in a process of its own, then makes its tuning model and chooses for ten kinds of calls at
 * forty sizes: `tuning-once.mjs HOSTS REPEATS`. Prints the time after the plan, the first and the best.
 *
 * @module
 */
import { choose, collectives, defaultParameters, machine, plan, predict, tune } from '../../dist/planner/index.js';

const [hosts = '1', repeats = '1'] = process.argv.slice(2);
const made = plan({ hosts: [{ machine: machine('dgx-h100'), count: Number(hosts) }] });

/** @type {readonly import('../../dist/planner/tuning/predict.js').PredictOptions[]} */
const kinds = [{}, { dataType: 'bfloat16', operations: 4 }];
const calls = collectives.flatMap((collective) => kinds.map((options) => ({ collective, options })));
const sizes = Array.from({ length: 40 }, (_, power) => 2 ** power);

const times = Array.from({ length: 1 + Number(repeats) }, () => {
  const before = performance.now();
  const tuning = tune(made, defaultParameters);
  for (const { collective, options } of calls) {
    for (const bytes of sizes) {
      predict(tuning, collective, bytes, options);
      choose(tuning, collective, bytes, options);
    }
  }
  return performance.now() - before;
});
const [coldMs = 0, ...warm] = times;
console.log(
  JSON.stringify({ ranks: made.nodes.nRanks, choices: calls.length * sizes.length, coldMs, warmMs: Math.min(...warm) }),
);
