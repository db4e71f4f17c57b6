/**
 * Random calls for a long time: other seeds, numbers of ranks, algorithms and transports in each round, every element
 * checked against a naive reference. With --failures ranks die, leave, throw, stop or call something else in each round, and
 * the errors of the others are checked too (soak/job.mjs lists the failures). Ends at the first problem, with the command that
 * repeats it.
 *
 *     npm run soak                      # 30 minutes
 *     npm run soak -- --minutes 0.1
 *     npm run soak -- --failures --minutes 10
 *     npm run soak -- --failures --seed 4711 --rounds 1
 *
 * @module
 */
import { parseArgs } from 'node:util';
import { progressLine } from '../dist/cli/output.js';
import { callsRound } from './soak/calls.mjs';
import { failuresRound, figures } from './soak/failures.mjs';

const help = `Usage: npm run soak -- [options]

Options:
  --minutes M  how long (30)
  --rounds N   so many rounds at most
  --seed S     of the first round; the ones after it have S + 1, S + 2, … (drawn)
  --calls N    random calls of a round (200)
  --failures   ranks fail at random, and what becomes of the others is checked
  -h, --help

Examples:
  npm run soak -- --minutes 0.1
  npm run soak -- --failures --seed 4711 --rounds 1
`;

const values = readOptions();
const [minutes, most] = [Number(values.minutes), Number(values.rounds)];
for (const [name, value] of /** @type {const} */ ([
  ['minutes', minutes],
  ['rounds', most],
])) {
  if (!(value > 0)) refuse(`--${name} '${values[name]}' must be a number above 0`);
}
const first = Number(values.seed ?? Math.floor(Math.random() * 1e9));
const line = progressLine();
const end = performance.now() + minutes * 60_000;
let rounds = 0;
for (; rounds < most && performance.now() < end; rounds++) {
  const seed = first + rounds;
  const tell = (/** @type {string} */ what) => line.update(`round ${rounds + 1}, seed ${seed}: ${what}`);
  const problem = values.failures ? await failuresRound(seed, tell) : callsRound(seed, rounds, values.calls, tell);
  if (problem === undefined) continue;
  line.done();
  process.stderr.write(`${problem.what}\nsoak: round ${rounds + 1} failed; to repeat it:\n  ${problem.command}\n`);
  process.exit(1);
}
line.done();
const seeds = `seeds ${first} to ${first + rounds - 1}`;
if (values.failures && figures.heardMs.length > 0) {
  const sorted = figures.heardMs.sort((a, b) => a - b);
  console.log(
    `${figures.survivors} survivors heard of a failure; in jobs that measure it after ${sorted[sorted.length >> 1]} ms in the median, ${sorted.at(-1)} ms at most`,
  );
}
console.log(
  values.failures
    ? `${rounds} rounds of failures, ${seeds}: all as promised`
    : `${rounds} rounds of ${values.calls} random calls, ${seeds}: every element right`,
);

function readOptions() {
  try {
    const { values: given } = parseArgs({
      options: {
        minutes: { type: 'string', default: '30' },
        rounds: { type: 'string', default: 'Infinity' },
        seed: { type: 'string' },
        failures: { type: 'boolean', default: false },
        calls: { type: 'string', default: '200' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    if (!given.help) return given;
  } catch (error) {
    refuse(error instanceof Error ? error.message : String(error));
  }
  process.stdout.write(help);
  process.exit(0);
}

/** @returns {never} */
function refuse(/** @type {string} */ why) {
  process.stderr.write(`soak: ${why}\n`);
  process.exit(2);
}
