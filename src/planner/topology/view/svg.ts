import { type Box, type Drawing, type HostDrawing, NVSWITCH_ID, type Wire } from './drawing.js';
import { formatGBps } from './format.js';
import { escape } from './markup.js';

/**
 * The machine as an SVG picture: boxes within boxes as in the PCI tree, NVSwitches as a bar below, NVLinks between GPUs
 * as arcs.
 *
 *     ┌ CPU 0 ───────────────────────┐  ┌ CPU 1 ──────┐
 *     │ ┌ PCI switch ┐ ┌ PCI switch ┐│──│             │
 *     │ │ NIC   GPU  │ │ NIC   GPU  ││  │             │
 *     │ └────────│───┘ └────────│───┘│  │             │
 *     └──────────│──────────────│────┘  └─────────────┘
 *     ═══════════╧══ NVSwitch ══╧══════════════════════     CPUs that do not fit come in a row below, with a bar
 */
export function drawingSvg(drawing: Drawing): string {
  const layers: Layers = { containers: [], wires: [], front: [] };
  let y = MARGIN + 44;
  let width = 480;
  for (const host of drawing.hosts) {
    const drawn = drawHost(drawing, host, y, layers);
    width = Math.max(width, drawn.width);
    y += drawn.height + GAP;
  }
  const height = y + MARGIN;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width + 2 * MARGIN}" height="${height}" viewBox="0 0 ${width + 2 * MARGIN} ${height}" role="img">`,
    `<title>${escape(`${drawing.title}: ${drawing.summary}`)}</title>`,
    `<style>${STYLE}</style>`,
    `<rect width="100%" height="100%" class="paper"/>`,
    `<text x="${MARGIN}" y="${MARGIN + 12}" class="title">${escape(drawing.title)}</text>`,
    `<text x="${MARGIN}" y="${MARGIN + 30}">${escape(drawing.summary)}</text>`,
    ...layers.containers,
    ...layers.wires,
    ...layers.front,
    '</svg>',
    '',
  ].join('\n');
}

const MARGIN = 16;
const GAP = 10;
/** Gap between adjacent CPUs: room for a line and its bandwidth. */
const CPU_GAP = 3 * GAP;
const HEADER = 22;
const LINE_HEIGHT = 14;
const LEAF_WIDTH = 110;
/** Number of boxes in a row of a container. */
const PER_ROW = 5;
/** Largest width of a row of CPUs. */
const MAX_ROW_WIDTH = 2000;
/** Room below the CPUs for the bar of NVSwitches, or for arcs. */
const BAR_ROOM = 46;
const ARC_ROOM = 90;

const STYLE = [
  'text{font:11px ui-sans-serif,system-ui,sans-serif;fill:#222}',
  '.title{font-size:15px;font-weight:600}.head{font-weight:600}.dim{fill:#666}',
  '.paper{fill:#fff}rect{rx:4px}',
  '.cpu{fill:#eef3fa;stroke:#5b7aa8}.switch{fill:#f6f3ea;stroke:#a18f5d}.card{fill:#fdf0e0;stroke:#c57f2d}',
  '.gpu{fill:#e3f2df;stroke:#4f8a3c}.nvs{fill:#cfe6c6;stroke:#4f8a3c}',
  '.NVL{stroke:#4f8a3c;fill:none;opacity:.75}.SYS{stroke:#5b7aa8;fill:none;stroke-width:2}.C2C{stroke:#8a3c7b;fill:none;stroke-width:2}',
  '@media (prefers-color-scheme:dark){text{fill:#e6e6e6}.dim{fill:#a8adb5}.paper{fill:#15181d}',
  '.cpu{fill:#1b2433}.switch{fill:#2a271d}.card{fill:#35281a}.gpu{fill:#1f3019}.nvs{fill:#2a4321}}',
].join('');

/** Later parts are drawn above earlier ones: wires cross containers, but never hide a device or text. */
interface Layers {
  readonly containers: string[];
  readonly wires: string[];
  readonly front: string[];
}

interface Size {
  readonly width: number;
  readonly height: number;
}

/** Middle of a GPU's lower edge, where NVLinks leave it, by the GPU's id. */
type Anchors = Map<string, { readonly x: number; readonly y: number }>;

function drawHost(drawing: Drawing, host: HostDrawing, top: number, layers: Layers): Size {
  let y = top;
  if (host.label !== '') {
    layers.front.push(text(MARGIN, y + 10, host.label, 'head'));
    y += HEADER;
  }
  const rows = rowsOfCpus(host.cpus);
  const width = Math.max(...rows.map((row) => row.reduce((sum, cpu) => sum + cpu.width + CPU_GAP, -CPU_GAP)));
  const anchors: Anchors = new Map();
  const places: CpuPlace[] = [];
  let bars = 0;
  rows.forEach((row, index) => {
    if (index > 0) y += GAP;
    const inRow: Anchors = new Map();
    const bottom = y + Math.max(...row.map(({ height }) => height));
    let x = MARGIN;
    for (const cpu of row) {
      place(cpu.box, x, y, layers, inRow);
      places.push({ id: cpu.box.id, row: index, x, right: x + cpu.width, y, bottom: y + cpu.height });
      x += cpu.width + CPU_GAP;
    }
    for (const [id, anchor] of inRow) anchors.set(id, anchor);
    const barHeight = drawSwitches(drawing, inRow, bottom, width, bars, layers);
    if (barHeight > 0) bars++;
    y = bottom + barHeight;
  });
  drawInterconnect(drawing.wires, places, layers);
  return { width, height: y - top + drawArcs(drawing, anchors, y, layers) };
}

/** A drawn CPU and its row. */
interface CpuPlace {
  readonly id: string;
  readonly row: number;
  readonly x: number;
  readonly right: number;
  readonly y: number;
  readonly bottom: number;
}

function rowsOfCpus(cpus: readonly Box[]): (Size & { readonly box: Box })[][] {
  const rows: (Size & { readonly box: Box })[][] = [[]];
  let right = 0;
  for (const box of cpus) {
    const size = measure(box);
    if (right > 0 && right + size.width > MAX_ROW_WIDTH) {
      rows.push([]);
      right = 0;
    }
    rows.at(-1)?.push({ box, ...size });
    right += size.width + CPU_GAP;
  }
  return rows;
}

/** Size of a box; leaves have a line for each phrase. */
function measure(box: Box): Size {
  if (isLeaf(box)) {
    const lines = leafLines(box);
    return { width: Math.max(LEAF_WIDTH, ...lines.map((line) => textWidth(line) + 12)), height: 6 + LINE_HEIGHT * lines.length };
  }
  const rows = rowsOf(box);
  return {
    width: Math.max(
      LEAF_WIDTH + 2 * GAP,
      textWidth(headText(box)) + 2 * GAP,
      ...rows.map((row) => row.reduce((sum, { width }) => sum + width + GAP, GAP)),
    ),
    height: HEADER + rows.reduce((sum, row) => sum + Math.max(...row.map(({ height }) => height)) + GAP, 0),
  };
}

function rowsOf(box: Box): (Size & { readonly box: Box })[][] {
  const sized = box.children.map((child) => ({ box: child, ...measure(child) }));
  return Array.from({ length: Math.ceil(sized.length / PER_ROW) }, (_, row) => sized.slice(row * PER_ROW, (row + 1) * PER_ROW));
}

function place(box: Box, x: number, y: number, layers: Layers, anchors: Anchors): void {
  const { width, height } = measure(box);
  const rect = `<rect x="${x}" y="${y}" width="${width}" height="${height}" class="${box.kind}"><title>${escape(box.id)}</title></rect>`;
  if (isLeaf(box)) {
    layers.front.push(rect);
    leafLines(box).forEach((line, index) => {
      layers.front.push(text(x + 6, y + LINE_HEIGHT * (index + 1), line, index === 0 ? 'head' : 'dim'));
    });
    if (box.kind === 'gpu') anchors.set(box.id, { x: x + width / 2, y: y + height });
    return;
  }
  layers.containers.push(rect);
  layers.front.push(text(x + GAP, y + 15, headText(box), 'head'));
  let rowY = y + HEADER;
  for (const row of rowsOf(box)) {
    let childX = x + GAP;
    for (const child of row) {
      place(child.box, childX, rowY, layers, anchors);
      childX += child.width + GAP;
    }
    rowY += Math.max(...row.map((child) => child.height)) + GAP;
  }
}

/** A card shows its ports as lines, a GPU only its name. */
function isLeaf(box: Box): boolean {
  return box.kind === 'gpu' || box.kind === 'card';
}

function leafLines(box: Box): string[] {
  const link = `PCI ${formatGBps(box.uplinkGBps ?? 0)} GB/s`;
  if (box.kind === 'card') {
    return [
      box.label,
      link,
      ...box.children.map((port) => [port.label, ...port.details, `${formatGBps(port.uplinkGBps ?? 0)} GB/s`].join(' ')),
    ];
  }
  // Wires show its NVLinks, except those to the CPU around it.
  const [busId = '', ...details] = box.details;
  return [
    `${box.label} ${busId}`,
    link,
    ...details.filter((detail) => !detail.startsWith('NVLink') || detail.endsWith('to CPU')),
  ];
}

function headText(box: Box): string {
  return [box.label, ...box.details, ...(box.uplinkGBps === undefined ? [] : [`${formatGBps(box.uplinkGBps)} GB/s`])].join(' · ');
}

/** About as wide as this font sets it in bold. */
function textWidth(line: string): number {
  return Math.ceil(line.length * 6.8);
}

/** Lines between CPUs that are neighbours in the drawing; the others have the same bandwidth. */
function drawInterconnect(wires: readonly Wire[], places: readonly CpuPlace[], layers: Layers): void {
  places.slice(1).forEach((here, index) => {
    const before = places[index] ?? here;
    const wire = wires.find(({ kind, from, to }) => kind === 'SYS' && from === before.id && to === here.id);
    if (wire === undefined) return;
    const label = formatGBps(wire.bandwidthGBps);
    const line = (x1: number, y1: number, x2: number, y2: number) =>
      layers.wires.push(
        `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" class="SYS"><title>${escape(`${before.id} to ${here.id}: ${label} GB/s`)}</title></line>`,
      );
    if (before.row === here.row) {
      line(before.right, here.y + 11, here.x, here.y + 11);
      layers.front.push(
        `<text x="${(before.right + here.x) / 2}" y="${here.y + 24}" text-anchor="middle" class="dim">${label}</text>`,
      );
    } else {
      // At the right end of the lower one's head, which has room there.
      const x = Math.min(before.right, here.right) - 3 * GAP;
      line(x, before.bottom, x, here.y);
      layers.front.push(
        `<text x="${x - 6}" y="${here.y + 15}" text-anchor="end" class="dim">${label} GB/s to the CPU above</text>`,
      );
    }
  });
}

/**
 * Draws the bar of NVSwitches below a row of CPUs, and the lines to it; returns its height. Every row has a bar, so that no line
 * crosses a device of another row.
 */
function drawSwitches(
  drawing: Drawing,
  anchors: Anchors,
  bottom: number,
  width: number,
  barsBefore: number,
  layers: Layers,
): number {
  const lines = drawing.wires.flatMap((wire) => {
    if (wire.kind !== 'NVL' || (wire.from !== NVSWITCH_ID && wire.to !== NVSWITCH_ID)) return [];
    const at = anchors.get(wire.from) ?? anchors.get(wire.to);
    return at === undefined ? [] : [{ wire, at }];
  });
  if (lines.length === 0) return 0;
  const y = bottom + 18;
  for (const { wire, at } of lines) {
    layers.wires.push(
      `<line x1="${at.x}" y1="${at.y}" x2="${at.x}" y2="${y}" class="NVL" stroke-width="${strokeWidth(drawing, wire)}"><title>${escape(
        `${formatGBps(wire.bandwidthGBps)} GB/s`,
      )}</title></line>`,
    );
  }
  const each = [...new Set(lines.map(({ wire }) => formatGBps(wire.bandwidthGBps)))].join(', ');
  const again = barsBefore > 0 ? ' (the same as above)' : '';
  const shared = drawing.hosts.length > 1 ? `, shared by ${drawing.hosts.length} hosts` : '';
  layers.front.push(`<rect x="${MARGIN}" y="${y}" width="${width}" height="22" class="nvs"/>`);
  layers.front.push(text(MARGIN + GAP, y + 15, `NVSwitch${again} · ${lines.length} x ${each} GB/s${shared}`, 'head'));
  return BAR_ROOM;
}

/** Draws arcs between GPUs, with a legend of their widths; returns their height. */
function drawArcs(drawing: Drawing, anchors: Anchors, bottom: number, layers: Layers): number {
  const arcs = drawing.wires.filter(
    ({ kind, from, to }) => kind === 'NVL' && anchors.has(from) && anchors.has(to) && from !== to,
  );
  if (arcs.length === 0) return 0;
  for (const wire of arcs) {
    const a = anchors.get(wire.from);
    const b = anchors.get(wire.to);
    if (a === undefined || b === undefined) continue;
    // The farther apart, the deeper.
    const depth = bottom + Math.min(ARC_ROOM, 18 + Math.abs(a.x - b.x) / 8);
    layers.wires.push(
      `<path d="M${a.x} ${a.y}C${a.x} ${depth} ${b.x} ${depth} ${b.x} ${b.y}" class="NVL" stroke-width="${strokeWidth(drawing, wire)}"><title>${escape(
        `${wire.from} to ${wire.to}: ${formatGBps(wire.bandwidthGBps)} GB/s`,
      )}</title></path>`,
    );
  }
  const kinds = new Map(arcs.map((wire) => [formatGBps(wire.bandwidthGBps), strokeWidth(drawing, wire)]));
  let x = MARGIN;
  const y = bottom + ARC_ROOM;
  layers.front.push(text(x, y, 'NVLink', 'head'));
  x += textWidth('NVLink') + GAP;
  for (const [gbps, stroke] of [...kinds].sort(([a], [b]) => Number(a) - Number(b))) {
    layers.front.push(
      `<line x1="${x}" y1="${y - 4}" x2="${x + 24}" y2="${y - 4}" class="NVL" stroke-width="${stroke}"/>`,
      text(x + 30, y, `${gbps} GB/s`, 'dim'),
    );
    x += 30 + textWidth(`${gbps} GB/s`) + GAP;
  }
  return ARC_ROOM + GAP;
}

/** The wider, the more. */
function strokeWidth(drawing: Drawing, wire: Wire): number {
  const most = Math.max(...drawing.wires.map(({ kind, bandwidthGBps }) => (kind === 'NVL' ? bandwidthGBps : 0)));
  return Number((1 + (3 * wire.bandwidthGBps) / most).toFixed(1));
}

function text(x: number, y: number, content: string, className: string): string {
  return `<text x="${x}" y="${y}" class="${className}">${escape(content)}</text>`;
}
