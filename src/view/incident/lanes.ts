import { at, COMPACT_WIDTH, fitText, lineMark, type Mark, type Picture, textMark } from '../draw/picture.js';
import type { Role, StandingRow, Standings } from './standing.js';

/** Places within a row: of the name, the lane and the text behind it, or below it on a phone. */
interface Columns {
  readonly margin: number;
  readonly nameWidth: number;
  readonly laneLeft: number;
  readonly laneWidth: number;
  readonly textLeft: number;
  readonly textWidth: number;
  readonly textY: number;
  readonly row: number;
}

const wide: Columns = {
  margin: 16,
  nameWidth: 180,
  laneLeft: 196,
  laneWidth: 490,
  textLeft: 698,
  textWidth: 290,
  textY: 19,
  row: 28,
};
const NAME_WIDTH_OF_PHONE = 104;
const HEAD = 76;
const BAR = 28;
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
 *
 * @param wanted width; on a phone the text is below the lane
 */
export function lanesPicture({ title, steps, rows }: Standings, wanted = Infinity): Picture {
  const columns = wanted < COMPACT_WIDTH ? ofPhone(wanted) : wide;
  const { margin, laneLeft, laneWidth, row } = columns;
  const cell = laneWidth / Math.max(1, steps.length);
  const right = laneLeft + laneWidth;
  const shown = rows.slice(0, MOST_ROWS);
  const bottom = HEAD + shown.length * row;
  const more = rows.length - shown.length;
  const width = wanted < COMPACT_WIDTH ? wanted : right + columns.textWidth + 20 + margin;
  return {
    title: `${title}: ${rows
      .map(({ name, text }) => `${name} ${text}`)
      .slice(0, 4)
      .join('; ')}`,
    width,
    height: bottom + (more > 0 ? 44 : 24),
    marks: [
      textMark('title', margin, margin + 14, fitText(title, width - 2 * margin, 17, true)),
      ...steps.flatMap((step, index): Mark[] => [
        lineMark('grid', [laneLeft + index * cell, HEAD - 22], [laneLeft + index * cell, bottom]),
        textMark('dim', laneLeft + index * cell + 4, HEAD - 10, fitText(step, cell - 6, 11), { tip: step }),
      ]),
      lineMark('grid', [right, HEAD - 22], [right, bottom]),
      ...shown.flatMap((each, index) => lane(each, HEAD + index * row, columns, cell)),
      ...(more > 0 ? [textMark('dim', margin, bottom + 18, `${more} more positions are not drawn`)] : []),
    ],
  };
}

/** A name and its lane side by side, and the text below them. */
function ofPhone(width: number): Columns {
  const margin = 4;
  const laneLeft = margin + NAME_WIDTH_OF_PHONE;
  return {
    margin,
    nameWidth: NAME_WIDTH_OF_PHONE,
    laneLeft,
    laneWidth: width - laneLeft - margin,
    textLeft: margin + 4,
    textWidth: width - 2 * margin - 4,
    textY: BAR + 11,
    row: BAR + 22,
  };
}

function lane({ name, done, isInside, text, role, ranks }: StandingRow, y: number, columns: Columns, cell: number): Mark[] {
  const { margin, nameWidth, laneLeft, textLeft, textWidth, textY } = columns;
  const subject = ranks.length === 1 ? { subject: `rank/${ranks[0] ?? 0}` } : {};
  const tip = `${name}: ${text} (${roleNames[role]})`;
  const box = { y: y + 5, height: BAR - 10, radius: 3, tip, ...subject };
  return [
    { kind: 'rect', look: role, x: margin, y: y + 4, width: nameWidth - 12, height: BAR - 8, radius: 4, tip, ...subject },
    textMark('onband', margin + 8, y + 18, fitText(name, nameWidth - 26, 11)),
    ...(done > 0 ? [{ kind: 'rect', look: 'done', x: at(laneLeft + 1), width: at(done * cell - 2), ...box } as const] : []),
    ...(isInside
      ? [{ kind: 'rect', look: 'waits', x: at(laneLeft + done * cell + 2), width: at(cell - 4), ...box } as const]
      : []),
    textMark('text', textLeft, y + textY, fitText(text, textWidth, 12), { tip }),
  ];
}
