/**
 * Plans one cluster in a process of its own and prints time and memory: `plan-once.mjs HOSTS REPEATS MACHINE…`, machines by
 * turns. With `each` before the machines every host comes with a topology of its own, as from a file each.
 *
 * @module
 */
import { defaultParameters } from '../../dist/planner/parameters.js';
import { prepareCluster } from '../../dist/planner/plan/cluster.js';
import { plan, planPrepared } from '../../dist/planner/plan/plan.js';
import { machine } from '../../dist/planner/topology/catalogue/machines.js';

const [hostCount = '1', repeats = '1', ...words] = process.argv.slice(2);
const each = words[0] === 'each';
const names = each ? words.slice(1) : words;
const roots = names.map((name) => machine(name));
const rootOf = (/** @type {number} */ host) => (each ? machine(names[host % names.length] ?? '') : roots[host % roots.length]);
const hosts =
  roots.length === 1 && !each
    ? roots.map((root) => ({ machine: root, count: Number(hostCount) }))
    : Array.from({ length: Number(hostCount) }, (_, host) => ({
        machine: /** @type {(typeof roots)[number]} */ (rootOf(host)),
        count: 1,
      }));

const start = performance.now();
const made = plan({ hosts });
const coldMs = performance.now() - start;

const prepared = prepareCluster({ hosts }, defaultParameters);
const times = Array.from({ length: Number(repeats) }, () => {
  const before = performance.now();
  planPrepared(prepared, defaultParameters);
  return performance.now() - before;
});
console.log(
  JSON.stringify({
    ranks: made.nodes.nRanks,
    channels: made.nChannels,
    coldMs,
    mergeMs: Math.min(...times),
    peakMiB: process.resourceUsage().maxRSS / 1024,
  }),
);
