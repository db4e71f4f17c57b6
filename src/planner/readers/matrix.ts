import { plainText, type TextPlace, type ToolFormat, type ToolLine } from './section.js';

/** Table of `nvidia-smi topo`: paths (`-m`) or permissions (`-p2p`) between devices. */
export interface DeviceMatrix {
  readonly kind: 'paths' | 'p2p';
  /** Names of the columns: `GPU0`, `NIC0`, `mlx5_0`. */
  readonly columns: readonly string[];
  readonly rows: readonly MatrixRow[];
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

const deviceForm = /^(?:GPU\d+|NIC\d+|(?:mlx|bnxt|irdma|efa|hfi|cxi|rocep|ibp|rdma|qedr|erdma)\w*)$/i;
const p2pWords = new Set(['OK', 'CNS', 'GNS', 'TNS', 'NS', 'DR', 'U']);
const pathWords = /^(?:NV\d+|PIX|PXB|PHB|NODE|SYS|SOC|PSB|X|N\/A|C2C)$/;

/** `nvidia-smi topo -m` and `nvidia-smi topo -p2p r`, also with the bars of Markdown. */
export const deviceMatrix: ToolFormat<'topo', DeviceMatrix> = {
  name: 'topo',
  commands: ['nvidia-smi topo -m', 'nvidia-smi topo -p2p r', 'nvidia-smi topo -p2p n'],
  holds: /GPU\d|NIC\d|^[\s|]*(?:mlx|bnxt|irdma|efa|hfi|cxi|rocep|ibp|rdma|qedr|erdma)\w*[\s|]/i,
  needles: ['gpu0'],
  begins:
    /^[^\n\w]{0,40}(?:\u001b\[\d{0,2}m)?[\s|]{0,20}GPU0\b.{0,8000}?(?:CPU Affinity|NUMA Affinity|\bGPU1\b)|^[\s|]{0,20}(?:\u001b\[\d{0,2}m)?GPU0\s*(?:\u001b\[\d{0,2}m)?[\s|]*$/,
  restarts: /^[\s|]{0,20}(?:\u001b\[\d{0,2}m)?[\s|]{0,20}GPU0\s+(?:\|\s*)?GPU1\b/,
  parse,
};

function parse(lines: readonly ToolLine[]): DeviceMatrix | undefined {
  let columns: string[] | undefined;
  const rows: MatrixRow[] = [];
  const nics = new Map<string, string>();
  for (const { text, place } of lines) {
    const words = plainText(text).replaceAll('|', ' ').trim().split(/\s+/);
    const [first = ''] = words;
    if (columns === undefined) {
      if (first === 'GPU0') columns = words.filter((word) => deviceForm.test(word));
      continue;
    }
    const [, short, name] = /^\s*(NIC\d+): (\S+)/.exec(text) ?? [];
    if (short !== undefined && name !== undefined) nics.set(short, name);
    else if (deviceForm.test(first) && words.length > columns.length) {
      const cells = words.slice(1, columns.length + 1);
      if (cells.every((cell) => pathWords.test(cell) || p2pWords.has(cell)))
        rows.push({ device: first, cells, more: words.slice(columns.length + 1), place });
    }
  }
  if (columns === undefined || rows.length === 0) return undefined;
  const words = rows.flatMap(({ cells }) => cells).filter((cell) => cell !== 'X');
  const kind = words.length > 0 && words.every((word) => p2pWords.has(word)) ? 'p2p' : 'paths';
  return { kind, columns, rows, nics };
}
