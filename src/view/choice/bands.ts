import { formatBytes, formatWay } from '../../planner/plan/overview/format.js';
import type { Flip, Way } from '../../planner/tuning/flips.js';
import type { Protocol } from '../../planner/tuning/names.js';
import type { ColourName, Look } from '../draw/palette.js';
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
  return bandRow(
    title,
    collectives[0] ?? '',
    starts.map(({ bytes, way }) => ({
      bytes,
      labels: [formatWay(way), way?.algorithm ?? ''],
      look: strength[way?.protocol ?? 'Simple'],
      fill: way?.algorithm ?? 'none',
    })),
    axis,
    y,
  );
}

const strength: Readonly<Record<Protocol, Look>> = { LL: 'bandLL', LL128: 'bandLL128', Simple: 'band' };

/** One choice from a size on. */
export interface Band {
  readonly bytes: number;
  /** The name, and shorter ones for narrow bands. */
  readonly labels: readonly string[];
  readonly look: Look;
  readonly fill: ColourName;
}

/** A row of bands; each ends where the next begins. */
export function bandRow(title: string, collective: string, bands: readonly Band[], axis: SizeAxis, y: number): Mark[] {
  return bands.flatMap(({ bytes, labels, look, fill }, index): Mark[] => {
    const end = bands[index + 1]?.bytes ?? axis.most;
    const [from, to] = [axis.x(bytes), axis.x(end)];
    const width = Math.max(1, to - from - 1);
    const fits = [...labels, ''].find((text) => textWidth(text, 11) + 10 <= width) ?? '';
    const tip = `${title}: ${labels[0] ?? ''}, ${formatBytes(Math.round(bytes))} to ${formatBytes(Math.round(end))}`;
    const middle = Math.round(Math.sqrt(bytes * end));
    return [
      {
        kind: 'rect',
        look,
        x: at(from),
        y: at(y),
        width: at(width),
        height: BAND_HEIGHT,
        radius: 3,
        fill,
        subject: `call/${collective}/${middle}`,
        tip,
      },
      ...(fits === '' ? [] : [textMark('onband', from + 7, y + 19, fits)]),
    ];
  });
}
