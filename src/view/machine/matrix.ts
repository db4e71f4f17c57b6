import { formatGBps } from '../../planner/topology/format.js';
import { type ColourName, colours } from '../draw/palette.js';
import { at, fitText, type Mark, type Picture, textMark, textWidth } from '../draw/picture.js';
import type { Drawing } from './boxes.js';
import { pathMeanings } from './text.js';

/** Cells at most on one side; larger machines are cut, and the picture says so. */
const MOST_ENDPOINTS = 160;
/** Endpoints from which on cells are small squares without text. */
const MANY_ENDPOINTS = 40;
const TOP = 56;
const MARGIN = 16;
/** Width of cells with text; smaller ones are squares. */
const CELL_WIDTH = 44;
const MANY_CELL = 9;
/** Least width of a cell for the number of its column. */
const NUMBERED_CELL = 16;

/**
 * Types of paths between GPUs and network devices as coloured cells; rows are where a path begins.
 *
 *            GPU0  GPU1  NET0
 *     GPU0    X    NVL   PIX
 *     GPU1   NVL    X    PXB          X NVL PIX PXB: legend below
 *
 * @param subjectOf subject of an endpoint by its id; the subject of a cell is `path/FROM>TO`
 * @param wanted width, for which cells become smaller and lose their text
 */
export function matrixPicture(
  drawing: Drawing,
  subjectOf: (id: string) => string = (id) => id,
  wanted: number = Infinity,
): Picture {
  const all = drawing.endpoints.length;
  const endpoints = drawing.endpoints.slice(0, MOST_ENDPOINTS);
  const left = MARGIN + Math.max(48, ...endpoints.map(({ label }) => textWidth(label, 12, true) + 10));
  const most = endpoints.length > MANY_ENDPOINTS ? MANY_CELL : CELL_WIDTH;
  const cellWidth = Math.max(MANY_CELL, Math.min(most, Math.floor((wanted - left - MARGIN) / endpoints.length)));
  const hasText = cellWidth === CELL_WIDTH;
  const cellHeight = hasText ? 24 : cellWidth;
  const isDense = cellWidth < NUMBERED_CELL;
  const columnHead = isDense ? 0 : 20;
  const marks: Mark[] = [
    textMark('title', MARGIN, MARGIN + 14, `Paths of ${drawing.title}`),
    textMark(
      'dim',
      MARGIN,
      MARGIN + 32,
      fitText(all > MOST_ENDPOINTS ? `the first ${MOST_ENDPOINTS} of ${all} devices` : drawing.summary, wanted - 2 * MARGIN, 11),
    ),
  ];
  endpoints.forEach(({ id, label }, index) => {
    const middle = TOP + columnHead + cellHeight * (index + 0.5);
    if (!isDense || index % 4 === 0)
      marks.push(textMark('label', left - 8, middle + 4, label, { anchor: 'end', subject: subjectOf(id) }));
    if (!isDense)
      marks.push(
        textMark('label', left + cellWidth * (index + 0.5), TOP + 12, hasText ? label : label.replace(/^[A-Z]+/, ''), {
          anchor: 'middle',
          subject: subjectOf(id),
        }),
      );
  });
  endpoints.forEach((from, row) => {
    endpoints.forEach((to, column) => {
      const { type = 'DIS', bandwidthGBps = 0 } = drawing.matrix[row]?.[column] ?? {};
      const x = left + cellWidth * column;
      const y = TOP + columnHead + cellHeight * row;
      const meaning = pathMeanings.get(type) ?? '';
      const speed = type === 'X' || bandwidthGBps === 0 ? '' : `, ${formatGBps(bandwidthGBps)} GB/s`;
      const tip = `${from.label} to ${to.label}: ${type}, ${meaning}${speed}`;
      const subject = `path/${subjectOf(from.id)}>${subjectOf(to.id)}`;
      const place = { x: at(x), y: at(y), width: cellWidth, height: cellHeight };
      marks.push({ kind: 'rect', look: 'cell', fill: colourOfPath(type), ...place, subject, tip });
      if (hasText) marks.push(textMark('onband', x + cellWidth / 2, y + 16, type, { anchor: 'middle', subject, tip }));
    });
  });
  const bottom = TOP + columnHead + cellHeight * endpoints.length + 16;
  const types = new Set(drawing.matrix.flat().map(({ type }) => type));
  const used = [...pathMeanings].filter(([type]) => types.has(type) && type !== 'X');
  used.forEach(([type, meaning], index) => {
    const y = bottom + 20 * index;
    marks.push(
      { kind: 'rect', look: 'cell', fill: colourOfPath(type), x: MARGIN, y: at(y), width: 34, height: 16 },
      textMark('onband', MARGIN + 17, y + 12, type, { anchor: 'middle' }),
      textMark('text', MARGIN + 44, y + 12, meaning),
    );
  });
  const width =
    Math.max(left + cellWidth * endpoints.length, ...(wanted === Infinity ? [380, textWidth(drawing.summary, 11)] : [])) + MARGIN;
  return { title: `Paths of ${drawing.title}`, width: at(width), height: at(bottom + 20 * used.length + MARGIN), marks };
}

function colourOfPath(type: string): ColourName {
  return type in colours ? (type as ColourName) : 'DIS';
}
