import { formatBytes, formatWay } from '../../planner/plan/overview/format.js';
import type { Flip, Way } from '../../planner/tuning/flips.js';
import type { Protocol } from '../../planner/tuning/names.js';
import type { Look } from '../draw/palette.js';
import { at, type Mark, textMark, textWidth } from '../draw/picture.js';
import type { SizeAxis } from './axis.js';

/** Height of a row of bands. */
export const BAND_HEIGHT = 30;

/** Choices of one or several collectives over sizes. */
export interface Bands {
  readonly title: string;
  /** Choice at the smallest size; null where NCCL has none. */
  readonly first: Way | null;
  readonly flips: readonly Flip[];
  /** Collectives that the row is about; their first is the subject of its bands. */
  readonly collectives: readonly string[];
}

/** One row: a band for each range of sizes with one choice. */
export function bandMarks({ title, first, flips, collectives }: Bands, axis: SizeAxis, y: number): Mark[] {
  const starts = [{ bytes: axis.least, way: first }, ...flips.map(({ bytes, to }) => ({ bytes, way: to }))];
  return starts.flatMap(({ bytes, way }, index): Mark[] => {
    const end = starts[index + 1]?.bytes ?? axis.most;
    const [from, to] = [axis.x(bytes), axis.x(end)];
    const width = Math.max(1, to - from - 1);
    const label = formatWay(way);
    const fits = [label, way?.algorithm ?? '', ''].find((text) => textWidth(text, 11) + 10 <= width) ?? '';
    const tip = `${title}: ${label}, ${formatBytes(Math.round(bytes))} to ${formatBytes(Math.round(end))}`;
    const middle = Math.round(Math.sqrt(bytes * end));
    return [
      {
        kind: 'rect',
        look: strength[way?.protocol ?? 'Simple'],
        x: at(from),
        y: at(y),
        width: at(width),
        height: BAND_HEIGHT,
        radius: 3,
        fill: way?.algorithm ?? 'none',
        subject: `call/${collectives[0] ?? ''}/${middle}`,
        tip,
      },
      ...(fits === '' ? [] : [textMark('onband', from + 7, y + 19, fits)]),
    ];
  });
}

const strength: Readonly<Record<Protocol, Look>> = { LL: 'bandLL', LL128: 'bandLL128', Simple: 'band' };
