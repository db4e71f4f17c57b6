import { counted } from '../../counted.js';
import { formatGBps } from '../../planner/topology/format.js';
import { loadColour } from '../draw/palette.js';
import { at, fitText, type Mark, type Picture, textMark, textWidth } from '../draw/picture.js';
import type { MeasuredPair, MeasuredPairs } from './pairs.js';

/** Names at most on one side; the picture says what it leaves out. */
const MOST_NAMES = 160;
/** Names from which on cells are small squares without numbers. */
const MANY_NAMES = 32;
const MARGIN = 16;
const TOP = 62;
const MOST_NAME_WIDTH = 170;
const MOST_LISTED = 12;
/** Part of the best from which on the colour of a cell is strong. */
const FULL_PART = 0.6;

/**
 * Measured pairs as a heat map; rows are where data come from. A pair below 80 % of the median has a frame, and is listed.
 *
 *             n1   n2   n3
 *      n1     –   370 ┌───┐
 *      n2    370   –  │150│     slow: n1 with n3, 150 GB/s, 41 % of the median
 *      n3    150  370 └───┘
 */
export function pairsPicture({ title, names: all, pairs, usualGBps }: MeasuredPairs): Picture {
  const names = all.slice(0, MOST_NAMES);
  const isDense = names.length > MANY_NAMES;
  const [cellWidth, cellHeight] = isDense ? [9, 9] : [52, 24];
  const nameWidth = Math.min(MOST_NAME_WIDTH, Math.max(48, ...names.map((name) => textWidth(name, 12, true))));
  const left = MARGIN + nameWidth + 16;
  const columnHead = isDense ? 0 : 20;
  const mostGBps = Math.max(0, ...[...pairs.values()].map(({ gbps }) => gbps));
  const slow = slowPairs(pairs);
  const summary = `median ${formatGBps(usualGBps)} GB/s, best ${formatGBps(mostGBps)} GB/s, ${slow.length === 0 ? 'no pair stands out' : `${counted(slow.length, 'pair')} below 80 % of the median`}${all.length > MOST_NAMES ? `; the first ${MOST_NAMES} of ${all.length}` : ''}`;
  const marks: Mark[] = [textMark('title', MARGIN, MARGIN + 14, title), textMark('dim', MARGIN, MARGIN + 32, summary)];
  names.forEach((name, index) => {
    const middle = TOP + columnHead + cellHeight * (index + 0.5);
    if (!isDense || index % 4 === 0)
      marks.push(
        textMark('label', left - 8, middle + 4, fitText(name, nameWidth, 12, true), { anchor: 'end', subject: name, tip: name }),
      );
    if (!isDense)
      marks.push(
        textMark('label', left + cellWidth * (index + 0.5), TOP + 12, endOf(name, cellWidth - 4), {
          anchor: 'middle',
          subject: name,
          tip: name,
        }),
      );
  });
  const frames: Mark[] = [];
  names.forEach((from, row) => {
    names.forEach((to, column) => {
      const pair = pairs.get(`${from} ${to}`);
      const place = {
        x: at(left + cellWidth * column),
        y: at(TOP + columnHead + cellHeight * row),
        width: cellWidth,
        height: cellHeight,
      };
      const subject = `path/${from}>${to}`;
      if (from === to || pair === undefined) {
        marks.push({
          kind: 'rect',
          look: 'cell',
          fill: 'X',
          ...place,
          tip: from === to ? from : `${from} with ${to}: not measured`,
        });
        return;
      }
      const tip = describe(`${from} with ${to}`, pair, usualGBps);
      const part = pair.gbps / mostGBps;
      marks.push({ kind: 'rect', look: 'cell', fill: pair.isSlow ? 'DIS' : loadColour(part), ...place, subject, tip });
      const look = !pair.isSlow && part > FULL_PART ? 'onfull' : 'onband';
      const [x, y] = [place.x + cellWidth / 2, place.y + 16];
      if (!isDense) marks.push(textMark(look, x, y, formatGBps(pair.gbps), { anchor: 'middle', subject, tip }));
      if (pair.isSlow) frames.push({ kind: 'rect', look: 'frame', ...place, strokeWidth: 2, subject, tip });
    });
  });
  marks.push(...frames);
  const bottom = TOP + columnHead + cellHeight * names.length + 24;
  const listed = slow.slice(0, MOST_LISTED).map(([pair, measured]) => describe(pair, measured, usualGBps));
  listed.forEach((text, index) => marks.push(textMark('text', MARGIN, bottom + 18 * index, text)));
  const width = Math.max(
    left + cellWidth * names.length,
    MARGIN + textWidth(title, 17, true),
    ...[summary, ...listed].map((text) => MARGIN + textWidth(text, 12)),
  );
  return { title: `${title}: ${summary}`, width: at(width + MARGIN), height: at(bottom + 18 * listed.length), marks };
}

/** A name shortened at its beginning: hosts mostly differ at the end. */
function endOf(name: string, width: number): string {
  if (textWidth(name, 12, true) <= width) return name;
  let begin = 1;
  while (begin < name.length && textWidth(`…${name.slice(begin)}`, 12, true) > width) begin++;
  return `…${name.slice(begin)}`;
}

/** Slow pairs, the slowest first; each once, also where both directions were measured. */
function slowPairs(pairs: MeasuredPairs['pairs']): (readonly [names: string, pair: MeasuredPair])[] {
  const seen = new Set<string>();
  return [...pairs]
    .filter(([, { isSlow }]) => isSlow)
    .sort((a, b) => a[1].gbps - b[1].gbps)
    .flatMap(([key, pair]) => {
      const [from = '', to = ''] = key.split(' ');
      if (seen.has(`${to} ${from}`)) return [];
      seen.add(key);
      return [[`${from} with ${to}`, pair] as const];
    });
}

function describe(names: string, { gbps, nRuns }: MeasuredPair, usualGBps: number): string {
  const runs = nRuns === 1 ? '' : `, median of ${nRuns} runs`;
  return `${names}: ${formatGBps(gbps)} GB/s, ${Math.round((100 * gbps) / usualGBps)} % of the median${runs}`;
}
