import { formatGBps } from '../../planner/topology/format.js';
import type { ColourName } from '../draw/palette.js';
import { at, type Mark, textMark, textWidth } from '../draw/picture.js';
import type { Wire } from './boxes.js';

/** A link between two GPUs. */
interface LinkedPair extends Wire {
  readonly style: { readonly subject: string; readonly tip: string; readonly stroke?: ColourName };
}

const MOST_WIDTH = 40;
const CELL_HEIGHT = 22;
const HEAD = 34;
const GAP = 10;

/**
 * Links between GPUs as cells of a triangle, which needs less width than arcs, with a frame coloured by load.
 *
 *     NVLink, GB/s
 *     GPU 1   20
 *     GPU 2   40   20
 *     GPU 3   20   40   20
 *              0    1    2
 *
 * @param names of the GPUs by id, in their order
 */
export function linkCells(
  links: readonly LinkedPair[],
  names: ReadonlyMap<string, string>,
  { x: left, y: top, width: room }: { readonly x: number; readonly y: number; readonly width: number },
): { readonly marks: readonly Mark[]; readonly height: number } {
  const ids = [...names.keys()];
  const last = ids.length - 1;
  const nameWidth = Math.max(...[...names.values()].map((name) => textWidth(name, 11))) + GAP;
  const cell = Math.min(MOST_WIDTH, (room - nameWidth) / Math.max(1, last));
  const xOf = (column: number) => at(left + nameWidth + column * cell);
  const yOf = (row: number) => at(top + HEAD + (row - 1) * CELL_HEIGHT);
  const marks: Mark[] = [textMark('head', left, top + 2 * GAP, 'NVLink, GB/s')];
  [...names.values()].forEach((name, index) => {
    if (index > 0) marks.push(textMark('dim', left, yOf(index) + 14, name));
    if (index < last)
      marks.push(textMark('dim', xOf(index) + cell / 2, yOf(last + 1) + 12, name.replace(/^\D+/, ''), { anchor: 'middle' }));
  });
  for (const { from, to, bandwidthGBps, style } of links) {
    const [column = 0, row = 0] = [ids.indexOf(from), ids.indexOf(to)].sort((a, b) => a - b);
    const place = { x: xOf(column), y: yOf(row), width: at(cell - 3), height: CELL_HEIGHT - 3, radius: 3 };
    marks.push(
      { kind: 'rect', look: 'cell', fill: 'paper', stroke: 'nvlink', strokeWidth: 3, ...place, ...style },
      textMark('onband', place.x + place.width / 2, place.y + 14, formatGBps(bandwidthGBps), { anchor: 'middle' }),
    );
  }
  return { marks, height: HEAD + last * CELL_HEIGHT + 2 * GAP };
}
