import { type LogFinding, namedRanks } from '../../planner/log/checks/finding.js';
import type { LogModel } from '../../planner/log/job/model.js';
import { at, fitText, type Mark, type Picture, textMark, textWidth } from '../draw/picture.js';
import { roleNames } from './lanes.js';
import type { Role, Roles, Wait } from './standing.js';

/** A rank's place: its host, its number there for the order, and the subject of its GPU where that is known. */
export interface RankPlace {
  readonly rank: number;
  readonly host: string;
  readonly subject: string;
}

/** Ranks at most that are placed. */
const MOST_RANKS = 16_384;

/**
 * Places of all ranks that the files name: by the lines of their processes, or RAS.
 *
 * @param planned places in a plan of the machine, for ranks whose host the files do not name
 */
export function placesOf(
  model: LogModel,
  findings: readonly LogFinding[],
  planned: (rank: number) => RankPlace | undefined,
): RankPlace[] {
  const hosts = new Map<number, string>();
  const add = (rank: number, host: string) => {
    if (rank >= 0 && hosts.size < MOST_RANKS && (hosts.get(rank) ?? '') === '') hosts.set(rank, host);
  };
  for (const { ranks, isSplit } of model.communicators)
    if (!isSplit) for (const [rank, { process }] of ranks) add(rank, process.host);
  for (const { communicators } of model.ras)
    for (const { processes } of communicators) for (const [rank, { host }] of processes) add(rank, host);
  for (const { rank, groups } of model.recordings) {
    add(rank, '');
    for (const ranks of groups.values()) for (const each of ranks) add(each, '');
  }
  for (const { rank } of model.timeouts) add(rank, '');
  for (const { ranks = [], waiting = [] } of findings) for (const each of [...ranks, ...waiting]) add(each, '');
  return [...hosts]
    .sort(([a], [b]) => a - b)
    .map(([rank, host]) => {
      const known = planned(rank);
      return { rank, host: host === '' ? (known?.host ?? '') : host, subject: known?.subject ?? `rank/${rank}` };
    });
}

const MARGIN = 16;
const HEAD = 62;
const CELL = 34;
const PER_ROW = 8;
const BOX_WIDTH = PER_ROW * CELL + 20;
const GAP = 44;
const COLUMNS = 3;
const MOST_HOSTS = 12;
const MOST_CELLS = 128;

interface Box {
  readonly host: string;
  readonly ranks: readonly RankPlace[];
  readonly x: number;
  readonly y: number;
  readonly height: number;
}

/**
 * Hosts with their ranks, coloured by their part in the incident, with an arrow from each host whose ranks wait to the first
 * rank that they wait for. Hosts of ranks that others wait for come first; of many equal ones the rest are counted.
 *
 * @param wanted width, into which hosts are put side by side
 */
export function hostsPicture(places: readonly RankPlace[], roles: Roles, wanted = Infinity): Picture | undefined {
  if (places.length < 2 || !places.some(({ rank }) => roles.of(rank) !== 'rank')) return undefined;
  const byHost = new Map<string, RankPlace[]>();
  for (const place of places) byHost.set(place.host, [...(byHost.get(place.host) ?? []), place]);
  const weight = (ranks: readonly RankPlace[]) => Math.min(...ranks.map(({ rank }) => order.indexOf(roles.of(rank))));
  const hosts = [...byHost].sort(([, a], [, b]) => weight(a) - weight(b));
  const drawn = hosts.slice(0, MOST_HOSTS);
  const columns = Math.max(1, Math.min(COLUMNS, Math.floor((wanted - 2 * MARGIN + GAP) / (BOX_WIDTH + GAP))));
  const boxes: Box[] = [];
  let y = HEAD;
  for (let first = 0; first < drawn.length; first += columns) {
    const line = drawn.slice(first, first + columns);
    const heights = line.map(([, ranks]) => 34 + Math.ceil(Math.min(ranks.length, MOST_CELLS) / PER_ROW) * (CELL - 4) + 6);
    line.forEach(([host, ranks], column) => {
      boxes.push({ host, ranks, x: MARGIN + column * (BOX_WIDTH + GAP), y, height: heights[column] ?? 0 });
    });
    y += Math.max(...heights) + GAP;
  }
  const wait = roles.waits[0];
  const left = hosts.length - drawn.length;
  const title = wait === undefined ? 'Ranks of the incident' : sentence(wait);
  const width = 2 * MARGIN + Math.min(columns, Math.max(2, drawn.length)) * (BOX_WIDTH + GAP) - GAP;
  return {
    title,
    width,
    height: y + 16,
    marks: [
      textMark('title', MARGIN, MARGIN + 14, fitText(title, width - 2 * MARGIN, 17, true)),
      ...boxes.flatMap((box) => boxMarks(box, roles)),
      ...(wait === undefined ? [] : arrows(boxes, wait)),
      ...legend(boxes, roles, y - GAP + 42),
      ...(left > 0 ? [textMark('dim', MARGIN, HEAD - 12, `${left} more hosts are not drawn`)] : []),
    ],
  };
}

const order: readonly Role[] = ['late', 'gone', 'waits', 'rank'];

function sentence({ late, waiting }: Wait): string {
  return waiting.length === 0
    ? namedRanks(late)
    : `${namedRanks(waiting)} ${waiting.length === 1 ? 'waits' : 'wait'} for ${namedRanks(late)}`;
}

function boxMarks({ host, ranks, x, y, height }: Box, roles: Roles): Mark[] {
  const left = ranks.length - MOST_CELLS;
  const name = `${host === '' ? 'hosts are not named' : host}${left > 0 ? `, ${left} more ranks` : ''}`;
  return [
    { kind: 'rect', look: 'host', x, y, width: BOX_WIDTH, height, radius: 8 },
    textMark('head', x + 10, y + 20, fitText(name, BOX_WIDTH - 20, 12, true), { tip: name }),
    ...ranks.slice(0, MOST_CELLS).flatMap(({ rank, subject }, index): Mark[] => {
      const [cx, cy] = cellOf({ x, y }, index);
      const role = roles.of(rank);
      const tip = `rank ${rank}${host === '' ? '' : ` on ${host}`}: ${roleNames[role]}`;
      return [
        { kind: 'rect', look: role, x: cx, y: cy, width: CELL - 6, height: CELL - 10, radius: 4, subject, tip },
        textMark('onband', cx + (CELL - 6) / 2, cy + 16, String(rank), { anchor: 'middle' }),
      ];
    }),
  ];
}

function cellOf({ x, y }: { readonly x: number; readonly y: number }, index: number): readonly [number, number] {
  return [x + 10 + (index % PER_ROW) * CELL, y + 30 + Math.floor(index / PER_ROW) * (CELL - 4)];
}

/** From each box with waiting ranks to the first late rank; within one box the colours say it. */
function arrows(boxes: readonly Box[], { late, waiting, why }: Wait): Mark[] {
  const isLate = new Set(late);
  const target = boxes.find(({ ranks }) => ranks.slice(0, MOST_CELLS).some(({ rank }) => isLate.has(rank)));
  if (target === undefined) return [];
  const index = target.ranks.findIndex(({ rank }) => isLate.has(rank));
  const tx = cellOf(target, Math.max(0, index))[0] + (CELL - 6) / 2;
  const ty = target.y + target.height + 1;
  const waits = new Set(waiting);
  return boxes.flatMap((box): Mark[] => {
    if (box === target || !box.ranks.some(({ rank }) => waits.has(rank))) return [];
    const isBeside = box.y === target.y;
    const [sx, sy] = [box.x + BOX_WIDTH / 2, isBeside ? box.y + box.height : box.y];
    const low = isBeside ? Math.max(sy, ty) + 24 : sy - 20;
    return [
      {
        kind: 'path',
        look: 'wait',
        d: `M${at(sx)} ${at(sy)}C${at(sx)} ${at(low)} ${at(tx)} ${at(Math.max(low, ty + 24))} ${at(tx)} ${at(ty + 8)}`,
        tip: why,
      },
      {
        kind: 'path',
        look: 'arrow',
        fill: 'bad',
        d: `M${at(tx)} ${at(ty)}L${at(tx + 4)} ${at(ty + 8)}L${at(tx - 4)} ${at(ty + 8)}L${at(tx)} ${at(ty)}`,
        tip: why,
      },
    ];
  });
}

function legend(boxes: readonly Box[], roles: Roles, y: number): Mark[] {
  const used = new Set(boxes.flatMap(({ ranks }) => ranks.map(({ rank }) => roles.of(rank))));
  let x = MARGIN;
  return order.flatMap((role): Mark[] => {
    if (!used.has(role)) return [];
    const marks: Mark[] = [
      { kind: 'rect', look: role, x, y: y - 11, width: 20, height: 14, radius: 3 },
      textMark('dim', x + 28, y, roleNames[role]),
    ];
    x += 28 + textWidth(roleNames[role], 11) + 20;
    return marks;
  });
}
