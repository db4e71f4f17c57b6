/**
 * One measurement of one collective: options that bench.c and ranks/collective.mjs share, and a launch of all ranks.
 *
 * @module
 */
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { jsonLines, runCommand } from './processes.mjs';

/** @param {string} collective @param {Pick<import('./suite.mjs').Options, 'seconds' | 'state'>} options */
export function commonOptions(collective, { seconds, state }) {
  return [
    ...['-C', collective, '-t', String(seconds), '-w', '2', '-c'],
    // MPI's broadcast has one array, the root's as well.
    ...(collective === 'broadcast' ? ['-i', '1'] : []),
    ...(state === undefined ? [] : ['-m', state]),
  ];
}

/**
 * Runs the ranks of a command, with a new place to meet in, and returns their records. Waiting for a state of the cores may take
 * 20 s a size.
 *
 * @param {import('./processes.mjs').Command} command @returns {Promise<Record<string, any>[]>}
 */
export async function measureOnce(command) {
  const meeting = `/dev/shm/tccl-bench-${process.pid}-${randomBytes(4).toString('hex')}`;
  const clean = () => {
    rmSync(meeting, { force: true });
    rmSync(`${meeting}.store`, { recursive: true, force: true });
  };
  process.once('exit', clean);
  try {
    return jsonLines(await runCommand(command, { timeoutMs: 300_000, env: { BENCH_SHM: meeting } }));
  } finally {
    process.off('exit', clean);
    clean();
  }
}
