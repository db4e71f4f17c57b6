/**
 * Whether the algorithm that is chosen is the fastest: every collective as the ranks choose it, and by each algorithm
 * that can be forced, in turn, in several rounds.
 *
 * @module
 */
import { formatSize } from '../../dist/perf/sizes.js';
import { algorithms } from '../../dist/collectives/call.js';
import { carriesOut } from '../../dist/communicator/choose-algorithm.js';
import { measure, measuredKinds } from '../../dist/perf/tune.js';
import { formatUs, table, verdict } from '../lib/table.mjs';
import { choiceTarget } from '../lib/targets.mjs';

/** @typedef {import('../lib/suite.mjs').Context} Context */

export const title = 'the choice of algorithms';

const command = [process.execPath, new URL('../../dist/cli/main.js', import.meta.url).pathname, 'perf'];

/** @param {Context} context */
export async function run({ options, record, progress, note }) {
  const largest = Math.max(...options.sizes.filter((bytes) => bytes <= 2 ** 24), 8);
  for (let round = 0; round < options.rounds; round++) {
    for (const ranks of options.ranks) {
      for (const [kind, name] of measuredKinds) {
        for (const algorithm of [undefined, ...algorithms.filter((one) => carriesOut(one, kind, ranks))]) {
          progress(`round ${round + 1}/${options.rounds}, ${name}, ${ranks} ranks: ${algorithm ?? 'as chosen'}`);
          try {
            for (const [bytes, us] of await measure(command, ranks, name, largest, algorithm)) record({ choice: kind, ranks, bytes, algorithm: algorithm ?? 'chosen', us });
          } catch (error) {
            note(error instanceof Error ? error.message : String(error));
          }
        }
      }
    }
  }
}

export function report(/** @type {readonly Record<string, any>[]} */ records) {
  /** Lowest times by algorithm, of each kind, ranks and bytes. @type {Map<string, Map<string, number>>} */
  const lowest = new Map();
  for (const { choice, ranks, bytes, algorithm, us } of records) {
    if (choice === undefined) continue;
    const key = JSON.stringify([choice, ranks, bytes]);
    const times = lowest.get(key) ?? new Map();
    lowest.set(key, times.set(algorithm, Math.min(us, times.get(algorithm) ?? Infinity)));
  }
  const rows = [...lowest].flatMap(([key, times]) => {
    const [kind, ranks, bytes] = JSON.parse(key);
    const chosen = times.get('chosen');
    const [best] = [...times].filter(([algorithm]) => algorithm !== 'chosen').sort(([, a], [, b]) => a - b);
    if (chosen === undefined || best === undefined) return [];
    return [[kind, String(ranks), formatSize(bytes), formatUs(chosen), `${best[0]} ${formatUs(best[1])}`, verdict(chosen / best[1], choiceTarget)]];
  });
  return rows.length === 0 ? '' : `The choice against the best forced algorithm, µs, lowest of the rounds\n\n${table(['collective', 'ranks', 'size', 'chosen', 'best forced', 'ratio, target'], rows)}`;
}
