/**
 * Colours and looks of all views. Colours come in pairs for light and dark backgrounds; those that stand side by side are told
 * apart by people with any kind of colour vision (a test simulates three), and never alone: widths, letters or labels say the
 * same.
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
  gpuFill: ['#e4f2e0', '#14352b'],
  gpuLine: ['#4a8637', '#5c9a49'],
  nvsFill: ['#d3e8cb', '#28401f'],
  hostFill: ['#f7f8fa', '#1a1e24'],
  hostLine: ['#ccd2db', '#3a424d'],

  nvlink: ['#628054', '#79ac49'],
  c2c: ['#8a3c7b', '#cc8ac6'],
  pci: ['#96936e', '#9a8871'],
  cpuLink: ['#568ab9', '#7083a4'],
  net: ['#c57d1b', '#eeb647'],
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
  Tree: ['#439767', '#5d744c'],
  Ring: ['#0e8eff', '#424bc6'],
  NVLS: ['#a06bd6', '#69258e'],
  NVLSTree: ['#d165a8', '#953d9c'],
  CollNetDirect: ['#de9440', '#715a00'],
  CollNetChain: ['#cac545', '#907c1a'],
  PAT: ['#00cdc3', '#287a7a'],
  Symmetric: ['#fea5e7', '#853446'],
  CopyEngines: ['#a3a58f', '#4f526f'],

  // Lines of a chart.
  line0: ['#0d6ff2', '#6ea8fe'],
  line1: ['#c25306', '#ea976e'],
  line2: ['#22644a', '#9dd8a3'],
  line3: ['#853cc2', '#b98ccd'],
  line4: ['#80764f', '#e0bd4a'],
  line5: ['#167681', '#43ccf5'],
  line6: ['#cc56af', '#ee6b8e'],
  line7: ['#534d71', '#aab4c0'],

  // Path types, nearest first: greens, blues and violets stay on a device or switch, yellow to red cross the host.
  X: ['#eef0f3', '#22272e'],
  LOC: ['#cbfef2', '#174135'],
  NVL: ['#8cd3af', '#00773a'],
  NVB: ['#f6ffba', '#2e5641'],
  C2C: ['#bfa1b6', '#451362'],
  PIX: ['#9394da', '#274eaa'],
  PXB: ['#abadec', '#5d4b73'],
  P2C: ['#c9c5ed', '#493765'],
  PXN: ['#a4ebc6', '#616775'],
  PHB: ['#fbd983', '#714400'],
  SYS: ['#f4b27c', '#4f0d00'],
  NET: ['#d9dfff', '#1f2936'],
  DIS: ['#e68e7b', '#6a1f04'],
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
