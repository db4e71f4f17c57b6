/**
 * Compares the chosen algorithm with the fastest: in every collective and size, the ranks' choice and each
 * algorithm that can be forced take turns in one launch (src/perf/algorithm-times.ts).
 *
 * Without TCCL_PROFILE the defaults are judged, not the profile of this user.
 *
 * @module
 */
import { launchTiming } from '../../dist/perf/algorithm-times-launch.js';
import { timedCells } from '../../dist/perf/algorithm-times.js';
import { formatSize } from '../../dist/perf/sizes.js';
import { judge } from '../lib/choice.mjs';
import { messageOf } from '../lib/suite.mjs';
import { formatUs, table } from '../lib/table.mjs';
import { choiceTarget } from '../lib/targets.mjs';

/** @typedef {import('../lib/suite.mjs').Context} Context */

export const title = 'the choice of algorithms';

/** Of the time for one size of one program, a turn's share: the other turns, warm calls and barriers need theirs. */
const turnShare = 1 / 50;

/** @param {Context} context */
export async function run({ options, record, progress, note }) {
  const env = process.env['TCCL_PROFILE'] === undefined ? { ...process.env, XDG_CONFIG_HOME: '/nonexistent' } : process.env;
  const timing = {
    sizes: [...options.sizes].sort((a, b) => a - b),
    rounds: 5,
    turnMs: options.seconds * 1e3 * turnShare,
    withChoice: true,
  };
  for (let round = 0; round < options.rounds; round++) {
    for (const ranks of options.ranks.filter((count) => count > 1)) {
      const cells = timedCells(ranks, timing.sizes).length;
      let done = 0;
      progress(`round ${round + 1}/${options.rounds}, ${ranks} ranks: ${cells} collectives and sizes`);
      try {
        await launchTiming(
          ranks,
          timing,
          ({ kind, ...result }) => {
            record({ choice: kind, ...result });
            // The choice comes first in each cell.
            if (result.chosen)
              progress(
                `round ${round + 1}/${options.rounds}, ${ranks} ranks, ${++done}/${cells}: ${kind}, ${formatSize(result.size)}`,
              );
          },
          env,
        );
      } catch (error) {
        note(messageOf(error));
      }
    }
  }
}

export function report(/** @type {readonly Record<string, any>[]} */ records) {
  const cells = judge(records);
  if (cells.length === 0) return '';
  const rows = cells.map(({ kind, ranks, size, chosen, best, ratio, same }) => [
    kind,
    String(ranks),
    formatSize(size),
    `${chosen.algorithm} ${formatUs(chosen.us)}`,
    `${best.algorithm} ${formatUs(best.us)}`,
    ratio.toFixed(2),
    same ? 'the same' : ratio <= choiceTarget ? `≤ ${choiceTarget} met` : `> ${choiceTarget} missed`,
  ]);
  return (
    `The choice against the best forced algorithm, µs, lowest of the rounds\n\n` +
    `${table(['collective', 'ranks', 'size', 'chosen', 'best forced', 'ratio', 'target'], rows)}\n\n${summary(cells)}`
  );
}

/** @param {readonly import('../lib/choice.mjs').Judged[]} cells */
function summary(cells) {
  const same = cells.filter((cell) => cell.same).length;
  const missed = cells.filter((cell) => !cell.same && cell.ratio > choiceTarget);
  const [worst] = cells.filter((cell) => !cell.same).sort((a, b) => b.ratio - a.ratio);
  const tell = (/** @type {import('../lib/choice.mjs').Judged} */ { kind, ranks, size, chosen, best, ratio }) =>
    `${kind} of ${ranks} ranks, ${formatSize(size)}: ${chosen.algorithm} ${formatUs(chosen.us)} µs, ${best.algorithm} ${formatUs(best.us)} µs, ${ratio.toFixed(2)} times`;
  return (
    `${cells.length} cells: in ${same} the choice is the best forced algorithm itself, in ${cells.length - same - missed.length} another within ${Math.round((choiceTarget - 1) * 100)} %, in ${missed.length} slower.\n` +
    (worst === undefined ? '' : `Worst where they differ: ${tell(worst)}.\n`)
  );
}
