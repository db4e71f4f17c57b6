import { plainText, type TextPlace, type ToolFormat, type ToolLine } from './section.js';

/** Table of `nvidia-smi topo`: paths (`-m`) or permissions (`-p2p`) between devices. */
export interface DeviceMatrix {
  readonly kind: 'paths' | 'p2p';
  /** Names of the columns: `GPU0`, `NIC0`, `mlx5_0`. */
  readonly columns: readonly string[];
  readonly rows: readonly MatrixRow[];
  /** Rows that were left out: cut off, or with a word that is none of the tool's. */
  readonly unread: readonly { readonly device: string; readonly problem: string; readonly place: TextPlace }[];
  /** Names of NICs by their short ones: `NIC0` is `mlx5_0`. */
  readonly nics: ReadonlyMap<string, string>;
}

/** One row, with the cells of {@link DeviceMatrix.columns}. */
export interface MatrixRow {
  readonly device: string;
  readonly cells: readonly string[];
  /** Columns after the devices: CPU affinity, NUMA affinity, GPU NUMA ID. */
  readonly more: readonly string[];
  readonly place: TextPlace;
}

const p2pWords = new Set(['OK', 'CNS', 'GNS', 'TNS', 'NS', 'DR', 'U']);
const pathWords = /^(?:NV\d+|PIX|PXB|PHB|NODE|SYS|SOC|PSB|X|N\/A|C2C)$/;
/** Titles of the columns after the devices. */
const afterDevices = new Set(['CPU', 'NUMA', 'GPU']);

/** `nvidia-smi topo -m` and `nvidia-smi topo -p2p r`, also wrapped by a terminal, quoted, and with the bars of Markdown. */
export const deviceMatrix: ToolFormat<'topo', DeviceMatrix> = {
  name: 'topo',
  commands: ['nvidia-smi topo -m', 'nvidia-smi topo -p2p r', 'nvidia-smi topo -p2p n'],
  holds:
    /GPU\d|NIC\d|(?:CPU|NUMA) Affinity|GPU NUMA ID|^[\s|>]*(?:mlx|bnxt|irdma|efa|hfi|cxi|roce|ib|rdma|qedr|erdma)\w*[\s|]|(?:\b(?:NV\d+|PIX|PXB|PHB|NODE|SYS|SOC)\b[^=]*){2}|^[\s|>]*(?:(?:NV\d+|PIX|PXB|PHB|NODE|SYS|SOC|X|OK|N\/A|\d[\d,-]*)[\s|]*)+$/,
  needles: ['gpu0'],
  begins:
    /^[^\n\w]{0,40}(?:\u001b\[\d{0,2}m)?[\s|]{0,20}GPU0\b.{0,8000}?(?:CPU Affinity|NUMA Affinity|\bGPU1\b|\bNIC0\b|\bmlx\w*_0\b)|^[\s|>]{0,20}(?:\u001b\[\d{0,2}m)?GPU0\s*(?:\u001b\[\d{0,2}m)?[\s|]*$/,
  restarts: /^[\s|>]{0,20}(?:\u001b\[\d{0,2}m)?[\s|]{0,20}GPU0\s+(?:\|\s*)?GPU1\b/,
  parse,
};

interface Word {
  readonly text: string;
  readonly place: TextPlace;
}

function parse(lines: readonly ToolLine[]): DeviceMatrix | undefined {
  const nics = new Map<string, string>();
  const words: Word[] = [];
  for (const { text: raw, place } of lines) {
    const text = plainText(raw);
    const [, short, name] = /^[\s|>]*(NIC\d+): (\S+)/.exec(text) ?? [];
    if (short !== undefined && name !== undefined) nics.set(short, name);
    // The rule below a heading of Markdown, and lines that explain the words, are no cells.
    else if (!/^[\s|>:-]*$|=/.test(text))
      for (const word of text
        .replaceAll(/[|`>*]/g, ' ')
        .trim()
        .split(/\s+/))
        words.push({ text: word, place });
  }
  const columns = headingOf(words);
  if (columns.length === 0) return undefined;
  const { rows, unread } = rowsOf(words.slice(columns.length), columns);
  if (rows.length === 0) return undefined;
  const cells = rows.flatMap((row) => row.cells).filter((cell) => cell !== 'X');
  const kind = cells.length > 0 && cells.every((cell) => p2pWords.has(cell)) ? 'p2p' : 'paths';
  return { kind, columns, rows, unread, nics };
}

/** The devices of the heading: up to the titles of other columns, or to the name that begins the first row. */
function headingOf(words: readonly Word[]): string[] {
  const columns: string[] = [];
  for (const { text } of words) {
    if (afterDevices.has(text) || columns.includes(text) || !/^[A-Za-z][\w.:-]*$/.test(text)) break;
    columns.push(text);
  }
  return columns[0] === 'GPU0' ? columns : [];
}

/** A row goes from the name of its device to the next one, over as many lines as a terminal made of it. */
function rowsOf(words: readonly Word[], columns: readonly string[]): Pick<DeviceMatrix, 'rows' | 'unread'> {
  const rows: MatrixRow[] = [];
  const unread: DeviceMatrix['unread'][number][] = [];
  const names = new Set(columns);
  for (let at = words.findIndex(({ text }) => names.has(text)); at >= 0 && at < words.length;) {
    const label = words[at] as Word;
    const next = words.findIndex(({ text }, index) => index > at && names.has(text));
    const end = next < 0 ? words.length : next;
    const values = words.slice(at + 1, end);
    const cells = values.slice(0, columns.length);
    const { text: device, place } = label;
    const strange = cells.find(({ text }) => !pathWords.test(text) && !p2pWords.has(text));
    // Prose that names a device is no row.
    const isRow = cells[0] !== undefined && strange !== cells[0];
    if (isRow && strange !== undefined && strange.text !== 'CPU')
      unread.push({ device, problem: `${strange.text} is no path that nvidia-smi prints`, place: strange.place });
    else if (isRow && cells.length < columns.length)
      unread.push({ device, problem: `its row has ${cells.length} of ${columns.length} columns`, place });
    else if (isRow)
      rows.push({
        device,
        cells: cells.map(({ text }) => text),
        more: values.slice(columns.length).map(({ text }) => text),
        place,
      });
    at = end;
  }
  return { rows, unread };
}
