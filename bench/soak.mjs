/**
 * Random calls for a long time: other seeds, numbers of ranks, algorithms and transports in each round, every element
 * checked against a naive reference. Ends at the first failure, with the command that repeats it.
 *
 *     npm run soak                      # 30 minutes
 *     npm run soak -- --minutes 0.1
 *
 * @module
 */
import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { progressLine } from '../dist/cli/output.js';

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '30' }, seed: { type: 'string' }, calls: { type: 'string', default: '200' } } });
const minutes = Number(values.minutes);
if (!(minutes > 0)) {
  process.stderr.write(`soak: --minutes '${values.minutes}' must be a number above 0\n`);
  process.exit(2);
}
const first = Number(values.seed ?? Math.floor(Math.random() * 1e9));

/** @type {readonly { env: Record<string, string>, options: string[] }[]} */
const ways = [
  { env: {}, options: [] },
  { env: {}, options: ['--promises'] },
  ...['ring', 'tree', 'pat', 'nvls'].map((algorithm) => ({ env: { TCCL_ALGO: algorithm }, options: [] })),
  { env: { TCCL_ALGO: 'ring', TCCL_PROTO: 'LL' }, options: [] },
  { env: { TCCL_SHM_DISABLE: '1' }, options: ['--promises'] },
];
const cli = new URL('../dist/cli/main.js', import.meta.url).pathname;
const program = new URL('../test/multi-process/fixtures/random-collectives.mjs', import.meta.url).pathname;
const line = progressLine();
const end = performance.now() + minutes * 60_000;
let rounds = 0;
for (; performance.now() < end; rounds++) {
  const way = ways[rounds % ways.length] ?? { env: {}, options: [] };
  const ranks = 1 + ((rounds * 7) % 9);
  const seed = first + rounds;
  const names = Object.entries(way.env).map(([name, value]) => `${name}=${value}`);
  line.update(`round ${rounds + 1}: ${ranks} ranks, ${names.join(' ')} seed ${seed}`);
  const args = ['run', '-n', String(ranks), '--', process.execPath, program, '--seed', String(seed), '--calls', values.calls, ...way.options];
  const { status, stdout, stderr } = spawnSync(process.execPath, [cli, ...args], { encoding: 'utf8', timeout: 300_000, env: { ...process.env, ...way.env } });
  if (status !== 0) {
    line.done();
    process.stderr.write(`${stdout}${stderr}soak: round ${rounds + 1} failed (${status === null ? 'not finished after 300 s' : `exit code ${status}`}); to repeat it:\n  ${[...names, 'npx tccl', ...args].join(' ')}\n`);
    process.exit(1);
  }
}
line.done();
console.log(`${rounds} rounds of ${values.calls} random calls, seeds ${first} to ${first + rounds - 1}: every element right`);
