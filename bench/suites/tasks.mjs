/**
 * Lists of tasks on two threads: `pool.map` beside piscina, where that is installed (`npm install --no-save piscina`).
 *
 * @module
 */
import { openPool } from '../../dist/index.js';
import { messageOf } from '../lib/suite.mjs';
import { table } from '../lib/table.mjs';

/** @typedef {import('../lib/suite.mjs').Context} Context */
/** @typedef {(name: string, items: readonly unknown[]) => Promise<unknown>} Map */

export const title = 'tasks on two threads, ms';

const module = new URL('../ranks/tasks.mjs', import.meta.url);
const nThreads = 2;

/** @type {readonly (readonly [label: string, name: string, items: readonly unknown[]])[]} */
const lists = [
  ['10,000 of no work', 'double', Array.from({ length: 10_000 }, (_, i) => i)],
  ['2,000 of 0.1 ms', 'roots', Array(2000).fill(60_000)],
  ['100 of 5 ms', 'roots', Array(100).fill(3_000_000)],
  ['200, each tenth 50 times as long', 'roots', Array.from({ length: 200 }, (_, i) => (i % 10 === 0 ? 5_000_000 : 100_000))],
  ['2,000 texts of 10 kB', 'lengthOf', Array(2000).fill('x'.repeat(10_000))],
];

/** @param {Context} context */
export async function run({ options, record, progress, note }) {
  const rounds = options.quick ? 3 : 9;
  const pool = await openPool({ ranks: nThreads, module });
  const peer = await piscina(note);
  /** @type {readonly (readonly [who: string, map: Map])[]} */
  const maps = [['tccl', (name, items) => pool.map(name, items)], ...(peer === undefined ? [] : [peer.named])];
  for (const [label, name, items] of lists) {
    progress(label);
    for (let round = 0; round < rounds; round++)
      for (const [who, map] of maps) {
        const begin = performance.now();
        await map(name, items);
        record({ tasks: label, who, ms: performance.now() - begin });
      }
  }
  await pool.close();
  await peer?.close();
}

/**
 * @param {Context['note']} note
 * @returns {Promise<{ named: readonly [string, Map], close: () => Promise<void> } | undefined>}
 */
async function piscina(note) {
  try {
    const name = 'piscina';
    const { Piscina } = await import(name);
    const threads = new Piscina({ filename: module.href, minThreads: nThreads, maxThreads: nThreads, idleTimeout: 1e6 });
    return {
      named: ['piscina', (task, items) => Promise.all(items.map((item) => threads.run(item, { name: task })))],
      close: () => threads.destroy(),
    };
  } catch (error) {
    note(`piscina: ${messageOf(error)}`);
    return undefined;
  }
}

export function report(/** @type {readonly Record<string, any>[]} */ records) {
  const measured = records.filter(({ tasks }) => tasks !== undefined);
  if (measured.length === 0) return '';
  const median = (/** @type {string} */ label, /** @type {string} */ who) => {
    const times = measured.filter((each) => each['tasks'] === label && each['who'] === who).map(({ ms }) => Number(ms));
    return times.sort((a, b) => a - b)[times.length >> 1] ?? NaN;
  };
  const labels = [...new Set(measured.map(({ tasks }) => String(tasks)))];
  const rows = labels.map((label) => {
    const [ours, theirs] = [median(label, 'tccl'), median(label, 'piscina')];
    return [label, ours.toFixed(1), theirs.toFixed(1), (ours / theirs).toFixed(2)];
  });
  return table(['tasks', 'pool.map', 'piscina', 'ratio'], rows);
}
