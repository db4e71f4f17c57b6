/**
 * Cost of recording the last calls of a rank: small calls with and without it, in turn.
 *
 * @module
 */
import { jsonLines, runCommand } from '../lib/processes.mjs';
import { messageOf } from '../lib/suite.mjs';
import { table } from '../lib/table.mjs';

/** @typedef {import('../lib/suite.mjs').Context} Context */

export const title = 'what the record of the last calls costs';

const cli = new URL('../../dist/cli/main.js', import.meta.url).pathname;
const program = new URL('../ranks/recorder.mjs', import.meta.url).pathname;

/** @param {Context} context */
export async function run({ options, record, progress, note }) {
  const rounds = options.quick ? '700' : '2000';
  for (let i = 0; i < options.rounds; i++) {
    for (const ranks of [1, 2]) {
      progress(`calls of ${ranks} ranks with and without their record`);
      const args = [cli, 'run', '-n', String(ranks), '--no-prefix', '--', process.execPath, program, rounds];
      try {
        const output = await runCommand({ file: process.execPath, args, env: {} }, { timeoutMs: 600_000 });
        for (const line of jsonLines(output)) record(line);
      } catch (error) {
        note(`record of calls, ${ranks} ranks: ${messageOf(error)}`);
      }
    }
  }
}

/** A row a call: medians of all runs. */
export function report(/** @type {readonly Record<string, any>[]} */ records) {
  const measured = records.filter(({ recorded }) => recorded !== undefined);
  if (measured.length === 0) return '';
  const kinds = [...new Set(measured.map(({ recorded, ranks }) => `${recorded}; ${ranks}`))];
  const rows = kinds.map((kind) => {
    const lines = measured.filter(({ recorded, ranks }) => `${recorded}; ${ranks}` === kind);
    const [without, more] = [median(lines.map(({ withoutNs }) => withoutNs)), lines.map(({ moreNs }) => moreNs)];
    const range = `${Math.min(...more).toFixed(1)} to ${Math.max(...more).toFixed(1)}`;
    return [kind, without.toFixed(1), median(more).toFixed(1), range, ((100 * median(more)) / without).toFixed(1)];
  });
  return table(['call; ranks', 'without, ns', 'the record, ns', 'by run', '%'], rows);
}

/** @param {number[]} values */
function median(values) {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
}
