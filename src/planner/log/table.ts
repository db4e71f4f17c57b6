import type { Place } from './line.js';
import { ownText } from './own-text.js';

/** A row of a table that nccl-tests printed; bandwidths in GB/s as it defines them. */
export interface MeasuredRow {
  readonly bytes: number;
  /** The better of out of place and in place. */
  readonly timeUs: number;
  readonly busGBps: number;
  /** Wrong elements, of both; NaN where they were not counted. */
  readonly wrong: number;
  readonly place: Place;
}

/** One table: what a run of an nccl-tests program measured. */
export interface MeasuredTable {
  /** `all_reduce`, or undefined where the program does not say; older ones do not. */
  readonly collective: string | undefined;
  /** Number of ranks that its head lists, or undefined where it has none. */
  readonly nRanks: number | undefined;
  /** Hosts that its head lists. */
  readonly hosts: readonly string[];
  readonly rows: MeasuredRow[];
  /** Wrong elements of all rows. */
  wrong: number;
  firstWrong: MeasuredRow | undefined;
}

/** The most rows that are kept; more of them is somebody's loop, and the first and best tell enough. */
const rowLimit = 1000;
const tableLimit = 5000;
/** A row or a line of a table's head is shorter. */
const rowLength = 1000;

/** Finds the tables of nccl-tests between all other lines. Lines of several tables must not be mixed. */
export class TableReader {
  readonly tables: MeasuredTable[] = [];
  /** A test printed its summary: it came to its end. */
  finished = false;
  /** The first fields of a row that other output cut in pieces. */
  #pending: string[] = [];
  #collective: string | undefined;
  #ranks = 0;
  readonly #hosts = new Set<string>();
  #open: MeasuredTable | undefined;

  read(text: string, place: Place): void {
    const start = text.search(/[^\s]/);
    if (start < 0) return;
    const first = text.charCodeAt(start);
    if (first === 35 /* # */) this.#readHead(text);
    else if (first === 91 /* [ */ || (first >= 48 && first <= 57)) this.#readRow(text, place);
  }

  #readHead(text: string): void {
    const [, collective] = /Collective test starting: (\w+?)_perf/.exec(text) ?? [];
    if (collective !== undefined || text.includes(' nThread ')) {
      this.#open = undefined;
      this.#ranks = 0;
      this.#hosts.clear();
      if (collective !== undefined) this.#collective = collective;
    }
    const [, rank, host = ''] =
      /^\s*(?:\[[^\]]{0,200}\]\S{0,50})?#\s+Rank\s+(\d{1,7}) .{0,80}Pid +\d+ on +(\S{1,255}) device/.exec(
        text.slice(0, rowLength),
      ) ?? [];
    if (rank !== undefined) {
      this.#ranks = Math.max(this.#ranks, Number(rank) + 1);
      if (this.#hosts.size < 64) this.#hosts.add(ownText(host));
    }
    if (text.includes('Avg bus bandwidth')) {
      this.#open = undefined;
      this.finished = true;
    }
  }

  #readRow(text: string, place: Place): void {
    // A launcher's `[0]` may stand anywhere in the row, for the row is written in pieces.
    const fields = text
      .slice(0, rowLength)
      .replaceAll(/\[[^\]]{0,200}\](?:<\w{1,20}>:)?/g, ' ')
      .trim()
      .split(/\s+/);
    const row = this.#whole(fields, place);
    if (row === undefined) return;
    if (this.#open === undefined) {
      this.#open = {
        collective: this.#collective ?? guessed(fields),
        nRanks: this.#ranks === 0 ? undefined : this.#ranks,
        hosts: [...this.#hosts],
        rows: [],
        wrong: 0,
        firstWrong: undefined,
      };
      this.#collective = undefined;
      if (this.tables.length < tableLimit) this.tables.push(this.#open);
    }
    if (row.wrong > 0) {
      this.#open.wrong += row.wrong;
      this.#open.firstWrong ??= row;
    }
    if (this.#open.rows.length < rowLimit) this.#open.rows.push(row);
  }

  /** A row is written in three pieces, and ranks may write their own lines between them. */
  #whole(fields: readonly string[], place: Place): MeasuredRow | undefined {
    const isBeginning = types.has(fields[2] ?? '');
    if (!isBeginning && (this.#pending.length === 0 || !fields.every((field) => numberForm.test(field)))) return undefined;
    const joined = isBeginning ? fields : [...this.#pending, ...fields];
    const row = readFields(joined, place);
    this.#pending = row === undefined && joined.length < 13 ? [...joined].map(ownText) : [];
    return row;
  }
}

const numberForm = /^(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|N\/A)$/;

const types = new Set([
  'int8',
  'uint8',
  'int32',
  'uint32',
  'int64',
  'uint64',
  'half',
  'float',
  'double',
  'bfloat16',
  'f8e4m3',
  'f8e5m2',
  'fp8_e4m3',
  'fp8_e5m2',
  'char',
]);

/** `size count type [redop] [root] time algbw busbw #wrong time algbw busbw #wrong`; a row that is not whole is none. */
function readFields(fields: readonly string[], place: Place): MeasuredRow | undefined {
  const type = fields[2] ?? '';
  if (!types.has(type) || fields.length < 11 || fields.length > 13) return undefined;
  const bytes = Number(fields[0]);
  const numbers = fields.slice(-8);
  const [time, , bus, wrong, timeInPlace, , busInPlace, wrongInPlace] = numbers.map((field) =>
    field === 'N/A' ? NaN : Number(field),
  );
  if (
    !Number.isInteger(bytes) ||
    time === undefined ||
    bus === undefined ||
    wrong === undefined ||
    timeInPlace === undefined ||
    busInPlace === undefined ||
    wrongInPlace === undefined
  )
    return undefined;
  if (!(time > 0) || !(bus >= 0) || !numbers.every((field) => numberForm.test(field))) return undefined;
  const best = busInPlace > bus;
  // Before 2.13 the column was the largest error, such as 2e-07: no count.
  const counted = [wrong, wrongInPlace].filter(
    (count, index) => Number.isInteger(count) && /^\d+$/.test(numbers[index === 0 ? 3 : 7] ?? ''),
  );
  return {
    bytes,
    timeUs: best ? timeInPlace : time,
    busGBps: best ? busInPlace : bus,
    wrong: counted.length === 0 ? NaN : counted.reduce((sum, count) => sum + count, 0),
    place,
  };
}

/** Old programs do not name themselves; those without an operator are all-gather, all-to-all and the like. */
function guessed(fields: readonly string[]): string | undefined {
  return ['sum', 'prod', 'min', 'max', 'avg'].includes(fields[3] ?? '') && fields[4] === '-1' ? 'all_reduce' : undefined;
}
