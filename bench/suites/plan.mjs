/**
 * Whole plans of growing clusters, from the XML of their machines to channels through all ranks: time, memory and how
 * both grow. One process a size, so that memory is that of one plan. And the command that a person waits for.
 *
 * @module
 */
import { spawnSync } from 'node:child_process';
import { table, verdict } from '../lib/table.mjs';
import { planCommandTargetMs, planTargets } from '../lib/targets.mjs';

/** @typedef {import('../lib/suite.mjs').Context} Context */

export const title = 'plan: XML to channels through all ranks';

/** Hosts of eight GPUs: H100 alone, beside A100 so that hosts differ, and each with a topology of its own to be read. */
const clusters = /** @type {const} */ ({
  'dgx-h100': ['dgx-h100'],
  'dgx-h100 and dgx-a100 by turns': ['dgx-h100', 'dgx-a100'],
  'dgx-h100, a topology each': ['each', 'dgx-h100'],
});
const hostCounts = [16, 256, 2048, 12_500];

const program = new URL('../planner/plan-once.mjs', import.meta.url).pathname;

const cli = new URL('../../dist/cli/main.js', import.meta.url).pathname;
const command = ['plan', 'dgx-h100', '--nodes', '2', '--no-predict'];

/** @param {Context} context */
export async function run({ options, record, progress, note }) {
  for (let repeat = 0; repeat < (options.quick ? 5 : 15); repeat++) {
    progress(`tccl ${command.join(' ')} ${repeat + 1}`);
    const start = process.hrtime.bigint();
    const { status, stderr } = spawnSync(process.execPath, [cli, ...command], { encoding: 'utf8' });
    if (status === 0) record({ planCommand: command.join(' '), ms: Number(process.hrtime.bigint() - start) / 1e6 });
    else note(`tccl ${command.join(' ')}: ${stderr}`);
  }
  for (const [cluster, machines] of Object.entries(clusters)) {
    for (const hosts of hostCounts) {
      progress(`${hosts} hosts: ${cluster}`);
      const { status, stdout, stderr } = spawnSync(
        process.execPath,
        [program, String(hosts), options.quick ? '5' : '20', ...machines],
        { encoding: 'utf8' },
      );
      if (status !== 0) {
        note(`${hosts} hosts of ${cluster}: ${stderr}`);
        continue;
      }
      record({ plan: cluster, hosts, ...JSON.parse(stdout) });
    }
  }
}

export function report(/** @type {readonly Record<string, any>[]} */ records) {
  return [commandReport(records), planReport(records)].filter((part) => part !== '').join('\n\n');
}

/** @param {readonly Record<string, any>[]} records */
function commandReport(records) {
  const times = records
    .filter((record) => record['planCommand'] !== undefined)
    .map((record) => Number(record['ms']))
    .sort((a, b) => a - b);
  const [least] = times;
  const median = times[times.length >> 1];
  if (least === undefined || median === undefined) return '';
  return `the whole process of tccl ${command.join(' ')}, cold\n\n${table(['ms, least', 'ms, median and target'], [[least.toFixed(0), verdict(median, planCommandTargetMs)]])}`;
}

/** @param {readonly Record<string, any>[]} records */
function planReport(records) {
  const measured = records.filter((record) => record['plan'] !== undefined);
  if (measured.length === 0) return '';
  const rows = measured.map((record) => {
    const targets = planTargets[record['hosts']];
    return [
      record['plan'],
      String(record['hosts']),
      String(record['ranks']),
      String(record['channels']),
      verdict(record['coldMs'] / 1000, targets?.seconds),
      (record['mergeMs'] / 1000).toFixed(3),
      ((1e6 * record['mergeMs']) / (record['ranks'] * record['channels'])).toFixed(0),
      verdict(record['peakMiB'], targets?.mebibytes),
    ];
  });
  const titles = [
    'machines',
    'hosts',
    'ranks',
    'channels',
    's in all, target',
    's merge, warm',
    'ns by rank and channel',
    'MiB, target',
  ];
  return `whole plans, from XML to channels (in all: the first plan of a process; merge: hosts are searched already)\n\n${table(titles, rows)}`;
}
