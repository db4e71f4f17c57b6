/**
 * Colours and looks of all views. Colours come in pairs for light and dark backgrounds; hues that stand side by side are told
 * apart by people with any kind of colour vision, and never alone: widths, letters or labels say the same.
 */

/** Colours by name: on a light background, on a dark one. */
export const colours = {
  paper: ['#ffffff', '#15181d'],
  ink: ['#1c2128', '#e6e8eb'],
  dim: ['#5d6673', '#9aa4b2'],
  faint: ['#98a2b3', '#667085'],
  grid: ['#e4e7ec', '#2d333b'],
  accent: ['#2563c9', '#6ea8fe'],
  warn: ['#8a5a00', '#f0c674'],
  bad: ['#b3261e', '#ff8f87'],
  chosen: ['#d6006e', '#ff5fa8'],
  none: ['#98a2b3', '#475467'],
  clear: ['transparent', 'transparent'],

  cpuFill: ['#f2f5fa', '#1a212c'],
  cpuLine: ['#8296b3', '#566a88'],
  switchFill: ['#fbfaf5', '#211f19'],
  switchLine: ['#b3a578', '#6e6444'],
  cardFill: ['#fdf1e1', '#33271a'],
  cardLine: ['#c27a26', '#b5763a'],
  gpuFill: ['#e4f2e0', '#1d2f19'],
  gpuLine: ['#4a8637', '#5c9a49'],
  nvsFill: ['#d3e8cb', '#28401f'],
  hostFill: ['#f7f8fa', '#1a1e24'],
  hostLine: ['#ccd2db', '#3a424d'],

  nvlink: ['#4a8637', '#6fae5b'],
  c2c: ['#8a3c7b', '#cf86c2'],
  pci: ['#9a8a56', '#a39670'],
  cpuLink: ['#5b7aa8', '#7f9cc7'],
  net: ['#c27a26', '#dd9a52'],
  shared: ['#2563c9', '#6ea8fe'],

  // Loads of links: from nothing to full; beyond full has a colour of its own.
  load0: ['#cfd6e0', '#363e49'],
  load1: ['#a9c1e3', '#34506f'],
  load2: ['#7ba4dd', '#3a6aa3'],
  load3: ['#4c82d3', '#4a8ad6'],
  load4: ['#2a5cb3', '#79b0f7'],
  load5: ['#173b85', '#b5d6ff'],
  full: ['#c2410c', '#ff9a5c'],

  // Algorithms.
  Tree: ['#3f9d6b', '#3d8058'],
  Ring: ['#4a86e0', '#3f6cc4'],
  NVLS: ['#a06bd6', '#8457b5'],
  NVLSTree: ['#d165a8', '#a94a88'],
  CollNetDirect: ['#de9440', '#a96a2a'],
  CollNetChain: ['#c2a92a', '#8f7c1f'],
  PAT: ['#2f9c9c', '#287a7a'],
  Symmetric: ['#d98ca6', '#8c4a63'],
  CopyEngines: ['#9aa5b1', '#5b6673'],

  // Lines of a chart.
  line0: ['#2563c9', '#6ea8fe'],
  line1: ['#c2540a', '#ff9a62'],
  line2: ['#20794a', '#5fc48d'],
  line3: ['#8741c9', '#c39bf2'],
  line4: ['#8a6800', '#e0bd4a'],
  line5: ['#0f7285', '#4fc3d6'],
  line6: ['#b3266e', '#f58bbd'],
  line7: ['#56606e', '#aab4c0'],

  // Path types, nearest first: greens and blues stay on a device or switch, yellow to red cross the host.
  X: ['#eef0f3', '#22272e'],
  LOC: ['#d9ead3', '#274322'],
  NVL: ['#a8d5a2', '#2f6a35'],
  NVB: ['#cfe3b4', '#4f6a2b'],
  C2C: ['#c9b8e0', '#54406f'],
  PIX: ['#a8c8f0', '#264f86'],
  PXB: ['#c5d8f2', '#2f4766'],
  P2C: ['#d6c9ec', '#493a63'],
  PXN: ['#a9dede', '#1f5a5e'],
  PHB: ['#f7dd9c', '#6b5518'],
  SYS: ['#f4b183', '#7d3f16'],
  NET: ['#e3e6ea', '#2f353d'],
  DIS: ['#e8a3a0', '#7a2a27'],
} as const satisfies Readonly<Record<string, readonly [light: string, dark: string]>>;

/** Name of a colour of {@link colours}. */
export type ColourName = keyof typeof colours;

/** Properties of a kind of mark. */
interface LookStyle {
  readonly fill?: ColourName;
  readonly stroke?: ColourName;
  readonly strokeWidth?: number;
  readonly opacity?: number;
  readonly dash?: string;
  /** Pixels of the font. */
  readonly size?: number;
  readonly weight?: number;
}

const SANS = 'ui-sans-serif,system-ui,"Segoe UI",Helvetica,Arial,sans-serif';

/** The font of all text. */
export const FONT = SANS;

/** Looks by name. A path without a fill is a line; text is filled. */
export const looks = {
  paper: { fill: 'paper' },
  text: { fill: 'ink', size: 12 },
  title: { fill: 'ink', size: 17, weight: 650 },
  head: { fill: 'ink', size: 12, weight: 600 },
  dim: { fill: 'dim', size: 11 },
  smalldim: { fill: 'dim', size: 10 },
  onband: { fill: 'ink', size: 11 },
  onfull: { fill: 'paper', size: 11, weight: 600 },
  label: { fill: 'ink', size: 12, weight: 600 },

  cpu: { fill: 'cpuFill', stroke: 'cpuLine' },
  switch: { fill: 'switchFill', stroke: 'switchLine' },
  card: { fill: 'cardFill', stroke: 'cardLine' },
  gpu: { fill: 'gpuFill', stroke: 'gpuLine' },
  unused: { fill: 'hostFill', stroke: 'hostLine', dash: '3 3' },
  nvs: { fill: 'nvsFill', stroke: 'gpuLine' },
  nvlink: { stroke: 'nvlink', strokeWidth: 2, opacity: 0.8 },
  c2c: { stroke: 'c2c', strokeWidth: 3 },
  pci: { stroke: 'pci', strokeWidth: 2 },
  cpulink: { stroke: 'cpuLink', strokeWidth: 3 },
  netlink: { stroke: 'net', strokeWidth: 2 },

  // A cluster: nodes, and connections by transport.
  host: { fill: 'hostFill', stroke: 'hostLine' },
  rail: { stroke: 'grid', strokeWidth: 5 },
  p2p: { stroke: 'nvlink', strokeWidth: 2 },
  shm: { stroke: 'shared', strokeWidth: 2, dash: '2 4' },
  net: { stroke: 'net', strokeWidth: 2, dash: '9 3' },
  broken: { stroke: 'bad', strokeWidth: 2, dash: '1 6' },
  arrow: { fill: 'ink' },

  // What a sentence points at.
  pointed: { stroke: 'bad', strokeWidth: 6 },
  refused: { stroke: 'bad', strokeWidth: 3, dash: '7 5' },
  frame: { fill: 'clear', stroke: 'bad', strokeWidth: 3 },

  // Differences of two pictures.
  differs: { stroke: 'chosen', strokeWidth: 2, dash: '3 4' },
  otherframe: { fill: 'clear', stroke: 'chosen', strokeWidth: 2.5, dash: '6 3' },

  // Ranks of an incident: those that others wait for, those that wait, those that ended, and all others.
  late: { fill: 'DIS', stroke: 'bad', strokeWidth: 2 },
  waits: { fill: 'PHB', stroke: 'warn', dash: '4 2' },
  gone: { fill: 'paper', stroke: 'bad', dash: '2 3' },
  rank: { fill: 'gpuFill', stroke: 'gpuLine' },
  wait: { stroke: 'bad', strokeWidth: 1.5, dash: '5 3' },
  done: { fill: 'load2' },

  grid: { stroke: 'grid', strokeWidth: 1 },
  curve: { stroke: 'line0', strokeWidth: 2.25 },
  dot: { fill: 'line0' },
  target: { fill: 'clear' },
  belief: { stroke: 'dim', strokeWidth: 1.5, dash: '5 4' },
  interval: { fill: 'line0', opacity: 0.18 },
  measured: { fill: 'line1', stroke: 'paper', strokeWidth: 1 },

  // A call in time.
  chunk: { fill: 'chosen', stroke: 'paper', strokeWidth: 1.5 },
  fifo: { fill: 'paper', stroke: 'chosen' },
  fifotext: { fill: 'ink', size: 10, weight: 600 },
  slice: { fill: 'line0' },
  slicetext: { fill: 'paper', size: 9, weight: 600 },
  now: { stroke: 'chosen', strokeWidth: 2 },

  cell: { fill: 'none', stroke: 'paper', strokeWidth: 1 },
  band: { fill: 'none' },
  bandLL: { fill: 'none', opacity: 0.4 },
  bandLL128: { fill: 'none', opacity: 0.68 },
} as const satisfies Readonly<Record<string, LookStyle>>;

/** Name of a look of {@link looks}. */
export type Look = keyof typeof looks;

/** The style of a look. */
export function styleOf(look: Look): LookStyle {
  return looks[look];
}

/** Colour of a link's load: the used part of its bandwidth. */
export function loadColour(part: number): ColourName {
  if (part > 1.005) return 'full';
  const step = part <= 0 ? 0 : Math.min(5, 1 + Math.floor(part * 5 - 1e-6));
  return (['load0', 'load1', 'load2', 'load3', 'load4', 'load5'] as const)[step] ?? 'load0';
}

/** Colour of the `index`th line of a chart. */
export function lineColour(index: number): ColourName {
  return (['line0', 'line1', 'line2', 'line3', 'line4', 'line5', 'line6', 'line7'] as const)[index % 8] ?? 'line0';
}
