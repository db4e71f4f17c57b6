import type { TextPlace, ToolFormat, ToolLine } from './section.js';

/** Copies between GPUs, or between GPUs and the memory of their host, as `nvbandwidth` or `nvloom_cli` measured them. */
export interface CopyTest {
  /** Products by index of the device, or of the process that has it; empty where the output does not list them. */
  readonly products: ReadonlyMap<string, string>;
  readonly cases: readonly CopyCase[];
}

export interface CopyCase {
  /** `device_to_device_memcpy_read_ce`. */
  readonly name: string;
  readonly kind: CopyKind;
  /** Names of the columns: GPUs. */
  readonly columns: readonly string[];
  /** GB/s by row and column, as `0 1`. */
  readonly gbps: ReadonlyMap<string, number>;
  /** The test did not run: the machine cannot do it. */
  readonly isWaived: boolean;
  /** The data that were read back are not those that were written. */
  readonly isWrong: boolean;
  readonly place: TextPlace;
}

/** One direction between a host and its GPUs, one direction between GPUs of a pair, or another pattern. */
export type CopyKind = 'host' | 'pair' | 'other';

const head = /^[\s>]*(?:nvbandwidth Version\b|nvloom_cli +v?\d)/;
const running = /^[\s>]*(Running|Waiving)(?: benchmark)? (\w+?)\.?\s*$/;
const description = /^[\s>]*memcpy (?:CE|SM) .*bandwidth \(GB\/s\)/;
const cells = /^[\s>]*\d{1,4}(?:\s+(?:\d+(?:\.\d+)?|N\/A|\|))+\s*$/;
const wrong = /^\s*Invalid value when checking the pattern/;
const device = /^[\s>]*(?:Device|Process) +(\d{1,4})(?: \([^)]*\): device \d+)?: (.+?)(?: \([\da-f:.]+\).*)?\s*$/;
const sum = /^[\s>]*(?:SUM|Min) (\w+) /;

export const copyTest: ToolFormat<'nvbandwidth', CopyTest> = {
  name: 'nvbandwidth',
  commands: ['nvbandwidth', 'nvloom_cli -s gpu-to-rack'],
  holds: new RegExp(
    [head, running, description, cells, wrong, device, sum, /^[\s>]*(?:Waived|WAIVED)\b/].map(({ source }) => source).join('|'),
  ),
  needles: ['nvbandwidth version', 'nvloom_cli ', 'memcpy ce ', 'memcpy sm '],
  begins: new RegExp(`${head.source}|${description.source}`),
  restarts: head,
  parse,
};

/** The kind by the name of a test; a buffer that several copies share at a time says nothing about one link. */
export function kindOfCopies(name: string): CopyKind {
  if (/bidirectional|bidir|all_to|to_all|one_to|bisect|latency|egm|multicast|rack/.test(name)) return 'other';
  if (/^(?:host_to_device|device_to_host)_memcpy/.test(name)) return 'host';
  return /(?:^|_)device_to_device/.test(name) ? 'pair' : 'other';
}

/** GB/s between different GPUs of a test. */
export function pairsOf({ gbps }: CopyCase): ReadonlyMap<string, number> {
  return new Map([...gbps].filter(([pair]) => pair.split(' ')[0] !== pair.split(' ')[1]));
}

type GrowingCase = { -readonly [Key in keyof CopyCase]: CopyCase[Key] } & { gbps: Map<string, number>; columns: string[] };

function parse(lines: readonly ToolLine[]): CopyTest | undefined {
  const products = new Map<string, string>();
  const cases: GrowingCase[] = [];
  let open: GrowingCase | undefined;
  for (const { text, place } of lines) {
    const [, verb, name] = running.exec(text) ?? [];
    const [, index, product] = device.exec(text) ?? [];
    const [, summed] = sum.exec(text) ?? [];
    if (name !== undefined) {
      open = newCase(name, place);
      open.isWaived = verb === 'Waiving';
      cases.push(open);
    } else if (description.test(text)) {
      // A pasted table may lack the line above it.
      if (open === undefined || open.columns.length > 0) cases.push((open = newCase(nameOf(text), place)));
    } else if (index !== undefined && product !== undefined) products.set(index, product);
    else if (summed !== undefined && open !== undefined) {
      open.name = summed;
      open.kind = kindOfCopies(summed);
      open = undefined;
    } else if (open !== undefined && wrong.test(text)) open.isWrong = true;
    else if (open !== undefined && /^[\s>]*waived/i.test(text)) open.isWaived = true;
    else if (open !== undefined && cells.test(text)) readCells(open, text);
  }
  return cases.length === 0 ? undefined : { products, cases };
}

function newCase(name: string, place: TextPlace): GrowingCase {
  return { name, kind: kindOfCopies(name), columns: [], gbps: new Map(), isWaived: false, isWrong: false, place };
}

/** The name of a test by the line that describes its table. */
function nameOf(text: string): string {
  const engine = /memcpy SM/.test(text) ? 'sm' : 'ce';
  const both = text.includes('<->') ? 'bidirectional_' : '';
  const isToHost = text.includes('<-');
  const what = !text.includes('CPU') ? 'device_to_device' : isToHost ? 'device_to_host' : 'host_to_device';
  return `${what}_${both}memcpy_${engine}`;
}

/** The first line of numbers names the columns; the others begin with the name of their row. */
function readCells(into: GrowingCase, text: string): void {
  const fields = text
    .replace(/^[\s>]+/, '')
    .trimEnd()
    .split(/\s+/)
    .filter((field) => field !== '|');
  if (into.columns.length === 0) {
    if (fields.every((field) => /^\d+$/.test(field))) into.columns = fields;
    return;
  }
  const [row = '', ...values] = fields;
  if (values.length !== into.columns.length) return;
  for (const [index, column] of into.columns.entries()) {
    const value = Number(values[index]);
    if (value > 0) into.gbps.set(`${row} ${column}`, value);
  }
}

/** The JSON of `nvbandwidth -j`; undefined for other JSON. */
export function readCopyJson(value: unknown, place: TextPlace): CopyTest | undefined {
  const body = fieldOf(value, 'nvbandwidth');
  const tests = fieldOf(body, 'testcases');
  if (!Array.isArray(tests)) return undefined;
  const products = new Map<string, string>();
  const list: unknown = fieldOf(body, 'GPU Device list');
  for (const entry of Array.isArray(list) ? (list as unknown[]) : []) {
    const [, index, product] = /^(\d+): (.+?)(?: \(.*)?$/.exec(String(entry)) ?? [];
    if (index !== undefined && product !== undefined) products.set(index, product);
  }
  const cases = (tests as unknown[]).map((test) => {
    const read = newCase(String(fieldOf(test, 'name')), place);
    const rows = fieldOf(test, 'bandwidth_matrix');
    for (const [row, values] of (Array.isArray(rows) ? (rows as unknown[]) : []).entries()) {
      if (!Array.isArray(values)) continue;
      read.columns = values.map((_, column) => String(column));
      for (const [column, cell] of (values as unknown[]).entries())
        if (Number(cell) > 0) read.gbps.set(`${row} ${column}`, Number(cell));
    }
    read.isWaived = fieldOf(test, 'status') === 'Waived';
    return read;
  });
  return { products, cases };
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
