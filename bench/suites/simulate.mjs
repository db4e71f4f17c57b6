/**
 * Simulated calls of growing clusters: forty sizes of 16 ranks, one size of 1,024 and 16,384, and what folding hosts that are
 * alike costs at 256 ranks. Planning is not counted. One process a cluster, so that the first time is a first time.
 *
 * @module
 */
import { spawnSync } from 'node:child_process';
import { table, verdict } from '../lib/table.mjs';
import { simulateTargetMs } from '../lib/targets.mjs';

/** @typedef {import('../lib/suite.mjs').Context} Context */

export const title = 'simulate: calls executed in time';

/** Hosts of eight H100, and how many sizes. */
const clusters = [
  { hosts: 2, sizes: 40 },
  { hosts: 32, sizes: 1 },
  { hosts: 128, sizes: 1 },
  { hosts: 2048, sizes: 1 },
];
const collectives = ['AllReduce', 'AllGather', 'ReduceScatter', 'AllToAll', 'SendRecv'];

const program = new URL('../planner/simulate-once.mjs', import.meta.url).pathname;

/** @param {Context} context */
export async function run({ record, progress, note }) {
  for (const { hosts, sizes } of clusters) {
    for (const collective of collectives) {
      progress(`${8 * hosts} ranks, ${collective}`);
      const { status, stdout, stderr } = spawnSync(process.execPath, [program, String(hosts), String(sizes), collective], {
        encoding: 'utf8',
      });
      if (status === 0) record({ simulate: collective, hosts, sizes, ...JSON.parse(stdout) });
      else note(`${8 * hosts} ranks, ${collective}: ${stderr}`);
    }
  }
}

export function report(/** @type {readonly Record<string, any>[]} */ records) {
  const measured = records.filter((record) => record['simulate'] !== undefined);
  if (measured.length === 0) return '';
  const rows = measured.map((record) => [
    String(8 * record['hosts']),
    record['simulate'],
    String(record['sizes']),
    record['way'],
    verdict(record['ms'], simulateTargetMs(8 * record['hosts'])),
    record['foldingError'] === undefined ? '' : `${(100 * record['foldingError']).toFixed(2)} %`,
  ]);
  const titles = ['ranks', 'collective', 'sizes', 'at the largest', 'ms first, target', 'error of folding'];
  return `simulated calls, after the plan\n\n${table(titles, rows)}`;
}
