/**
 * Starting a job: the whole time of `tccl run -n 4` of a Node program that does nothing, against MPI's launchers with
 * the same program, in turn.
 *
 * @module
 */
import { spawnSync } from 'node:child_process';
import { openmpiAsRoot } from '../lib/peers.mjs';
import { runCommand } from '../lib/processes.mjs';
import { messageOf } from '../lib/suite.mjs';
import { table, verdict } from '../lib/table.mjs';
import { startTarget } from '../lib/targets.mjs';

/** @typedef {import('../lib/suite.mjs').Context} Context */

export const title = 'start-up against mpirun';

const ranks = 4;
const cli = new URL('../../dist/cli/main.js', import.meta.url).pathname;
const program = (/** @type {string} */ name) => new URL(`../ranks/${name}.mjs`, import.meta.url).pathname;

/** @type {readonly { name: string, needs?: string, file: string, args: string[], env?: Record<string, string> }[]} */
const launches = [
  { name: 'node, alone', file: process.execPath, args: [program('empty')] },
  { name: 'tccl run', file: process.execPath, args: [cli, 'run', '-n', String(ranks), '--', process.execPath, program('empty')] },
  {
    name: 'mpirun (Open MPI)',
    needs: 'mpirun.openmpi',
    file: 'mpirun.openmpi',
    args: ['--oversubscribe', '-np', String(ranks), process.execPath, program('empty')],
    env: openmpiAsRoot,
  },
  {
    name: 'mpiexec (MPICH)',
    needs: 'mpiexec.mpich',
    file: 'mpiexec.mpich',
    args: ['-n', String(ranks), process.execPath, program('empty')],
  },
  {
    name: 'tccl run, init and close',
    file: process.execPath,
    args: [cli, 'run', '-n', String(ranks), '--', process.execPath, program('init')],
  },
];

/** @param {Context} context */
export async function run({ options, record, progress, note }) {
  const present = launches.filter(({ name, needs }) => {
    const there =
      needs === undefined || spawnSync(needs, ['--version'], { env: { ...process.env, ...openmpiAsRoot } }).status === 0;
    if (!there) note(`${name} is left out: ${needs} is not installed`);
    return there;
  });
  const repeats = options.quick ? 5 : 15;
  for (let repeat = 0; repeat < repeats; repeat++) {
    for (const launch of present) {
      progress(`start-up ${repeat + 1}/${repeats}: ${launch.name}`);
      const start = process.hrtime.bigint();
      try {
        // Node decodes these certificates at each start, which can take longer than all else; an empty name has none.
        await runCommand(launch, { timeoutMs: 60_000, env: { NODE_EXTRA_CA_CERTS: '' } });
        record({ start: launch.name, ranks, ms: Number(process.hrtime.bigint() - start) / 1e6 });
      } catch (error) {
        note(`${launch.name}: ${messageOf(error)}`);
      }
    }
  }
}

export function report(/** @type {readonly Record<string, any>[]} */ records) {
  const medianOf = (/** @type {string} */ name) => {
    const times = records
      .filter((record) => record['start'] === name)
      .map((record) => Number(record['ms']))
      .sort((a, b) => a - b);
    return times[times.length >> 1];
  };
  const mpirun = medianOf('mpirun (Open MPI)');
  const rows = launches.flatMap(({ name }) => {
    const ms = medianOf(name);
    if (ms === undefined) return [];
    const ratio = mpirun === undefined ? undefined : ms / mpirun;
    return [[name, ms.toFixed(0), verdict(ratio, name === 'tccl run' ? startTarget : undefined)]];
  });
  if (rows.length === 0) return '';
  return `starting ${ranks} ranks of an empty Node program, to the end of the last process: median\n\n${table(['launcher', 'ms', 'over mpirun, target'], rows)}`;
}
