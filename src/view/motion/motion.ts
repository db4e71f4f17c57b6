import { formatBytes, formatTime } from '../../planner/plan/overview/format.js';
import type { TimelineSlice } from '../../planner/simulate/timeline.js';
import type { ColourName } from '../draw/palette.js';
import { at, COMPACT_WIDTH, lineMark, type Mark, type Picture, textMark, textWidth } from '../draw/picture.js';
import { placeAlong } from './along.js';

/** A simulated call on one channel: a picture of its connections, and what moves over them. Times in µs from the launch on. */
export interface Motion {
  /** The connections: their lines have the subjects `hop/FROM>TO`. */
  readonly stage: Picture;
  readonly slices: readonly TimelineSlice[];
  /** Ranks with a row in the chart, in the order of their rows. */
  readonly ranks: readonly number[];
  readonly startUs: number;
  readonly endUs: number;
}

/** A dot that travels: part of the way, and the slice that it stands for. */
interface Chunk {
  readonly from: number;
  readonly to: number;
  readonly part: number;
  readonly bytes: number;
}

/**
 * The connections of a call at a moment: a dot for each slice that is on its way, and beside each receiver the slices that wait
 * in its FIFO.
 */
export function motionPicture(motion: Motion, timeUs: number): Picture {
  const { stage } = motion;
  const ways = waysOf(stage);
  const dots = chunksAt(motion.slices, timeUs).flatMap(({ from, to, part, bytes }): Mark[] => {
    const [x, y] = placeOn(ways.get(`hop/${from}>${to}`) ?? [], part) ?? [NaN, NaN];
    if (Number.isNaN(x)) return [];
    const tip = `${formatBytes(bytes)} from rank ${from} to rank ${to}`;
    return [{ kind: 'circle', look: 'chunk', x: at(x), y: at(y), radius: 6, tip }];
  });
  return {
    ...stage,
    title: `${stage.title}, at ${formatTime(timeUs)}`,
    marks: [...stage.marks, ...dots, ...waiting(motion, timeUs, ways)],
  };
}

type Ways = ReadonlyMap<string, readonly string[]>;

/** Lines of each connection, in the order of its data; arrows are no way. */
function waysOf({ marks }: Picture): Ways {
  const ways = new Map<string, string[]>();
  for (const mark of marks) {
    if (mark.kind !== 'path' || mark.look === 'arrow' || mark.subject?.startsWith('hop/') !== true) continue;
    ways.set(mark.subject, [...(ways.get(mark.subject) ?? []), mark.d]);
  }
  return ways;
}

/** Lines one after the other; each takes the same part of the time. */
function placeOn(lines: readonly string[], part: number) {
  if (lines.length === 0) return undefined;
  const index = Math.min(lines.length - 1, Math.floor(part * lines.length));
  return placeAlong(lines[index] ?? '', part * lines.length - index);
}

/** Slices that are on their way at a moment. */
export function chunksAt(slices: readonly TimelineSlice[], timeUs: number): Chunk[] {
  return slices.flatMap(({ rank, to, startUs, endUs, bytes }) =>
    startUs <= timeUs && timeUs < endUs
      ? to.flatMap((peer) => (peer < 0 ? [] : [{ from: rank, to: peer, part: (timeUs - startUs) / (endUs - startUs), bytes }]))
      : [],
  );
}

/** Slices by connection that were sent and not yet taken: the fill of its FIFO. */
export function fifosAt(slices: readonly TimelineSlice[], timeUs: number): Map<string, number> {
  const fill = new Map<string, number>();
  const add = (key: string, count: number) => fill.set(key, (fill.get(key) ?? 0) + count);
  for (const { rank, from, to, endUs } of slices) {
    if (endUs > timeUs) continue;
    for (const peer of to) if (peer >= 0) add(`${rank}>${peer}`, 1);
    for (const peer of from) if (peer >= 0) add(`${peer}>${rank}`, -1);
  }
  return new Map([...fill].filter(([, count]) => count > 0));
}

function waiting({ slices }: Motion, timeUs: number, ways: Ways): Mark[] {
  return [...fifosAt(slices, timeUs)].flatMap(([way, count]): Mark[] => {
    const [x, y] = placeOn(ways.get(`hop/${way}`) ?? [], 1) ?? [NaN, NaN];
    if (Number.isNaN(x)) return [];
    const [from = '', to = ''] = way.split('>');
    const tip = `${count} in the FIFO from rank ${from}, which rank ${to} has not taken yet`;
    return [
      { kind: 'rect', look: 'fifo', x: at(x + 4), y: at(y - 15), width: 16, height: 13, radius: 3, tip },
      textMark('fifotext', x + 12, y - 5, String(Math.min(99, count)), { anchor: 'middle' }),
    ];
  });
}

const LANE = 16;
const LEFT = 76;
const PAGE_WIDTH = 980;
const TOP = 44;

const deeds: Readonly<Record<TimelineSlice['what'], { readonly colour: ColourName; readonly letter: string }>> = {
  send: { colour: 'line0', letter: 's' },
  'pass on': { colour: 'line2', letter: 'p' },
  reduce: { colour: 'line3', letter: 'r' },
  receive: { colour: 'line1', letter: 'v' },
  copy: { colour: 'line7', letter: 'c' },
};

/**
 * The slices of each rank in time, with a line at the moment that is shown.
 *
 *     rank 0 │ ▬▬▬ ▬▬▬ ▬▬▬ │
 *     rank 1 │     ▬▬▬ ▬▬▬ ▬▬▬
 *            └─────────────┴──────
 */
export function lanesPicture({ slices, ranks, startUs, endUs }: Motion, timeUs: number, width: number = PAGE_WIDTH): Picture {
  const rows = new Map(ranks.map((rank, index) => [rank, TOP + index * LANE]));
  const span = Math.max(1e-9, endUs - startUs);
  const x = (time: number) => LEFT + ((width - LEFT - 16) * (time - startUs)) / span;
  const bottom = TOP + ranks.length * LANE;
  const used = new Set(slices.map(({ what }) => what));
  let legendX = width < COMPACT_WIDTH ? 6 : LEFT;
  const legend = (Object.keys(deeds) as TimelineSlice['what'][]).flatMap((what): Mark[] => {
    if (!used.has(what)) return [];
    const label = `${deeds[what].letter}: ${what}`;
    const marks: Mark[] = [
      { kind: 'rect', look: 'slice', fill: deeds[what].colour, x: legendX, y: 12, width: 14, height: 12, radius: 2 },
      textMark('dim', legendX + 20, 22, label),
    ];
    legendX += 36 + textWidth(label, 11);
    return marks;
  });
  const ticks = (width < COMPACT_WIDTH ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1]).map((part) =>
    textMark('dim', x(startUs + part * span), bottom + 16, formatTime(startUs + part * span), {
      anchor: part === 1 ? 'end' : 'middle',
    }),
  );
  return {
    title: `Slices of each rank in time, at ${formatTime(timeUs)}`,
    width,
    height: bottom + 26,
    marks: [
      ...legend,
      ...ranks.map((rank) => textMark('dim', LEFT - 8, (rows.get(rank) ?? 0) + 11, `rank ${rank}`, { anchor: 'end' })),
      ...slices.flatMap((slice): Mark[] => {
        const y = rows.get(slice.rank);
        if (y === undefined) return [];
        const length = Math.max(1, x(slice.endUs) - x(slice.startUs) - 0.5);
        const { colour, letter } = deeds[slice.what];
        const place = { x: at(x(slice.startUs)), y: y + 2, width: at(length), height: LANE - 4 };
        return [
          { kind: 'rect', look: 'slice', fill: colour, radius: 2, ...place, tip: sliceTip(slice) },
          ...(length > 14 ? [textMark('slicetext', place.x + length / 2, y + 12, letter, { anchor: 'middle' })] : []),
        ];
      }),
      lineMark('now', [x(timeUs), TOP - 8], [x(timeUs), bottom + 2]),
      ...ticks,
    ],
  };
}

function sliceTip({ rank, what, bytes, startUs, endUs, from, to }: TimelineSlice): string {
  const ends = [...(from.length > 0 ? [`from ${peers(from)}`] : []), ...(to.length > 0 ? [`to ${peers(to)}`] : [])];
  return `rank ${rank}: ${what} ${formatBytes(bytes)} ${ends.join(' ')}, ${formatTime(startUs)} to ${formatTime(endUs)}`;
}

function peers(ranks: readonly number[]): string {
  return ranks.map((rank) => (rank < 0 ? 'the switch' : `rank ${rank}`)).join(', ');
}
