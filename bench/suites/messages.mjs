/**
 * Messages of two ranks on a host: ping-pong, both ways, in groups, many in flight, and puts into a window, beside Open MPI's.
 *
 * @module
 */
import { buildPrograms, programPath } from '../lib/peers.mjs';
import { jsonLines, runCommand } from '../lib/processes.mjs';
import { messageOf } from '../lib/suite.mjs';
import { table } from '../lib/table.mjs';

/** @typedef {import('../lib/suite.mjs').Context} Context */

export const title = 'messages of two ranks, least µs of a message, one way';

const cli = new URL('../../dist/cli/main.js', import.meta.url).pathname;
const program = new URL('../ranks/messages.mjs', import.meta.url).pathname;

/** Largest ratios to Open MPI that are aimed at. @type {Record<string, number>} */
const targets = { 'ping-pong 8': 1.2, 'ping-pong 1024': 1, 'rate 8': 2, 'both ways 8': 2, 'group 8': 2 };

/** @param {Context} context */
export async function run({ options, record, progress, note }) {
  const count = options.quick ? '20' : '60';
  const ours = (/** @type {string} */ arrays) => ({
    file: process.execPath,
    args: [cli, 'run', '-n', '2', '--no-prefix', '--', process.execPath, program, count, arrays],
  });
  const programs = [
    { who: 'tccl', command: ours('shared') },
    { who: 'ordinary arrays', command: ours('ordinary') },
  ];
  if (buildPrograms(note).has('messages_openmpi')) {
    const args = ['--allow-run-as-root', '--bind-to', 'core', '-n', '2', programPath('messages_openmpi'), count];
    programs.push({ who: 'Open MPI', command: { file: 'mpirun.openmpi', args } });
  }
  for (let round = 0; round < options.rounds; round++)
    for (const { who, command } of programs) {
      progress(`messages, ${who}`);
      try {
        const output = await runCommand({ ...command, env: {} }, { timeoutMs: 300_000 });
        for (const line of jsonLines(output)) record({ ...line, who });
      } catch (error) {
        note(`messages, ${who}: ${messageOf(error)}`);
      }
    }
}

/** A row a kind and size: the least of all rounds. */
export function report(/** @type {readonly Record<string, any>[]} */ records) {
  const measured = records.filter(({ messages }) => messages !== undefined);
  if (measured.length === 0) return '';
  const least = (/** @type {string} */ key, /** @type {string} */ who) =>
    Math.min(...measured.filter((each) => each['who'] === who && keyOf(each) === key).map(({ us }) => Number(us)));
  const keys = [...new Set(measured.map(keyOf))];
  const rows = keys.map((key) => {
    const [ours, plain, theirs] = ['tccl', 'ordinary arrays', 'Open MPI'].map((who) => least(key, who));
    const target = targets[key];
    return [
      key,
      ...[ours, plain, theirs].map(text),
      ratio(ours, theirs),
      ratio(plain, theirs),
      target === undefined ? '' : `${target}`,
    ];
  });
  return table(['message, bytes', 'tccl', 'ordinary arrays', 'Open MPI', 'ratio', 'ordinary', 'aim'], rows);
}

const keyOf = (/** @type {Record<string, any>} */ { messages, bytes }) => `${messages} ${bytes}`;
const text = (us = Infinity) => (Number.isFinite(us) ? us.toFixed(us < 10 ? 3 : 1) : 'none');
const ratio = (a = Infinity, b = Infinity) => (Number.isFinite(a / b) ? (a / b).toFixed(2) : '');
