/**
 * The search of channels on every machine of the oracle, warm, beside NCCL's time for the same (its `timing.json`,
 * from another machine: an order of size).
 *
 * @module
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../lib/suite.mjs';
import { formatUs, table, verdict } from '../lib/table.mjs';
import { searchTarget } from '../lib/targets.mjs';
import { searchHost } from '../../dist/planner/graph/search-host.js';
import { parametersFromEnvironment } from '../../dist/planner/parameters.js';
import { assignHost, buildSystem } from '../../dist/planner/topology/build/build-system.js';
import { withoutEmptyBranches } from '../../dist/planner/topology/combine/prune.js';
import { localSystems } from '../../dist/planner/topology/local-systems.js';
import { parseXml } from '../../dist/planner/topology/xml/parse.js';

/** @typedef {import('../lib/suite.mjs').Context} Context */

export const title = 'search: rings, trees, CollNet, NVLS';

const oracle = process.env['TCCL_ORACLE_DIR'] ?? new URL('../../../shared/oracle/cases', import.meta.url).pathname;
const phases = ['ringUs', 'treeUs', 'collnetChainUs', 'collnetDirectUs', 'nvlsUs'];

/** @param {Context} context */
export async function run({ options, record, progress, note }) {
  const timings = join(oracle, '..', 'timing.json');
  if (!existsSync(timings)) return note(`no cases of the oracle in ${oracle}`);
  const repeats = options.quick ? 1 : 3;
  for (const [name, times] of Object.entries(/** @type {Record<string, Record<string, number>>} */ (readJson(timings)))) {
    progress(name);
    try {
      const hosts = hostsOf(name);
      record({
        search: name,
        us: leastUs(() => hosts.map((search) => search()), repeats),
        ncclUs: phases.reduce((sum, phase) => sum + (times[phase] ?? 0), 0),
      });
    } catch (error) {
      note(`${name}: ${messageOf(error)}`);
    }
  }
}

export function report(/** @type {readonly Record<string, any>[]} */ records) {
  const measured = records.filter((record) => record['search'] !== undefined);
  if (measured.length === 0) return '';
  const sum = (/** @type {string} */ key) => measured.reduce((total, record) => total + Number(record[key]), 0);
  const rows = [...measured]
    .sort((a, b) => b['us'] - a['us'])
    .slice(0, 15)
    .map((record) => [
      record['search'],
      formatUs(record['us']),
      formatUs(record['ncclUs']),
      (record['us'] / record['ncclUs']).toFixed(2),
    ]);
  const all = [
    `all ${measured.length} machines`,
    formatUs(sum('us')),
    formatUs(sum('ncclUs')),
    verdict(sum('us') / sum('ncclUs'), searchTarget),
  ];
  return `search of all graphs, µs, best of the repeats (the fifteen slowest, all)\n\n${table(['machine', 'tccl', 'NCCL', 'ratio, target'], [...rows, all])}`;
}

/** A search to run for each kind of host of a case, with its inputs made. @param {string} name */
function hostsOf(name) {
  const folder = join(oracle, name);
  const { nodes, env, collnet, nRanks } = readJson(join(folder, 'case.json'));
  const { parameters } = parametersFromEnvironment({ ...env, ...(collnet ? { NCCL_COLLNET_ENABLE: '1' } : {}) });
  return [...new Set(nodes.map((/** @type {{ xml: string }} */ { xml }) => xml))].flatMap((xml) => {
    const { root } = parseXml(readFileSync(join(folder, String(xml)), 'utf8'));
    assignHost(root, 0x1000n);
    const system = buildSystem(withoutEmptyBranches(root), { parameters });
    return localSystems(system, parameters, nRanks).map((local) => () => searchHost(local, parameters, { collnet }));
  });
}

/** @param {() => unknown} action @param {number} repeats */
function leastUs(action, repeats) {
  let least = Infinity;
  for (let repeat = 0; repeat < repeats; repeat++) {
    const start = process.hrtime.bigint();
    action();
    least = Math.min(least, Number(process.hrtime.bigint() - start) / 1000);
  }
  return least;
}

/** @param {string} path */
function readJson(path) {
  return JSON.parse(readFileSync(path, 'utf8'));
}
