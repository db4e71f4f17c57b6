import { formatGBps } from '../../planner/topology/format.js';
import { textWidth } from '../draw/picture.js';
import type { Box } from './boxes.js';

/**
 * Places of boxes within boxes. The link of a child to its parent runs down the gutter at its left:
 *
 *     ┌ PCI switch ────────────┐      rows: cards, switches, GPUs; each as wide as the container allows
 *     │ │ ┌───────┐ │ ┌───────┐│
 *     │ ├─┤ NIC   │ └─┤ NIC   ││      lane 0, 1 …: links that share a gutter lie side by side
 *     │ │ └───────┘   └───────┘│
 *     │ │ ┌───────┐            │
 *     │ └─┤ GPU   │            │
 *     └────────────────────────┘
 */
export interface Placed {
  readonly box: Box;
  /** Offset from the corner of the box around it. */
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  /** Number of its link among those in the same gutter. */
  readonly lane: number;
  readonly children: readonly Placed[];
  /** Text of a leaf: its name first. */
  readonly lines: readonly string[];
}

/** Size of a box with the places of all boxes within. */
type Measured = Omit<Placed, 'x' | 'y' | 'lane'>;

/** Room around boxes: what a page has, or the width of a phone, where a device shows its name and speed only. */
export interface Spacing {
  readonly isCompact: boolean;
  readonly pad: number;
  readonly gutter: number;
  /** Room at the right of a device: of a card for the lines of its ports, of a GPU for its links. */
  readonly portRoom: number;
  readonly leastLeaf: number;
}

/** Room around boxes on a page. */
export const wideSpacing: Spacing = { isCompact: false, pad: 8, gutter: 22, portRoom: 10, leastLeaf: 96 };
/** Room around boxes on a phone: two PCI switches side by side. */
export const compactSpacing: Spacing = { isCompact: true, pad: 5, gutter: 16, portRoom: 8, leastLeaf: 86 };

const ROW_GAP = 9;
const HEADER = 26;
const LINE_HEIGHT = 14;

/**
 * Boxes in rows that are at most `width` wide if they can be, from the offset 0,0 on.
 *
 * @param wraps true if boxes within them come in several rows, too
 */
export function placeRows(
  boxes: readonly Box[],
  width: number,
  gap: number,
  wraps: boolean,
  spacing: Spacing,
): { readonly boxes: readonly Placed[]; readonly width: number }[] {
  const measured = boxes.map((box) => measure(box, wraps ? width : Infinity, spacing));
  const rows: { boxes: Placed[]; width: number }[] = [];
  for (const each of measured) {
    let row = rows.at(-1);
    if (row === undefined || row.width + gap + each.width > width) rows.push((row = { boxes: [], width: -gap }));
    row.boxes.push({ ...each, x: row.width + gap, y: 0, lane: 0 });
    row.width += gap + each.width;
  }
  return rows;
}

function measure(box: Box, mostWidth: number, spacing: Spacing): Measured {
  const { pad, gutter, portRoom, leastLeaf, isCompact } = spacing;
  if (box.kind === 'gpu' || box.kind === 'card' || box.kind === 'port') {
    const lines = leafLines(box, isCompact);
    const widths = lines.map((line, index) => textWidth(line, index === 0 ? 12 : 11, index === 0) + 14);
    return { box, width: Math.max(leastLeaf, ...widths), height: 9 + LINE_HEIGHT * lines.length, children: [], lines };
  }
  const inner = mostWidth - 2 * pad;
  const ofKind = (...kinds: readonly Box['kind'][]) =>
    box.children.filter(({ kind }) => kinds.includes(kind)).map((child) => measure(child, inner - gutter, spacing));
  const cards = ofKind('card', 'port');
  const gpus = ofKind('gpu');
  const leaves = [...grid(cards, inner, squareSide(cards.length), spacing), ...grid(gpus, inner, Infinity, spacing)];
  const columns = columnWidths(leaves);
  const children: Placed[] = [];
  const width = { used: textWidth(headText(box, isCompact), 12, true) + 2 * pad + 4 };
  const lanes: number[] = [];
  let y = HEADER;
  const add = (row: readonly Measured[], widths: readonly number[]) => {
    let x = pad;
    row.forEach((child, column) => {
      x += gutter - (column === 0 ? pad / 2 : 0);
      const lane = lanes[column] ?? 0;
      lanes[column] = lane + 1;
      const isLeaf = child.children.length === 0;
      const own = isLeaf ? (widths[column] ?? child.width) : child.width;
      children.push({ ...child, width: own, x, y, lane: Math.min(2, lane) });
      x += own + (isLeaf ? portRoom : 0);
    });
    y += Math.max(...row.map(({ height }) => height)) + ROW_GAP;
    width.used = Math.max(width.used, x + pad);
  };
  for (const row of leaves.filter(([first]) => first?.box.kind !== 'gpu')) add(row, columns);
  for (const row of grid(ofKind('switch', 'cpu'), inner, Infinity, spacing)) add(row, []);
  for (const row of leaves.filter(([first]) => first?.box.kind === 'gpu')) add(row, columns);
  return { box, width: width.used, height: y - ROW_GAP + pad, children, lines: [] };
}

/** Text at the top of a container. */
export function headText({ label, details }: Box, isCompact: boolean): string {
  return shortBusIds([isCompact ? label.replace('PCI switch', 'switch') : label, ...details].join(' · '));
}

/** Number of cards side by side. */
function squareSide(count: number): number {
  return Math.max(1, Math.ceil(Math.sqrt(count)));
}

/** Boxes in rows, side by side as far as the width allows. */
function grid(boxes: readonly Measured[], width: number, most: number, { gutter, portRoom }: Spacing): Measured[][] {
  const rows: Measured[][] = [];
  let used = Infinity;
  for (const each of boxes) {
    const room = each.width + gutter + (each.children.length === 0 ? portRoom : 0);
    let row = rows.at(-1);
    if (row === undefined || used + room > width || row.length >= most) {
      rows.push((row = []));
      used = 0;
    }
    row.push(each);
    used += room;
  }
  return rows;
}

function columnWidths(rows: readonly (readonly Measured[])[]): number[] {
  const widths: number[] = [];
  for (const row of rows)
    row.forEach(({ width }, column) => {
      widths[column] = Math.max(widths[column] ?? 0, width);
    });
  return widths;
}

/** A card shows its ports as lines, a GPU its facts; wires show NVLinks, except those to the CPU around it. */
function leafLines(box: Box, isCompact: boolean): string[] {
  const pci = `PCI ${formatGBps(box.uplinkGBps ?? 0)} GB/s`;
  const ofPort = (port: Box) => portLine(isCompact ? { ...port, details: [] } : port);
  if (box.kind === 'port') return [ofPort(box)];
  if (box.kind === 'card') return [shortBusIds(box.label), pci, ...box.children.map(ofPort)];
  if (isCompact) return [box.label, pci];
  const [busId = '', ...details] = box.details;
  return [
    box.label,
    `${shortBusIds(busId)} · ${pci}`,
    ...details.filter((detail) => !detail.startsWith('NVLink') || detail.endsWith('to CPU')),
  ];
}

/** Bus ids without the domain that nearly all machines have. */
function shortBusIds(text: string): string {
  return text.replace(/\b0000:(?=[\da-f]{2}:)/g, '');
}

function portLine(port: Box): string {
  return [port.label, ...port.details, `${formatGBps(port.uplinkGBps ?? 0)} GB/s`].join(' ');
}
