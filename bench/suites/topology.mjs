/**
 * From the XML of a machine to its paths: every machine of the oracle, warm, beside NCCL's time for the same (its
 * `timing.json`, from another machine: an order of size), and an NVLink domain of 576 GPUs.
 *
 * @module
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../lib/suite.mjs';
import { formatUs, table, verdict } from '../lib/table.mjs';
import { topologyTargetsMs } from '../lib/targets.mjs';
import { buildSystem } from '../../dist/planner/topology/build/build-system.js';
import { localSystems } from '../../dist/planner/topology/local-systems.js';
import { parseXml } from '../../dist/planner/topology/xml/parse.js';
import { parametersFromEnvironment } from '../../dist/planner/parameters.js';

/** @typedef {import('../lib/suite.mjs').Context} Context */

export const title = 'topology: XML to paths';

const oracle = process.env['TCCL_ORACLE_DIR'] ?? new URL('../../../shared/oracle/cases', import.meta.url).pathname;
const domainName = 'NVLink domain of 576 GPUs';

/** @param {Context} context */
export async function run({ options, record, progress, note }) {
  const domain = nvLinkDomain(144, 4);
  progress(domainName);
  record({ topology: domainName, us: medianUs(() => work(domain, {}, 576), 5) });

  const timings = join(oracle, '..', 'timing.json');
  if (!existsSync(timings)) return note(`no cases of the oracle in ${oracle}`);
  const repeats = options.quick ? 10 : 40;
  for (const [name, phases] of Object.entries(/** @type {Record<string, Record<string, number>>} */ (readJson(timings)))) {
    const folder = join(oracle, name);
    const { nodes, env, nRanks } = readJson(join(folder, 'case.json'));
    if (nodes.length !== 1) continue;
    const text = readFileSync(join(folder, nodes[0].xml), 'utf8');
    progress(name);
    try {
      const us = medianUs(() => work(text, env, nRanks), repeats);
      record({ topology: name, us, ncclUs: (phases['xmlUs'] ?? 0) + (phases['systemAndPathsUs'] ?? 0) });
    } catch (error) {
      note(`${name}: ${messageOf(error)}`);
    }
  }
}

export function report(/** @type {readonly Record<string, any>[]} */ records) {
  const measured = records.filter((record) => record['topology'] !== undefined);
  if (measured.length === 0) return '';
  const compared = measured.filter((record) => record['ncclUs'] > 0);
  const sum = (/** @type {string} */ key) => compared.reduce((total, record) => total + Number(record[key]), 0);
  const slowest = [...compared].sort((a, b) => b['us'] - a['us']).slice(0, 10);
  const aims = measured.filter((record) => topologyTargetsMs[record['topology']] !== undefined);
  const rows = [...new Set([...aims, ...slowest])].map((record) => [
    record['topology'],
    formatUs(record['us']),
    record['ncclUs'] === undefined ? '' : formatUs(record['ncclUs']),
    verdict(record['us'] / 1000, topologyTargetsMs[record['topology']]),
  ]);
  const total =
    compared.length === 0 ? [] : [[`all ${compared.length} machines`, formatUs(sum('us')), formatUs(sum('ncclUs')), '']];
  return `from XML to paths, µs, median (the machines with an aim, the ten slowest, all)\n\n${table(['machine', 'tccl', 'NCCL', 'ms, target'], [...rows, ...total])}`;
}

/** The measured function. @param {string} text @param {Record<string, string>} env @param {number} ranks */
function work(text, env, ranks) {
  const { parameters } = parametersFromEnvironment(env);
  return localSystems(buildSystem(parseXml(text).root, { parameters }), parameters, ranks);
}

/** @param {() => unknown} action @param {number} repeats */
function medianUs(action, repeats) {
  const times = [];
  for (let repeat = 0; repeat < repeats; repeat++) {
    const start = process.hrtime.bigint();
    action();
    times.push(Number(process.hrtime.bigint() - start) / 1000);
  }
  return times.sort((a, b) => a - b)[repeats >> 1] ?? 0;
}

/** Trays of Grace-Blackwell with NVLinks to common switches and a NIC a GPU. @param {number} hosts @param {number} gpus */
function nvLinkDomain(hosts, gpus) {
  const link = 'link_speed="32.0 GT/s PCIe" link_width="16"';
  const device = (/** @type {number} */ host, /** @type {number} */ dev) => `
    <pci busid="${dev}:00:00.0" class="0x060400" ${link}>
      <pci busid="${dev}:01:00.0" class="0x030200" ${link}>
        <gpu dev="${dev}" sm="100" rank="${host * gpus + dev}" gdr="1">
          <nvlink target="fffffff:ffff:ff" count="18" tclass="0x068000"/><c2c bw="44712" count="8"/>
        </gpu>
      </pci>
      <pci busid="${dev}:02:00.0" class="0x020700" ${link}>
        <nic><net name="mlx5_${dev}" dev="${dev}" speed="400000" port="1" guid="0x${(host * gpus + dev + 1).toString(16)}" maxconn="131072" gdr="1"/></nic>
      </pci>
    </pci>`;
  const half = gpus / 2;
  const cpu = (/** @type {number} */ host, /** @type {number} */ numaId) => `
  <cpu host_hash="0x${(host + 1).toString(16)}" numaid="${numaId}" affinity="ff" arch="arm64">${Array.from(
    { length: half },
    (_, gpu) => device(host, numaId * half + gpu),
  ).join('')}
  </cpu>`;
  return `<system version="1">${Array.from({ length: hosts }, (_, host) => cpu(host, 0) + cpu(host, 1)).join('')}\n</system>`;
}

/** @param {string} path */
function readJson(path) {
  return JSON.parse(readFileSync(path, 'utf8'));
}
