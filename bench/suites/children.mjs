/**
 * Costs of a child of a communicator for each rank: memory, file descriptors, threads and time, by how its ranks are connected
 * and by use. Thousands of children are open at the same time.
 *
 * @module
 */
import { jsonLines, runCommand } from '../lib/processes.mjs';
import { messageOf } from '../lib/suite.mjs';
import { table } from '../lib/table.mjs';

/** @typedef {import('../lib/suite.mjs').Context} Context */

export const title = 'what children of a communicator cost';

const cli = new URL('../../dist/cli/main.js', import.meta.url).pathname;
const program = new URL('../ranks/children.mjs', import.meta.url).pathname;

/** @type {readonly { name: string, ranks: number, count: number, few: number, kind?: string, env?: Record<string, string> }[]} */
const families = [
  { name: 'shared memory', ranks: 2, count: 5000, few: 200 },
  { name: 'shared memory', ranks: 8, count: 500, few: 50 },
  { name: 'rings in shared memory (TCCL_ALGO=ring)', ranks: 2, count: 100, few: 20, env: { TCCL_ALGO: 'ring' } },
  { name: 'engine threads', ranks: 2, count: 20, few: 5, kind: 'thread' },
  { name: 'sockets', ranks: 2, count: 200, few: 20, env: { TCCL_SHM_DISABLE: '1' } },
];
const large = 5;

/** @param {Context} context */
export async function run({ options, record, progress, note }) {
  for (const { name, ranks, count, few, kind = 'split', env = {} } of families) {
    const open = options.quick ? few : count;
    progress(`${open} children of ${ranks} ranks: ${name}`);
    const args = [
      cli,
      'run',
      '-n',
      String(ranks),
      '--no-prefix',
      '--',
      process.execPath,
      '--expose-gc',
      program,
      String(open),
      String(large),
      kind,
    ];
    try {
      const output = await runCommand({ file: process.execPath, args, env }, { timeoutMs: 600_000 });
      for (const line of jsonLines(output)) record({ ...line, family: `${open} children of ${ranks} ranks, ${name}` });
    } catch (error) {
      note(`children, ${ranks} ranks, ${name}: ${messageOf(error)}`);
    }
  }
}

/** A table a family: the mean of the ranks, and the time of the slowest. */
export function report(/** @type {readonly Record<string, any>[]} */ records) {
  const measured = records.filter(({ children }) => children !== undefined);
  const sections = [...new Set(measured.map(({ family }) => String(family)))].map((family) => {
    const lines = measured.filter((line) => line['family'] === family);
    const rows = [...new Set(lines.map(({ stage }) => String(stage)))].map((stage) => {
      const ranks = lines.filter((line) => line['stage'] === stage);
      const mean = (/** @type {string} */ key) => ranks.reduce((sum, line) => sum + Number(line[key]), 0) / ranks.length;
      return [
        stage,
        (mean('sharedBytes') / 1024).toFixed(1),
        (mean('privateBytes') / 1024).toFixed(1),
        mean('descriptors').toFixed(1),
        mean('threads').toFixed(1),
        Math.max(...ranks.map((line) => Number(line['ms']))).toFixed(2),
      ];
    });
    return `${family}: what each child takes of a rank, more than before\n\n${table(['stage', 'shared, KiB', 'private, KiB', 'descriptors', 'threads', 'ms'], rows)}`;
  });
  return sections.join('\n\n');
}
