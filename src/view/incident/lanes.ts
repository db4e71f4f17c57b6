import { at, fitText, lineMark, type Mark, type Picture, textMark } from '../draw/picture.js';
import type { Role, StandingRow, Standings } from './standing.js';

const MARGIN = 16;
const NAME_WIDTH = 180;
const TEXT_WIDTH = 310;
const STEPS_WIDTH = 490;
const HEAD = 76;
const ROW = 28;
const MOST_ROWS = 32;

/** Words for roles: colours never stand alone. */
export const roleNames: Readonly<Record<Role, string>> = {
  late: 'others wait for it',
  waits: 'waits',
  gone: 'ended, or silent',
  rank: 'neither',
};

/**
 * Ranks as lanes over the positions of their group: filled for what is completed, dashed for what they are within.
 *
 *     ranks 0-2, 4  ████ 40 ████│████ 41 ████│┄┄┄ 42 ┄┄┄   in 42, all_reduce at train.py:120
 *     rank 3        ████ 40 ████│            │              completed 40
 */
export function lanesPicture({ title, steps, rows }: Standings): Picture {
  const cell = STEPS_WIDTH / Math.max(1, steps.length);
  const left = MARGIN + NAME_WIDTH;
  const shown = rows.slice(0, MOST_ROWS);
  const bottom = HEAD + shown.length * ROW;
  const more = rows.length - shown.length;
  return {
    title: `${title}: ${rows
      .map(({ name, text }) => `${name} ${text}`)
      .slice(0, 4)
      .join('; ')}`,
    width: left + STEPS_WIDTH + TEXT_WIDTH + MARGIN,
    height: bottom + (more > 0 ? 44 : 24),
    marks: [
      textMark('title', MARGIN, MARGIN + 14, fitText(title, left + STEPS_WIDTH + TEXT_WIDTH - MARGIN, 17, true)),
      ...steps.flatMap((step, index): Mark[] => [
        lineMark('grid', [left + index * cell, HEAD - 22], [left + index * cell, bottom]),
        textMark('dim', left + index * cell + 4, HEAD - 10, fitText(step, cell - 6, 11), { tip: step }),
      ]),
      lineMark('grid', [left + STEPS_WIDTH, HEAD - 22], [left + STEPS_WIDTH, bottom]),
      ...shown.flatMap((row, index) => lane(row, HEAD + index * ROW, left, cell)),
      ...(more > 0 ? [textMark('dim', MARGIN, bottom + 18, `${more} more positions are not drawn`)] : []),
    ],
  };
}

function lane({ name, done, isInside, text, role, ranks }: StandingRow, y: number, left: number, cell: number): Mark[] {
  const subject = ranks.length === 1 ? { subject: `rank/${ranks[0] ?? 0}` } : {};
  const tip = `${name}: ${text} (${roleNames[role]})`;
  const box = { y: y + 5, height: ROW - 10, radius: 3, tip, ...subject };
  return [
    { kind: 'rect', look: role, x: MARGIN, y: y + 4, width: NAME_WIDTH - 12, height: ROW - 8, radius: 4, tip, ...subject },
    textMark('onband', MARGIN + 8, y + 18, fitText(name, NAME_WIDTH - 26, 11)),
    ...(done > 0 ? [{ kind: 'rect', look: 'done', x: at(left + 1), width: at(done * cell - 2), ...box } as const] : []),
    ...(isInside ? [{ kind: 'rect', look: 'waits', x: at(left + done * cell + 2), width: at(cell - 4), ...box } as const] : []),
    textMark('text', left + STEPS_WIDTH + 12, y + 19, fitText(text, TEXT_WIDTH - 20, 12), { tip }),
  ];
}
