import { formatRate, formatWay } from '../../planner/plan/overview/format.js';
import type { WindowForecast } from '../../planner/plan/overview/windows.js';
import { traitsOf } from '../../planner/tuning/symmetric/kernels.js';
import { describeNoSymmetric, windowsText } from '../../planner/tuning/symmetric/reasons.js';
import type { CallWay } from '../../planner/tuning/symmetric/symmetric.js';
import { fitText, type Mark, type Picture, textMark } from '../draw/picture.js';
import { bordersOf, CHART_WIDTH, sizeAxis, sizeTicks } from './axis.js';
import { type Band, BAND_HEIGHT, bandRow } from './bands.js';

const TOP = 64;
const GAP = 8;
/** Height of a name above its row, in a narrow place. */
const NAME_HEIGHT = 18;

/**
 * Kernels of calls on symmetric windows by size, a row for each collective, and reasons where a general kernel does the call.
 *
 *     AllReduce │ AGxLLMC_R │ RSxLDMC_AGxSTMC      │
 *               └ 1 KiB ───── 1 MiB ──────── 1 GiB
 */
export function windowsPicture({ windows, collectives }: WindowForecast, width: number = CHART_WIDTH): Picture {
  const { isNarrow, left, right } = bordersOf(width);
  const nameHeight = isNarrow ? NAME_HEIGHT : 0;
  const sizes = collectives[0]?.rows.map(({ bytes }) => bytes) ?? [];
  const axis = sizeAxis(sizes[0] ?? 1, sizes.at(-1) ?? 1, left, right);
  const rowY = (index: number) => TOP + index * (BAND_HEIGHT + GAP + nameHeight) + nameHeight;
  const reasons = new Set(
    collectives.flatMap(({ collective, rows }) =>
      rows.flatMap(({ way }) => (way.kind === 'general' ? [`${collective}: ${describeNoSymmetric(way.because)}`] : [])),
    ),
  );
  const notes = [
    ...reasons,
    `GB/s: the most bus bandwidth ${isPredicted(collectives) ? 'of the simulation' : "that NCCL's model believes"}. NCCL's decisions are read from source, not compared.`,
  ];
  const bottom = rowY(collectives.length) - nameHeight - GAP;
  const title = `Kernels on symmetric windows (${windowsText(windows)}), float32 and sum`;
  return {
    title,
    width,
    height: bottom + 44 + 18 * notes.length,
    marks: [
      textMark('head', left, TOP - 30, fitText(title, width - left - 8, 12, true), { tip: title }),
      ...collectives.flatMap(({ collective, rows }, index): Mark[] => [
        ...bandRow(`${collective} on windows`, collective, bandsOf(rows), axis, rowY(index)),
        isNarrow
          ? textMark('text', left, rowY(index) - 5, collective)
          : textMark('text', right + 10, rowY(index) + 19, collective),
        textMark('dim', left - 8, rowY(index) + 19, bestRate(rows), { anchor: 'end' }),
      ]),
      textMark('dim', left - 8, TOP - 8, 'GB/s', { anchor: 'end' }),
      ...sizeTicks(axis, bottom, 6),
      ...notes.map((note, index) =>
        textMark('dim', left, bottom + 40 + 18 * index, fitText(note, width - left - 8, 11), { tip: note }),
      ),
    ],
  };
}

type Rows = WindowForecast['collectives'][number]['rows'];

function isPredicted(collectives: WindowForecast['collectives']): boolean {
  return collectives.some(({ rows }) => rows.some(({ predicted }) => predicted !== undefined));
}

/** Most bus bandwidth of a row, GB/s. */
function bestRate(rows: Rows): string {
  const rates = rows.map(({ way, predicted }) => predicted?.busGBps ?? (way.kind === 'general' ? way.choice : way)?.busGBps ?? 0);
  return formatRate(Math.max(0, ...rates));
}

/** One band for neighbouring sizes with one way. */
function bandsOf(rows: Rows): Band[] {
  return rows
    .map(({ bytes, way }): Band => ({ bytes, ...styleOfWay(way) }))
    .filter(({ labels }, index, all) => index === 0 || all[index - 1]?.labels[0] !== labels[0]);
}

function styleOfWay(way: CallWay): Omit<Band, 'bytes'> {
  switch (way.kind) {
    case 'general':
      return { labels: [`${formatWay(way.choice)} (general)`, 'general', ''], look: 'bandLL128', fill: 'none' };
    case 'copy engines':
      return { labels: ['copy engines', 'copy', ''], look: 'band', fill: 'CopyEngines' };
    case 'symmetric': {
      const name = way.kernel.slice(way.kernel.indexOf('_') + 1);
      return { labels: [name], look: traitsOf(way.kernel).isLl ? 'bandLL' : 'band', fill: 'Symmetric' };
    }
  }
}
