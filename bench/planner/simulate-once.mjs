// Simulates one collective on hosts of eight H100 and prints the time of it as JSON: HOSTS SIZES COLLECTIVE.
import { defaultParameters, machine, prepareCluster, simulatorOf } from '../../dist/planner/index.js';

const [hosts = '1', count = '1', name = 'AllReduce'] = process.argv.slice(2);
const collective = /** @type {import('../../dist/planner/index.js').ScheduledCollective} */ (name);
const prepared = prepareCluster({ hosts: [{ machine: machine('dgx-h100'), count: Number(hosts) }] }, defaultParameters);
const simulator = simulatorOf(prepared, defaultParameters);
const largest = 2 ** 30;
// From 1 KiB to 16 GiB in equal ratios; one size is 1 GiB.
const sizes =
  Number(count) === 1
    ? [largest]
    : Array.from({ length: Number(count) }, (_, index) => Math.round(2 ** (10 + (24 * index) / (Number(count) - 1))));

const start = performance.now();
let last;
for (const bytes of sizes) last = simulator.simulate(collective, bytes);
const ms = performance.now() - start;

const way = last?.choice === undefined ? 'pairs' : `${last.choice.algorithm} ${last.choice.protocol}`;
const whole = Number(hosts) === 32 ? simulator.simulate(collective, largest, { unfolded: true })?.timeUs : undefined;
const foldingError = whole === undefined || last === undefined ? undefined : last.timeUs / whole - 1;
process.stdout.write(JSON.stringify({ ms, way, foldingError }));
