import type { Look } from '../draw/palette.js';
import {
  at,
  COMPACT_WIDTH,
  fitText,
  foldText,
  lineMark,
  type Mark,
  type Picture,
  type Point,
  textMark,
  textWidth,
} from '../draw/picture.js';
import { type ClusterHop, type ClusterModel, type ClusterRow, viaNames } from './model.js';

/** Baseline of the title. */
const TOP = 30;
const HEAD = 58;
const ROW_HEIGHT = 104;
const ROW_GAP = 26;
const OTHERS_HEIGHT = 30;
/** Room above and below the devices of a node, for the arcs between them. */
const BOX_TOP = 44;
const BOX_HEIGHT = 24;
/** Width of a picture on a page. */
const PAGE_WIDTH = 1020;
/** Part of the width that GPUs have, beside ports. */
const GPUS_PART = 500 / 924;
const MOST_CELL = 76;

/** Room around boxes, the least cell, its gaps, and the gap between the last GPU and the first port. */
interface Spacing {
  readonly margin: number;
  readonly pad: number;
  readonly middle: number;
  readonly leastCell: number;
  readonly gpuGap: number;
  readonly portGap: number;
}

const wideSpacing: Spacing = { margin: 16, pad: 12, middle: 40, leastCell: 22, gpuGap: 6, portGap: 8 };
const compactSpacing: Spacing = { margin: 4, pad: 6, middle: 14, leastCell: 17, gpuGap: 3, portGap: 3 };

/** Place of a device: its box. */
interface Place {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly subject: string;
}

type NodeRow = Extract<ClusterRow, { kind: 'node' }>;

/**
 * A channel through all nodes: GPUs at the left, network ports at the right, so that the ports of one number are a column, its
 * rail. Lines tell transports apart by colour and dashes, and end in an arrow at the receiver.
 *
 *     ┌ node 0 ──╭──╮────────────────────────────┐
 *     │ [0] [1] [2] [3]        (NET 0)   (NET 1) │
 *     │  ╰──────────────────────╯  │       │     │
 *     └────────────────────────────│───────│─────┘
 *     ┌ node 1 ────────────────────▼───────│─────┐      rail: a thin line through the ports of one number
 *
 * @param wanted width; a cluster that needs more gets more
 */
export function clusterPicture(model: ClusterModel, wanted: number = PAGE_WIDTH): Picture {
  const painter = new ClusterPainter(model, wanted);
  return painter.picture();
}

class ClusterPainter {
  readonly #model: ClusterModel;
  readonly #spacing: Spacing;
  readonly #wanted: number;
  readonly #gpuCell: number;
  readonly #portCell: number;
  readonly #nGpus: number;
  readonly #nPorts: number;
  readonly #gpus = new Map<number, Place>();
  /** By node and number of the device. */
  readonly #ports = new Map<string, Place>();
  /** Middle of the row of each node that is not drawn. */
  readonly #others: { readonly first: number; readonly last: number; readonly y: number }[] = [];

  constructor(model: ClusterModel, wanted: number) {
    this.#model = model;
    this.#wanted = wanted;
    this.#spacing = wanted < COMPACT_WIDTH ? compactSpacing : wideSpacing;
    const nodes = model.rows.filter((row) => row.kind === 'node');
    this.#nGpus = Math.max(1, ...nodes.map(({ gpus }) => gpus.length));
    this.#nPorts = Math.max(0, ...nodes.map(({ nets }) => nets.length));
    const { margin, pad, middle, leastCell } = this.#spacing;
    const room = wanted - 2 * margin - 2 * pad - middle;
    const cell = (width: number) => Math.max(leastCell, Math.min(MOST_CELL, Math.floor(width)));
    this.#gpuCell = cell((GPUS_PART * room) / this.#nGpus);
    this.#portCell = cell(((1 - GPUS_PART) * room) / Math.max(1, this.#nPorts));
  }

  picture(): Picture {
    const { title, summary, rows, hops } = this.#model;
    const { margin, pad, middle } = this.#spacing;
    const inner = pad + this.#nGpus * this.#gpuCell + (this.#nPorts > 0 ? middle + this.#nPorts * this.#portCell : 0) + pad;
    const facts = this.#spacing === compactSpacing ? foldText(summary, this.#wanted - 2 * margin, 11) : [summary];
    const width = Math.max(inner, Math.min(460, this.#wanted - 2 * margin), ...facts.map((line) => textWidth(line, 11)));
    const boxes: Mark[] = [];
    const front: Mark[] = [];
    let y = HEAD + 16 * (facts.length - 1);
    for (const row of rows) {
      if (row.kind === 'others') {
        front.push(textMark('dim', margin + pad, y + 18, othersText(row)));
        this.#others.push({ first: row.first, last: row.last, y: y + OTHERS_HEIGHT / 2 });
        y += OTHERS_HEIGHT + ROW_GAP;
        continue;
      }
      boxes.push({ kind: 'rect', look: 'host', x: margin, y, width: at(width), height: ROW_HEIGHT, radius: 8 });
      front.push(textMark('head', margin + pad, y + 18, fitText(row.name, width / 2, 12, true)));
      front.push(...this.#devices(row, y + BOX_TOP));
      y += ROW_HEIGHT + ROW_GAP;
    }
    const bottom = y - ROW_GAP;
    const legend = this.#legend(bottom + 24);
    return {
      title: `${title}: ${summary}`,
      width: at(width + 2 * margin),
      height: at(bottom + 40),
      marks: [
        textMark('title', margin, TOP, title),
        ...facts.map((line, index) => textMark('dim', margin, TOP + 18 + 16 * index, line)),
        ...boxes,
        ...this.#rails(bottom),
        ...hops.flatMap((hop) => this.#hop(hop)),
        ...front,
        ...legend,
      ],
    };
  }

  #devices({ node, gpus, nets }: NodeRow, y: number): Mark[] {
    const { margin, pad, middle, gpuGap, portGap } = this.#spacing;
    const left = margin + pad;
    const portLeft = left + this.#nGpus * this.#gpuCell + middle;
    return [
      ...gpus.flatMap(({ rank, label, subject }, index): Mark[] => {
        const place = { x: left + index * this.#gpuCell, y, width: this.#gpuCell - gpuGap, subject };
        this.#gpus.set(rank, place);
        return device('gpu', place, label, `rank ${rank}`);
      }),
      ...nets.flatMap(({ dev, label, subject }, index): Mark[] => {
        const place = { x: portLeft + index * this.#portCell, y, width: this.#portCell - portGap, subject };
        this.#ports.set(`${node}/${dev}`, place);
        const shown = textWidth(label, 11) < place.width - 6 ? label : String(dev);
        return device('card', place, shown, `${label} of node ${node}`);
      }),
    ];
  }

  /** A thin line through the ports of each number. */
  #rails(bottom: number): Mark[] {
    const nodes = this.#model.rows.filter((row) => row.kind === 'node');
    if (nodes.length < 2) return [];
    return (nodes[0]?.nets ?? []).flatMap(({ dev, label }) => {
      const places = nodes.flatMap(({ node }) => this.#ports.get(`${node}/${dev}`) ?? []);
      const first = places[0];
      const last = places.at(-1);
      if (first === undefined || last === undefined || places.length < 2) return [];
      const x = middleOf(first);
      return [lineMark('rail', [x, first.y - 8], [x, Math.min(bottom, last.y + BOX_HEIGHT + 8)], { tip: `rail of ${label}` })];
    });
  }

  #hop(hop: ClusterHop): Mark[] {
    const { from, to, via, tip } = hop;
    const style = { subject: `hop/${from}>${to}`, tip };
    const start = this.#gpus.get(from);
    const end = this.#gpus.get(to);
    if (via === 'NET') return this.#netHop(hop, start, end, style);
    if (start === undefined || end === undefined) return [];
    const look = viaLooks[via];
    const [a, b] = [middleOf(start), middleOf(end)];
    const lift = Math.min(24, 8 + Math.abs(a - b) / 24);
    const top = start.y - lift;
    const relay = hop.relay === undefined ? undefined : this.#gpus.get(hop.relay);
    const over = relay === undefined ? (a + b) / 2 : middleOf(relay);
    return [
      { kind: 'path', look, d: `M${at(a)} ${start.y}Q${at(over)} ${at(2 * top - start.y)} ${at(b)} ${end.y}`, ...style },
      arrow(look, [b, end.y], [over, top], style),
    ];
  }

  /** From a GPU down to its port, along the rail or across, and up to the other GPU: lines in the order of the data. */
  #netHop(hop: ClusterHop, start: Place | undefined, end: Place | undefined, style: HopStyle): Mark[] {
    const out = this.#ports.get(`${hop.fromNode}/${hop.outBy}`);
    const into = this.#ports.get(`${hop.toNode}/${hop.inBy}`);
    const relay = hop.relay === undefined ? undefined : this.#gpus.get(hop.relay);
    const marks: Mark[] = [];
    if (start !== undefined && out !== undefined) {
      const left = relay ?? start;
      if (relay !== undefined && relay !== start) marks.push(below('p2p', start, relay, 12, style));
      marks.push(below('net', left, out, 20, style));
    }
    marks.push(...this.#wire(hop, out, into, style));
    if (end !== undefined && into !== undefined) {
      marks.push(
        below('net', into, end, 28, style),
        arrow('net', [middleOf(end), end.y + BOX_HEIGHT], [middleOf(end), end.y + 60], style),
      );
    }
    return marks;
  }

  /** Between two ports; a line to nodes that are not drawn ends at their row. */
  #wire({ fromNode, toNode }: ClusterHop, out: Place | undefined, into: Place | undefined, style: HopStyle): Mark[] {
    if (out === undefined && into === undefined) return [];
    const outside = (node: number, known: Place): Point => [
      middleOf(known),
      this.#others.find(({ first, last }) => node >= first && node <= last)?.y ?? known.y,
    ];
    const a: Point = out === undefined ? outside(fromNode, into ?? emptyPlace) : [middleOf(out), out.y + BOX_HEIGHT / 2];
    const b: Point = into === undefined ? outside(toNode, out ?? emptyPlace) : [middleOf(into), into.y + BOX_HEIGHT / 2];
    // Past other nodes a line bows, so that it does not hide theirs; the way back bows to the other side.
    const bow = Math.abs(a[1] - b[1]) > ROW_HEIGHT + ROW_GAP + 1 ? (a[1] < b[1] ? 26 : -26) : a[1] < b[1] ? 6 : -6;
    const [x1, y1] = [a[0] + Math.sign(bow) * 5, a[1]];
    const [x2, y2] = [b[0] + Math.sign(bow) * 5, b[1]];
    const d = `M${at(x1)} ${at(y1)}C${at(x1 + bow)} ${at(y1 + (y2 - y1) / 3)} ${at(x2 + bow)} ${at(y2 - (y2 - y1) / 3)} ${at(x2)} ${at(y2)}`;
    const tip: Point = [x2, y2 + (y2 > y1 ? -1 : 1) * (BOX_HEIGHT / 2)];
    return [
      { kind: 'path', look: 'net', d, ...style },
      ...(into === undefined ? [] : [arrow('net', tip, [x2 + bow / 3, y1], style)]),
    ];
  }

  #legend(y: number): Mark[] {
    const used = new Set(this.#model.hops.map(({ via }) => via));
    let x = this.#spacing.margin;
    return (['P2P', 'SHM', 'NET', 'none'] as const).flatMap((via): Mark[] => {
      if (!used.has(via)) return [];
      const marks: Mark[] = [
        lineMark(viaLooks[via], [x, y - 4], [x + 34, y - 4]),
        textMark('dim', x + 42, y, `${via}: ${viaNames[via]}`),
      ];
      x += 42 + textWidth(`${via}: ${viaNames[via]}`, 11) + 18;
      return marks;
    });
  }
}

interface HopStyle {
  readonly subject: string;
  readonly tip: string;
}

const emptyPlace: Place = { x: 0, y: 0, width: 0, subject: '' };

const viaLooks = { P2P: 'p2p', SHM: 'shm', NET: 'net', none: 'broken' } as const satisfies Record<ClusterHop['via'], Look>;

function middleOf({ x, width }: Place): number {
  return x + width / 2;
}

function device(look: 'gpu' | 'card', { x, y, width, subject }: Place, label: string, tip: string): Mark[] {
  return [
    { kind: 'rect', look, x: at(x), y: at(y), width: at(width), height: BOX_HEIGHT, radius: 5, subject, tip },
    textMark('onband', x + width / 2, y + 16, label, { anchor: 'middle' }),
  ];
}

/** From the bottom of one device to the bottom of another, `depth` below. */
function below(look: Look, from: Place, to: Place, depth: number, style: HopStyle): Mark {
  const [a, b] = [middleOf(from), middleOf(to)];
  const y = from.y + BOX_HEIGHT;
  const turn = a < b ? 8 : -8;
  const low = y + depth;
  return {
    kind: 'path',
    look,
    d: `M${at(a)} ${at(y)}C${at(a)} ${at(low)} ${at(a + turn / 2)} ${at(low)} ${at(a + turn)} ${at(low)}L${at(b - turn)} ${at(low)}C${at(b - turn / 2)} ${at(low)} ${at(b)} ${at(low)} ${at(b)} ${at(y)}`,
    ...style,
  };
}

/** A triangle with its tip at a place, pointing away from another. */
function arrow(look: Look, [x, y]: Point, [fromX, fromY]: Point, style: HopStyle): Mark {
  const length = Math.hypot(x - fromX, y - fromY) || 1;
  const [dx, dy] = [(x - fromX) / length, (y - fromY) / length];
  const [bx, by] = [x - 7 * dx, y - 7 * dy];
  const fill = ({ p2p: 'nvlink', shm: 'shared', net: 'net', broken: 'bad' } as const)[look as 'p2p' | 'shm' | 'net' | 'broken'];
  return {
    kind: 'path',
    look: 'arrow',
    d: `M${at(x)} ${at(y)}L${at(bx - 3.5 * dy)} ${at(by + 3.5 * dx)}L${at(bx + 3.5 * dy)} ${at(by - 3.5 * dx)}L${at(x)} ${at(y)}`,
    fill,
    ...style,
  };
}

function othersText({ first, last }: { readonly first: number; readonly last: number }): string {
  return first === last ? `node ${first} is not drawn` : `nodes ${first} to ${last} are not drawn`;
}
