import { plainText, type TextPlace, type ToolFormat, type ToolLine } from './section.js';

/** `nvidia-smi -q`: values by their path, as `Fabric/State`. */
export interface SmiReport {
  readonly driver: string | undefined;
  readonly cuda: string | undefined;
  readonly gpus: readonly SmiGpu[];
}

export interface SmiGpu {
  /** `00000000:1B:00.0` */
  readonly busId: string;
  readonly values: ReadonlyMap<string, { readonly value: string; readonly place: TextPlace }>;
}

export const smiReport: ToolFormat<'nvidia-smi -q', SmiReport> = {
  name: 'nvidia-smi -q',
  commands: ['nvidia-smi -q'],
  holds: /^GPU [0-9A-Fa-f]{4,8}:|^\s+\S|^[A-Z][\w ]{2,40}:/,
  needles: ['nvsmi log', 'attached gpus', 'gpu 0000'],
  begins: /^=+NVSMI LOG=+|^Attached GPUs +: \d|^GPU 0{4,8}[0-9A-Fa-f]{0,4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d\s*$/,
  restarts: /^=+NVSMI LOG=+/,
  parse: parseReport,
};

function parseReport(lines: readonly ToolLine[]): SmiReport | undefined {
  const gpus: { busId: string; values: Map<string, { value: string; place: TextPlace }> }[] = [];
  let driver: string | undefined;
  let cuda: string | undefined;
  let path: { indent: number; name: string }[] = [];
  for (const { text, place } of lines) {
    const [, busId] = /^GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)\s*$/.exec(text) ?? [];
    if (busId !== undefined) {
      gpus.push({ busId, values: new Map() });
      path = [];
      continue;
    }
    const [, spaces, name = '', colon, value = ''] =
      /^( *)([^:\n]{1,60}?) *(?:( : ?)(.*))?$/.exec(text.replaceAll('\t', '    ')) ?? [];
    if (spaces === undefined || name === '') continue;
    if (gpus.length === 0) {
      if (name === 'Driver Version') driver = value.trim();
      if (name === 'CUDA Version') cuda = value.trim();
      continue;
    }
    path = path.filter(({ indent }) => indent < spaces.length);
    if (colon === undefined) path.push({ indent: spaces.length, name });
    else gpus.at(-1)?.values.set([...path.map((each) => each.name), name].join('/'), { value: value.trim(), place });
  }
  return gpus.length === 0 && driver === undefined ? undefined : { driver, cuda, gpus };
}

/** The table that `nvidia-smi` prints without options. */
export interface SmiTable {
  readonly driver: string;
  readonly cuda: string | undefined;
  readonly gpus: readonly SmiRow[];
}

export interface SmiRow {
  readonly index: number;
  readonly name: string;
  readonly busId: string;
  /** Uncorrected memory errors since the last reset; undefined where the card has no ECC. */
  readonly eccErrors: number | undefined;
  readonly usedMiB: number | undefined;
  readonly totalMiB: number | undefined;
  /** Percent of time with a kernel; undefined where it is `N/A`. */
  readonly utilization: number | undefined;
  /** True if fields say `ERR!`. */
  readonly isFailing: boolean;
  readonly place: TextPlace;
}

export const smiTable: ToolFormat<'nvidia-smi', SmiTable> = {
  name: 'nvidia-smi',
  commands: ['nvidia-smi'],
  holds: /^[|+]|NVIDIA-SMI/,
  needles: ['| nvidia-smi '],
  begins: /^\|? ?NVIDIA-SMI \d/,
  restarts: /^\|? ?NVIDIA-SMI \d/,
  parse: parseTable,
};

function parseTable(lines: readonly ToolLine[]): SmiTable | undefined {
  let head: RegExpExecArray | null = null;
  const gpus: SmiRow[] = [];
  let open: { index: number; name: string; busId: string; ecc: string; place: TextPlace; text: string } | undefined;
  for (const { text: raw, place } of lines) {
    const text = plainText(raw);
    head ??= /NVIDIA-SMI [\d.]+ +Driver Version: ([\d.]+)(?: +CUDA Version: ([\d.]+))?/.exec(text);
    const [, index, name = '', busId = '', ecc = ''] =
      /^\| +(\d{1,3}) +(\S.{2,40}?) +(?:On|Off) *\| *([0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d) +\S+ *\| *(\S+) *\|/.exec(
        text,
      ) ?? [];
    if (index !== undefined) {
      open = { index: Number(index), name, busId, ecc, place, text };
      continue;
    }
    if (open === undefined) continue;
    const [, used, total, utilization] = /\| *(\d+)MiB *\/ *(\d+)MiB *\| *(\d+|N\/A)%? /.exec(text) ?? [];
    gpus.push({
      index: open.index,
      name: open.name,
      busId: open.busId,
      eccErrors: /^\d+$/.test(open.ecc) ? Number(open.ecc) : undefined,
      usedMiB: used === undefined ? undefined : Number(used),
      totalMiB: total === undefined ? undefined : Number(total),
      utilization: utilization === undefined || utilization === 'N/A' ? undefined : Number(utilization),
      isFailing: `${open.text}${text}`.includes('ERR!'),
      place: open.place,
    });
    open = undefined;
  }
  return head === null ? undefined : { driver: head[1] ?? '', cuda: head[2], gpus };
}

/** `nvidia-smi nvlink -s` and `-e`, and `nvidia-smi -L`, which has the same headings. */
export interface NvlinkStatus {
  readonly gpus: readonly NvlinkGpu[];
}

export interface NvlinkGpu {
  readonly name: string;
  /** `NVIDIA H100 80GB HBM3`; empty where unknown. */
  readonly product: string;
  readonly active: number;
  readonly inactive: number;
  /** Counters of errors above zero. */
  readonly errors: readonly {
    readonly counter: string;
    readonly count: number;
    readonly text: string;
    readonly place: TextPlace;
  }[];
  readonly place: TextPlace;
}

export const nvlinkStatus: ToolFormat<'nvlink', NvlinkStatus> = {
  name: 'nvlink',
  commands: ['nvidia-smi nvlink -s', 'nvidia-smi nvlink -e', 'nvidia-smi -L'],
  holds: /^GPU \d+: |^\s+Link \d+: /,
  needles: ['gpu 0: ', 'link 0: '],
  begins: /^GPU \d+: .{3,120}$|^\s+Link \d+: /,
  parse: parseNvlink,
};

function parseNvlink(lines: readonly ToolLine[]): NvlinkStatus | undefined {
  const gpus: (NvlinkGpu & { active: number; inactive: number; errors: NvlinkGpu['errors'][number][] })[] = [];
  let count = 0;
  for (const { text, place } of lines) {
    const [, number, product = ''] = /^GPU (\d+):(?: (\S.{1,80}?) \(UUID: )?/.exec(text) ?? [];
    if (number !== undefined) gpus.push({ name: `GPU ${number}`, product, active: 0, inactive: 0, errors: [], place });
    if (product !== '') count++;
    const gpu = gpus.at(-1);
    if (gpu === undefined || !/^\s*Link \d+: /.test(text)) continue;
    count++;
    if (/Link \d+: <?inactive/i.test(text)) gpu.inactive++;
    else if (/Link \d+: [\d.]+ GB\/s/.test(text)) gpu.active++;
    const [, counter, errors] = /Link \d+: ([\w ()-]{3,60}?)(?: Count| Counter)?: (\d+)\s*$/i.exec(text) ?? [];
    if (counter !== undefined && Number(errors) > 0)
      gpu.errors.push({ counter, count: Number(errors), text: text.trim(), place });
  }
  return count === 0 ? undefined : { gpus };
}
