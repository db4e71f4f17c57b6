/**
 * The tuning model of growing clusters, and its choices for ten kinds of calls at forty sizes, after the plan. One process
 * a cluster, so that the first time is a first time.
 *
 * @module
 */
import { spawnSync } from 'node:child_process';
import { table, verdict } from '../lib/table.mjs';
import { tuningTargetMs } from '../lib/targets.mjs';

/** @typedef {import('../lib/suite.mjs').Context} Context */

export const title = 'tuning: model, predictions and choices';

/** Hosts of eight H100. */
const hostCounts = [1, 16, 2048, 12_500];

const program = new URL('../planner/tuning-once.mjs', import.meta.url).pathname;

/** @param {Context} context */
export async function run({ options, record, progress, note }) {
  for (const hosts of hostCounts) {
    progress(`${hosts} hosts`);
    const { status, stdout, stderr } = spawnSync(process.execPath, [program, String(hosts), options.quick ? '5' : '20'], {
      encoding: 'utf8',
    });
    if (status !== 0) {
      note(`${hosts} hosts: ${stderr}`);
      continue;
    }
    record({ tuning: 'dgx-h100', hosts, ...JSON.parse(stdout) });
  }
}

export function report(/** @type {readonly Record<string, any>[]} */ records) {
  const measured = records.filter((record) => record['tuning'] !== undefined);
  if (measured.length === 0) return '';
  const rows = measured.map((record) => [
    record['tuning'],
    String(record['hosts']),
    String(record['ranks']),
    verdict(record['coldMs'], tuningTargetMs),
    record['warmMs'].toFixed(2),
    ((1000 * record['warmMs']) / record['choices']).toFixed(1),
  ]);
  const titles = ['machine', 'hosts', 'ranks', 'ms first, target', 'ms warm', 'µs a choice, warm'];
  return `tuning model, then all predictions and the choice for 10 kinds of calls × 40 sizes, after the plan\n\n${table(titles, rows)}`;
}
