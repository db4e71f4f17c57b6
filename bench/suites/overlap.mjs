/**
 * Computation of one rank while a large all-reduce is in flight: on the rank's own thread, and with engine threads. How
 * much of the shorter of both is hidden behind the other says how well they overlap; how long the all-reduce takes at the
 * rank that does not compute says whether that one has to wait for the other's computation.
 *
 * @module
 */
import { runCommand } from '../lib/processes.mjs';
import { messageOf } from '../lib/suite.mjs';
import { table } from '../lib/table.mjs';

/** @typedef {import('../lib/suite.mjs').Context} Context */

export const title = 'computation beside communication';

const ranks = 2;
const cli = new URL('../../dist/cli/main.js', import.meta.url).pathname;
const program = new URL('../ranks/overlap.mjs', import.meta.url).pathname;
const engines = [
  { engine: 'inline', channels: 1 },
  { engine: 'thread', channels: 1 },
  { engine: 'thread', channels: 2 },
];

/** @param {Context} context */
export async function run({ options, record, progress, note }) {
  const bytes = options.quick ? 2 ** 24 : 2 ** 26;
  for (const { engine, channels } of engines) {
    progress(`all-reduce of ${bytes} bytes beside computation, engine ${engine}, ${channels} channels`);
    const args = [
      cli,
      'run',
      '-n',
      String(ranks),
      '--no-prefix',
      '--',
      process.execPath,
      program,
      engine,
      String(channels),
      String(bytes),
      String(options.quick ? 5 : 15),
    ];
    try {
      const output = await runCommand({ file: process.execPath, args }, { timeoutMs: 120_000 });
      for (const line of output.split('\n').filter((text) => text.startsWith('{')))
        record({ overlap: true, ...JSON.parse(line) });
    } catch (error) {
      note(`overlap with engine ${engine}: ${messageOf(error)}`);
    }
  }
}

export function report(/** @type {readonly Record<string, any>[]} */ records) {
  const measured = records.filter((record) => record['overlap'] === true);
  if (measured.length === 0) return '';
  const rows = engines.flatMap(({ engine, channels }) => {
    const at = (/** @type {number} */ rank, /** @type {string} */ key) => {
      const mine = measured.filter(
        (record) => record['engine'] === engine && record['channels'] === channels && record['rank'] === rank,
      );
      const values = mine.map((record) => Number(record[key])).sort((a, b) => a - b);
      return values[values.length >> 1];
    };
    const [communication, computation, both, other, ticks] = [
      at(0, 'communicationMs'),
      at(0, 'computationMs'),
      at(0, 'bothMs'),
      at(1, 'bothMs'),
      at(0, 'ticks'),
    ];
    if (communication === undefined || computation === undefined || both === undefined || other === undefined) return [];
    const hidden = (communication + computation - both) / Math.min(communication, computation);
    return [
      [
        engine === 'inline' ? 'inline' : `${channels} thread${channels === 1 ? '' : 's'}`,
        communication.toFixed(1),
        computation.toFixed(1),
        both.toFixed(1),
        `${(100 * hidden).toFixed(0)}%`,
        other.toFixed(1),
        String(ticks),
      ],
    ];
  });
  return table(
    ['engine', 'all-reduce, ms', 'computation, ms', 'both, ms', 'hidden', 'the other rank, ms', 'timers run meanwhile'],
    rows,
  );
}
