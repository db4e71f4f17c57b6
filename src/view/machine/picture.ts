import { formatGBps } from '../../planner/topology/format.js';
import { type ColourName, loadColour } from '../draw/palette.js';
import {
  at,
  COMPACT_WIDTH,
  fitText,
  foldText,
  lineMark,
  type Mark,
  type PathMark,
  type Picture,
  type Point,
  polyline,
  textMark,
  textWidth,
} from '../draw/picture.js';
import { type Box, type Drawing, foldHosts, type HostDrawing, NVSWITCH_ID, type Wire } from './boxes.js';
import { linkCells } from './link-cells.js';
import { compactSpacing, headText, type Placed, placeRows, type Spacing, wideSpacing } from './layout.js';

/** Options of a machine's picture. */
export interface MachinePictureOptions {
  /** Wanted width; a machine that needs more gets more. Below {@link COMPACT_WIDTH} devices show their names and speeds only. */
  readonly width?: number;
  /** Loads of links, by {@link linkKey}: links are coloured by them. */
  readonly loads?: ReadonlyMap<string, LinkUse>;
  /** Subjects of boxes and links; without it the id of a box is its subject. */
  readonly subjectOf?: (id: string) => string | undefined;
  /** Number of the host that is drawn for all that are equal; the first by default. */
  readonly host?: number;
}

/** Use of a link in one direction, GB/s. */
export interface LinkUse {
  readonly usedGBps: number;
  readonly gbps: number;
}

/** Key of a directed link: the ids of two boxes. */
export function linkKey(from: string, to: string): string {
  return `${from}>${to}`;
}

/**
 * The machine as a picture: boxes within boxes as in the PCI tree, with the link of each box to the one around it; NVSwitches as
 * a bar below, NVLinks between GPUs as arcs.
 *
 *     ┌ CPU 0 ─────────────────┐    ┌ CPU 1 ──────┐
 *     │ │ ┌ PCI switch ───┐    │    │             │
 *     │ ├─┤ ├─ NIC ── net │ …  │────│             │
 *     │   │ └─ GPU        │    │    │             │
 *     │   └──────│────────┘    │    │             │
 *     └──────────│─────────────┘    └─────────────┘
 *     ═══════════╧══ NVSwitch ═════════════════════     CPUs that do not fit come in a row below, with a bar
 */
export function machinePicture(drawing: Drawing, options: MachinePictureOptions = {}): Picture {
  const painter = new MachinePainter(drawing, options);
  return painter.picture();
}

/** {@link machinePicture} in a width that shows every name. */
export const MACHINE_WIDTH = 1248;

const GAP = 10;
/** Gap between adjacent CPUs: room for a line and its bandwidth. */
const CPU_GAP = 36;
const LINE_HEIGHT = 14;
/** Room below the CPUs for the bar of NVSwitches, or for arcs. */
const BAR_ROOM = 48;
const ARC_ROOM = 90;
/** Distance of links that share a gutter. */
const LANE = 5;

/** Place of a drawn GPU. */
interface Corner {
  readonly label: string;
  readonly x: number;
  readonly right: number;
  readonly y: number;
  readonly bottom: number;
}

/** Drawn GPUs by id. */
type Corners = Map<string, Corner>;

class MachinePainter {
  readonly #drawing: Drawing;
  readonly #options: MachinePictureOptions;
  /** Later layers are drawn above earlier ones: wires cross containers, but never hide a device or text. */
  readonly #containers: Mark[] = [];
  readonly #wires: Mark[] = [];
  readonly #front: Mark[] = [];
  readonly #mostNvlGBps: number;
  readonly #spacing: Spacing;
  readonly #margin: number;

  constructor(drawing: Drawing, options: MachinePictureOptions) {
    this.#drawing = drawing;
    this.#options = options;
    const isCompact = options.width !== undefined && options.width < COMPACT_WIDTH;
    this.#spacing = isCompact ? compactSpacing : wideSpacing;
    this.#margin = isCompact ? 4 : 16;
    this.#mostNvlGBps = Math.max(0, ...drawing.wires.map(({ kind, bandwidthGBps }) => (kind === 'NVL' ? bandwidthGBps : 0)));
  }

  picture(): Picture {
    const { title, summary, hosts } = this.#drawing;
    const facts = this.#spacing.isCompact ? foldText(summary, this.#room(), 11) : [summary];
    let y = this.#margin + 30 + 16 * facts.length;
    let width = this.#spacing.isCompact ? this.#room() : Math.max(480, textWidth(summary, 12), textWidth(title, 17, true));
    for (const { host, label } of foldHosts(hosts, this.#options.host ?? 0)) {
      const size = this.#host(host, label, y);
      width = Math.max(width, size.width);
      y += size.height + GAP;
    }
    const marks: Mark[] = [
      textMark('title', this.#margin, this.#margin + 14, title),
      ...facts.map((line, index) => textMark('dim', this.#margin, this.#margin + 32 + 16 * index, line)),
      ...this.#containers,
      ...this.#wires,
      ...this.#front,
    ];
    return { title: `${title}: ${summary}`, width: at(width + 2 * this.#margin), height: at(y + this.#margin - GAP), marks };
  }

  /** Width without margins. */
  #room(): number {
    return (this.#options.width ?? MACHINE_WIDTH) - 2 * this.#margin;
  }

  #host(host: HostDrawing, label: string, top: number): { readonly width: number; readonly height: number } {
    let y = top;
    if (label !== '') {
      this.#front.push(textMark('head', this.#margin, y + 10, fitText(label, this.#room(), 12, true), { tip: label }));
      y += 22;
    }
    // NVLinks go down from GPUs: arcs would cross a second row of CPUs, lines to switches a second row within one.
    const wanted = this.#hasArcs() && !this.#spacing.isCompact ? Infinity : this.#room();
    const wraps = this.#mostNvlGBps === 0 || this.#spacing.isCompact;
    const rows = placeRows(host.cpus, wanted, CPU_GAP, wraps, this.#spacing);
    const width = Math.max(...rows.map(({ width: own }) => own));
    const gpus: Corners = new Map();
    const places: CpuPlace[] = [];
    let bars = 0;
    rows.forEach(({ boxes }, row) => {
      if (row > 0) y += GAP;
      const inRow: Corners = new Map();
      const bottom = y + Math.max(...boxes.map(({ height }) => height));
      for (const placed of boxes) {
        const { box, x } = placed;
        this.#place(placed, this.#margin, y, inRow);
        places.push({
          id: box.id,
          row,
          x: this.#margin + x,
          right: this.#margin + x + placed.width,
          y,
          bottom: y + placed.height,
          headWidth: GAP + textWidth(headText(box, this.#spacing.isCompact), 12, true),
        });
      }
      for (const [id, corner] of inRow) gpus.set(id, corner);
      const barHeight = this.#switches(inRow, bottom, width, bars);
      if (barHeight > 0) bars++;
      y = bottom + barHeight;
    });
    this.#interconnect(places);
    this.#cpuLinks(gpus, places);
    return { width, height: y - top + this.#arcs(gpus, y) };
  }

  /** Draws a box at the place of its parent's corner plus its own offset, and all boxes within. */
  #place(placed: Placed, left: number, top: number, gpus: Corners): void {
    const { box, width, height } = placed;
    const x = left + placed.x;
    const y = top + placed.y;
    const isLeaf = placed.children.length === 0;
    (isLeaf ? this.#front : this.#containers).push({
      kind: 'rect',
      look: box.kind === 'port' ? 'card' : box.kind,
      x: at(x),
      y: at(y),
      width: at(width),
      height: at(height),
      radius: isLeaf ? 5 : 7,
      subject: this.#subject(box.id),
      tip: tipOf(box),
    });
    if (isLeaf) {
      this.#leaf(placed, x, y);
      if (box.kind === 'gpu') gpus.set(box.id, { label: box.label, x, right: x + width, y, bottom: y + height });
      return;
    }
    this.#front.push(
      textMark('head', x + GAP, y + 16, fitText(headText(box, this.#spacing.isCompact), width - 2 * GAP, 12, true)),
    );
    for (const child of placed.children) {
      this.#uplink(child, box, x, y);
      this.#place(child, x, y, gpus);
    }
  }

  /** The link of a box to the box around it: down the gutter at its left, then in. */
  #uplink(child: Placed, parent: Box, left: number, top: number): void {
    const x = left + child.x;
    const y = top + child.y + 12;
    const gutter = x - 6 - LANE * child.lane;
    this.#wires.push(
      this.#link('pci', [child.box.id, parent.id], child.box.uplinkGBps ?? 0, [
        [gutter, top + 20],
        [gutter, y],
        [x, y],
      ]),
    );
  }

  /** Links of GPUs past switches to a CPU, over NVLink or C2C: from the CPU's head down the right side of the GPU. */
  #cpuLinks(gpus: ReadonlyMap<string, Corner>, cpus: readonly CpuPlace[]): void {
    for (const { kind, from, to, bandwidthGBps } of this.#drawing.wires) {
      if (kind !== 'C2C' && kind !== 'NVL') continue;
      const [gpu, cpu] = gpus.has(from) ? [from, to] : [to, from];
      const corner = gpus.get(gpu);
      const place = cpus.find(({ id }) => id === cpu);
      if (corner === undefined || place === undefined) continue;
      const x = corner.right + 6;
      this.#wires.push(
        this.#link(kind === 'C2C' ? 'c2c' : 'nvlink', [gpu, cpu], bandwidthGBps, [
          [x, place.y + 20],
          [x, corner.y + 12],
          [corner.right, corner.y + 12],
        ]),
      );
    }
  }

  #leaf(placed: Placed, x: number, y: number): void {
    const { box, width } = placed;
    const room = width - 12;
    placed.lines.forEach((line, index) => {
      const look = index === 0 ? 'head' : 'dim';
      const shown = fitText(line, room, index === 0 ? 12 : 11, index === 0);
      this.#front.push(textMark(look, x + 7, y + 15 + LINE_HEIGHT * index, shown));
    });
    box.children.forEach((port, index) => {
      const row = placed.lines.length - box.children.length + index;
      const lineY = y + 11 + LINE_HEIGHT * row;
      this.#wires.push(
        this.#link('netlink', [port.id, box.id], port.uplinkGBps ?? 0, [
          [x + width, lineY],
          [x + width + 9, lineY],
        ]),
      );
      this.#front.push(this.#port(port, x, lineY, width));
    });
  }

  #port(port: Box, x: number, y: number, width: number): Mark {
    return {
      kind: 'rect',
      look: 'target',
      x: at(x),
      y: at(y - 8),
      width: at(width),
      height: LINE_HEIGHT,
      subject: this.#subject(port.id),
      tip: tipOf(port),
    };
  }

  #subject(id: string): string {
    return this.#options.subjectOf?.(id) ?? id;
  }

  /** A link in both directions: coloured by the fuller one, as wide as it carries much. */
  #link(
    look: PathMark['look'],
    [from, to]: readonly [string, string],
    gbps: number,
    points: readonly Point[] | string,
  ): PathMark {
    const style = this.#linkStyle([from, to], gbps);
    return typeof points === 'string' ? { kind: 'path', look, d: points, ...style } : polyline(look, points, style);
  }

  #linkStyle([from, to]: readonly [string, string], gbps: number) {
    const { loads } = this.#options;
    const what = `${from} to ${to}`;
    const there = loads?.get(linkKey(from, to));
    const back = loads?.get(linkKey(to, from));
    const part = Math.max(...[there, back].map((use) => (use === undefined ? 0 : use.usedGBps / use.gbps)));
    const colour: ColourName | undefined = loads === undefined ? undefined : loadColour(part);
    const used = [there, back].map((use) => formatGBps(use?.usedGBps ?? 0));
    const tip =
      loads === undefined
        ? `${what}: ${formatGBps(gbps)} GB/s`
        : `${what}: ${used[0] ?? ''} GB/s there, ${used[1] ?? ''} back, of ${formatGBps(gbps)}`;
    return {
      subject: `link/${this.#subject(from)}>${this.#subject(to)}`,
      tip,
      ...(colour === undefined ? {} : { stroke: colour }),
      strokeWidth: this.#widthOf(gbps),
    };
  }

  /** The wider, the more. */
  #widthOf(gbps: number): number {
    return Number(Math.min(4, 1 + Math.log2(1 + gbps / 24)).toFixed(1));
  }

  /** Lines between CPUs that are neighbours in the drawing; the others have the same bandwidth. */
  #interconnect(places: readonly CpuPlace[]): void {
    places.slice(1).forEach((here, index) => {
      const before = places[index] ?? here;
      const wire = this.#drawing.wires.find(({ kind, from, to }) => kind === 'SYS' && from === before.id && to === here.id);
      if (wire === undefined) return;
      const label = formatGBps(wire.bandwidthGBps);
      if (before.row === here.row) {
        const y = here.y + 14;
        this.#wires.push(
          this.#link('cpulink', [before.id, here.id], wire.bandwidthGBps, [
            [before.right, y],
            [here.x, y],
          ]),
        );
        this.#front.push(textMark('smalldim', (before.right + here.x) / 2, here.y + 28, label, { anchor: 'middle' }));
      } else {
        // At the right end of the lower one's head, which has room there.
        const x = Math.min(before.right, here.right) - 3 * GAP;
        this.#wires.push(
          this.#link('cpulink', [before.id, here.id], wire.bandwidthGBps, [
            [x, before.bottom],
            [x, here.y],
          ]),
        );
        const text = `${label} GB/s to the CPU above`;
        if (x - 6 - textWidth(text, 11) > here.x + here.headWidth)
          this.#front.push(textMark('dim', x - 6, here.y + 16, text, { anchor: 'end' }));
      }
    });
  }

  /**
   * Draws the bar of NVSwitches below a row of CPUs, and the lines to it; returns its height. Every row has a bar, so that no
   * line crosses a device of another row.
   */
  #switches(gpus: Corners, bottom: number, width: number, barsBefore: number): number {
    const lines = this.#drawing.wires.flatMap((wire) => {
      if (wire.kind !== 'NVL' || (wire.from !== NVSWITCH_ID && wire.to !== NVSWITCH_ID)) return [];
      const place = gpus.get(wire.from) ?? gpus.get(wire.to);
      return place === undefined ? [] : [{ wire, place }];
    });
    if (lines.length === 0) return 0;
    const y = bottom + 20;
    for (const { wire, place } of lines)
      this.#wires.push(this.#link('nvlink', wireEnds(wire), wire.bandwidthGBps, lineDown(place, y, gpus)));
    const each = [...new Set(lines.map(({ wire }) => formatGBps(wire.bandwidthGBps)))].join(', ');
    const again = barsBefore > 0 ? ' (the same as above)' : '';
    const { hosts } = this.#drawing;
    const shared = hosts.length > 1 ? `, shared by ${hosts.length} hosts` : '';
    const label = `NVSwitch${again} · ${lines.length} x ${each} GB/s${shared}`;
    this.#front.push(
      {
        kind: 'rect',
        look: 'nvs',
        x: this.#margin,
        y: at(y),
        width: at(width),
        height: 22,
        radius: 5,
        subject: this.#subject(NVSWITCH_ID),
        tip: label,
      },
      textMark('head', this.#margin + GAP, y + 15, fitText(label, width - 2 * GAP, 12, true)),
    );
    return BAR_ROOM;
  }

  #hasArcs(): boolean {
    const boxes = new Set(this.#drawing.hosts.flatMap(({ cpus }) => cpus.map(({ id }) => id)));
    return this.#drawing.wires.some(
      ({ kind, from, to }) => kind === 'NVL' && ![from, to].some((end) => end === NVSWITCH_ID || boxes.has(end)),
    );
  }

  /** Draws arcs between GPUs, with a legend of their widths; returns their height. */
  #arcs(gpus: Corners, bottom: number): number {
    const arcs = this.#drawing.wires.filter(
      ({ kind, from, to }) => kind === 'NVL' && gpus.has(from) && gpus.has(to) && from !== to,
    );
    if (arcs.length === 0) return 0;
    if (this.#spacing.isCompact) {
      const names = new Map([...gpus].map(([id, { label }]) => [id, label]));
      const cells = arcs.map((wire) => ({ ...wire, style: this.#linkStyle(wireEnds(wire), wire.bandwidthGBps) }));
      const { marks, height } = linkCells(cells, names, { x: this.#margin, y: bottom, width: this.#room() });
      this.#front.push(...marks);
      return height;
    }
    for (const wire of arcs) {
      const a = gpus.get(wire.from);
      const b = gpus.get(wire.to);
      if (a === undefined || b === undefined) continue;
      // The farther apart, the deeper.
      const depth = bottom + Math.min(ARC_ROOM, 18 + Math.abs(a.x - b.x) / 8);
      const d = `M${at(middle(a))} ${at(a.bottom)}C${at(middle(a))} ${at(depth)} ${at(middle(b))} ${at(depth)} ${at(middle(b))} ${at(b.bottom)}`;
      this.#wires.push({ ...this.#link('nvlink', wireEnds(wire), wire.bandwidthGBps, d), strokeWidth: this.#arcWidth(wire) });
    }
    const widths = new Map(arcs.map((wire) => [formatGBps(wire.bandwidthGBps), this.#arcWidth(wire)]));
    let x = this.#margin;
    const y = bottom + ARC_ROOM;
    this.#front.push(textMark('head', x, y, 'NVLink'));
    x += textWidth('NVLink', 12, true) + GAP;
    for (const [gbps, strokeWidth] of [...widths].sort(([a], [b]) => Number(a) - Number(b))) {
      this.#front.push(
        lineMark('nvlink', [x, y - 4], [x + 24, y - 4], { strokeWidth }),
        textMark('dim', x + 30, y, `${gbps} GB/s`),
      );
      x += 30 + textWidth(`${gbps} GB/s`, 11) + GAP;
    }
    return ARC_ROOM + GAP;
  }

  #arcWidth({ bandwidthGBps }: Wire): number {
    return Number((1 + (3 * bandwidthGBps) / this.#mostNvlGBps).toFixed(1));
  }
}

/** A drawn CPU and its row. */
interface CpuPlace {
  readonly id: string;
  readonly row: number;
  readonly x: number;
  readonly right: number;
  readonly y: number;
  readonly bottom: number;
  /** Width of its head's text, with the gap at its left. */
  readonly headWidth: number;
}

function middle({ x, right }: Corner): number {
  return (x + right) / 2;
}

/** A line from a GPU down to `y`: past its side where another GPU is below it. */
function lineDown(gpu: Corner, y: number, gpus: Corners): Point[] {
  const under = [...gpus.values()].filter((other) => other.x === gpu.x && other.y > gpu.y);
  if (under.length === 0)
    return [
      [middle(gpu), gpu.bottom],
      [middle(gpu), y],
    ];
  const x = Math.max(gpu.right, ...under.map(({ right }) => right)) + 2 + 2 * under.length;
  return [
    [gpu.right, gpu.bottom - 6],
    [x, gpu.bottom - 6],
    [x, y],
  ];
}

function wireEnds({ from, to }: Wire): readonly [string, string] {
  return [from, to];
}

function tipOf({ id, label, details, uplinkGBps }: Box): string {
  const link = uplinkGBps === undefined ? [] : [`${formatGBps(uplinkGBps)} GB/s to the device above`];
  return [`${label} (${id})`, ...details, ...link].join(' · ');
}
