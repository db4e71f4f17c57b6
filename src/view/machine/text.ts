import { formatGBps } from '../../planner/topology/format.js';
import { type Box, type Drawing, foldHosts, type HostDrawing, runLabel } from './boxes.js';

/** Colours parts of the text; the identity without a terminal. */
export interface Paint {
  readonly bold: (text: string) => string;
  readonly dim: (text: string) => string;
  readonly gpu: (text: string) => string;
  readonly net: (text: string) => string;
}

const plainPaint: Paint = { bold: same, dim: same, gpu: same, net: same };

function same(text: string): string {
  return text;
}

/** {@link treeLines} as one text. */
export function treeText(drawing: Drawing, paint: Paint = plainPaint): string {
  return `${treeLines(drawing, paint).join('\n')}\n`;
}

/** {@link matrixLines} as one text. */
export function matrixText(drawing: Drawing, paint: Paint = plainPaint): string {
  return `${matrixLines(drawing, paint).join('\n')}\n`;
}

/** The machine as a tree, like lstopo: each line is the bandwidth of a link and its device. */
export function treeLines(drawing: Drawing, paint: Paint = plainPaint): string[] {
  const lines = [paint.bold(drawing.title), drawing.summary, ''];
  for (const { host, alike } of foldHosts(drawing.hosts)) {
    lines.push(...hostLines(host, paint), ...interconnectLines(drawing, host, paint));
    if (alike.length > 0) lines.push(paint.dim(`${runLabel(alike)}: as the one above`));
  }
  return lines;
}

function hostLines(host: HostDrawing, paint: Paint): string[] {
  const lines = host.label === '' ? [] : [paint.bold(host.label)];
  for (const cpu of host.cpus) {
    lines.push(`${paint.bold(cpu.label)}${detailText(cpu, paint)}`);
    cpu.children.forEach((child, index) => {
      boxLines(child, '', index === cpu.children.length - 1, lines, paint);
    });
  }
  return lines;
}

function boxLines(box: Box, indent: string, isLast: boolean, lines: string[], paint: Paint): void {
  const branch = isLast ? '└─' : '├─';
  const color = box.kind === 'gpu' ? paint.gpu : box.kind === 'port' ? paint.net : same;
  lines.push(
    `${indent}${branch} ${paint.dim(`${formatGBps(box.uplinkGBps ?? 0)} ─`)} ${color(box.label)}${detailText(box, paint)}`,
  );
  const inner = `${indent}${isLast ? '   ' : '│  '}`;
  box.children.forEach((child, index) => {
    boxLines(child, inner, index === box.children.length - 1, lines, paint);
  });
}

function detailText(box: Box, paint: Paint): string {
  return box.details.length === 0 ? '' : `  ${paint.dim(box.details.join(' · '))}`;
}

/** `CPU to CPU: 22 GB/s`, for each bandwidth that occurs in the host. */
function interconnectLines(drawing: Drawing, host: HostDrawing, paint: Paint): string[] {
  const ids = new Set(host.cpus.map(({ id }) => id));
  const bandwidths = [
    ...new Set(
      drawing.wires.filter(({ kind, from }) => kind === 'SYS' && ids.has(from)).map(({ bandwidthGBps }) => bandwidthGBps),
    ),
  ];
  return bandwidths.length === 0 ? [] : [paint.dim(`CPU to CPU: ${bandwidths.map(formatGBps).join(', ')} GB/s`)];
}

/** Meanings of the types of paths, nearest first. */
export const pathMeanings = new Map([
  ['X', 'itself'],
  ['LOC', 'the same device'],
  ['NVL', 'NVLink'],
  ['NVB', 'NVLink by way of another GPU'],
  ['C2C', 'chip-to-chip link'],
  ['PIX', 'at most one PCI switch'],
  ['PXB', 'several PCI switches, no host bridge'],
  ['P2C', 'C2C to the CPU, then PCI'],
  ['PXN', 'NVLink to a GPU that is nearer to the NIC'],
  ['PHB', 'through the host bridge of a CPU'],
  ['SYS', 'across the interconnect between CPUs'],
  ['NET', 'over the network only'],
  ['DIS', 'not connected'],
]);

/** The types of paths between GPUs and network devices, like `nvidia-smi topo -m`. */
export function matrixLines(drawing: Drawing, paint: Paint = plainPaint): string[] {
  const { endpoints, matrix } = drawing;
  const width = Math.max(4, ...endpoints.map(({ label }) => label.length)) + 1;
  const types = new Set(matrix.flat().map(({ type }) => type));
  return [
    ' '.repeat(width) + endpoints.map(({ label }) => label.padStart(width)).join(''),
    ...endpoints.map(
      ({ label }, row) => paint.bold(label.padEnd(width)) + (matrix[row] ?? []).map(({ type }) => type.padStart(width)).join(''),
    ),
    '',
    ...[...pathMeanings].filter(([type]) => types.has(type)).map(([type, meaning]) => paint.dim(`${type.padEnd(4)} ${meaning}`)),
  ];
}

/** Summary of a matrix that is too large for a terminal: numbers of pairs by type and bandwidth. */
export function pathCountLines(drawing: Drawing, paint: Paint = plainPaint): string[] {
  const { endpoints, matrix } = drawing;
  const counts = new Map<string, number>();
  endpoints.forEach((from, row) => {
    endpoints.forEach((to, column) => {
      const cell = matrix[row]?.[column];
      if (cell === undefined || row === column) return;
      const bandwidth = cell.type === 'NET' || cell.type === 'DIS' ? '' : `${formatGBps(cell.bandwidthGBps)} GB/s`;
      const key = [`${from.kind === 'gpu' ? 'GPU' : 'NET'} to ${to.kind === 'gpu' ? 'GPU' : 'NET'}`, cell.type, bandwidth].join(
        '\t',
      );
      counts.set(key, (counts.get(key) ?? 0) + 1);
    });
  });
  return [...counts].map(([key, count]) => {
    const [pair = '', type = '', bandwidth = ''] = key.split('\t');
    return `${pair}  ${type.padEnd(4)}${bandwidth.padStart(12)}  ${String(count).padStart(7)} pairs  ${paint.dim(pathMeanings.get(type) ?? '')}`.trimEnd();
  });
}
