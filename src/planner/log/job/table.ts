import type { LogPlace } from '../lines/line.js';
import { ownText } from '../lines/own-text.js';

/** A row of a table that nccl-tests printed; bandwidths in GB/s as it defines them. */
export interface MeasuredRow {
  readonly bytes: number;
  /** nccl-tests' name: `float`, `half`. */
  readonly type: string;
  /** The faster of out of place and in place. */
  readonly timeUs: number;
  readonly busGBps: number;
  /** Wrong elements, of both; NaN where they were not counted. */
  readonly wrong: number;
  readonly place: LogPlace;
}

/** One table: the results of a run of an nccl-tests program. */
export interface MeasuredTable {
  /** `all_reduce`; undefined if the program, an older one, does not print it. */
  readonly collective: string | undefined;
  /** True if the program printed its collective; otherwise it is a guess. */
  readonly isNamed: boolean;
  /** Number of ranks in its head, or undefined where it has none. */
  readonly nRanks: number | undefined;
  /** Hosts in its head. */
  readonly hosts: readonly string[];
  /** Ranks in its head, by host. */
  readonly ranksOfHosts: ReadonlyMap<string, number>;
  readonly run: TestRun;
  readonly rows: MeasuredRow[];
  /** Wrong elements of all rows. */
  wrong: number;
  firstWrong: MeasuredRow | undefined;
}

/** Facts about the run from the head of a table. */
export interface TestRun {
  /** The version of NCCL that the program ran with, as `2.29.2`. */
  readonly nccl: string | undefined;
  /** Processes in its head, 0 where it lists none. */
  readonly nProcesses: number;
  /** GPUs that each thread launches calls on (`-g`). */
  readonly gpusPerThread: number;
  /** GPUs by name, each once. */
  readonly gpus: readonly string[];
  /** Calls came from a CUDA graph. */
  readonly isGraph: boolean;
  /** True if times are those of queueing a call on the CPU (`-C 1`). */
  readonly isCpuTime: boolean;
}

/** A run of an nccl-tests program, from its head to its summary. */
export interface LoggedRun {
  readonly collective: string | undefined;
  readonly started: LogPlace;
  /** Its last line so far that is its own. */
  readonly last: LogPlace;
  readonly hosts: readonly string[];
  /** `host pid` of the processes that its head lists. */
  readonly processes: ReadonlySet<string>;
  readonly nRanks: number | undefined;
  /** The line of its summary. */
  readonly ended: LogPlace | undefined;
  /** The first error that the program printed. */
  readonly failed: { readonly text: string; readonly place: LogPlace } | undefined;
}

interface GrowingRun extends LoggedRun {
  collective: string | undefined;
  last: LogPlace;
  readonly hosts: string[];
  readonly processes: Set<string>;
  nRanks: number | undefined;
  ended: LogPlace | undefined;
  failed: LoggedRun['failed'];
}

/** Number of rows that are kept: more come from a loop. */
const ROW_LIMIT = 1000;
const TABLE_LIMIT = 5000;
const RUN_LIMIT = 2000;
const MOST_HOSTS = 64;
const MOST_PROCESSES = 4096;
/** A row or a line of a table's head is shorter. */
const ROW_LENGTH = 1000;

/** Finds the tables of nccl-tests between all other lines. Lines of several tables must not be mixed. */
export class TableReader {
  readonly tables: MeasuredTable[] = [];
  readonly runs: GrowingRun[] = [];
  #run: GrowingRun | undefined;
  /** The first fields of a row that other output has cut in pieces. */
  #pending: string[] = [];
  #collective: string | undefined;
  #ranks = 0;
  readonly #hosts = new Map<string, number>();
  readonly #processes = new Set<string>();
  readonly #gpus = new Set<string>();
  #nccl: string | undefined;
  #isGraph = false;
  #gpusPerThread = 1;
  #isCpuTime = false;
  /** True after the names of columns: numbers that follow are rows. */
  #isTable = false;
  /** Measurements in a row: out of place and in place, or one of them; undefined where no head says it. */
  #nTimes: 1 | 2 | undefined;
  #pendingAt: LogPlace | undefined;
  /** Names of the columns, by the last head. */
  #columns: readonly string[] = [];
  #broken: LogPlace | undefined;
  #open: MeasuredTable | undefined;

  /** The first incomplete row, or line of numbers below the head of a table that is no row. */
  get broken(): LogPlace | undefined {
    return this.#broken ?? this.#pendingAt;
  }

  /** A run does not go on in another file. */
  openFile(): void {
    this.#run = undefined;
  }

  /** A line that reports the failure of the program, or undefined text. */
  readFailure(text: string, place: LogPlace): void {
    const [, what, message = ''] =
      /Test (NCCL failure|CUDA failure|failure|timeout) [\w./-]{1,80}:\d{1,5}(?: '([^']{0,300}))?/.exec(text) ?? [];
    if (what === undefined) return;
    this.#run ??= this.#begun(place);
    this.#run.failed ??= { text: ownText(message.replace(/\s*\/\s*$/, '').trim()), place };
    this.#run.last = place;
  }

  #begun(place: LogPlace): GrowingRun {
    const run: GrowingRun = {
      collective: undefined,
      started: place,
      last: place,
      hosts: [],
      processes: new Set(),
      nRanks: undefined,
      ended: undefined,
      failed: undefined,
    };
    this.runs.push(run);
    // Of very many runs those that ended well are forgotten.
    if (this.runs.length > RUN_LIMIT) {
      const at = this.runs.findIndex(({ ended, failed }) => ended !== undefined && failed === undefined);
      if (at >= 0) this.runs.splice(at, 1);
      else this.runs.shift();
    }
    return run;
  }

  read(text: string, place: LogPlace): void {
    if (text.includes('Test ') && /Test \w{0,5} ?(?:failure|timeout) /.test(text)) this.readFailure(text, place);
    const start = text.search(/[^\s]/);
    if (start < 0) return;
    const first = text.charCodeAt(start);
    if (first === 35 /* # */) {
      this.#readHead(text, place);
      return;
    }
    const head = text.indexOf('#', start);
    if (head > 0 && head <= PREFIX_LENGTH && prefixForm.test(text.slice(start, head))) {
      this.#readHead(text.slice(head), place);
      return;
    }
    const named = this.#isTable || this.#ranks > 0 ? namedRow.exec(text.slice(0, ROW_LENGTH)) : null;
    if (named !== null) this.#readRow(named[1] ?? '', place);
    else if (first === 91 /* [ */ || (first >= 48 && first <= 57)) this.#readRow(text, place);
  }

  #readHead(text: string, place: LogPlace): void {
    const [, collective] = /Collective test starting: (\w+?)_perf/.exec(text) ?? [];
    if (collective !== undefined || text.includes(' nThread ')) {
      this.#open = undefined;
      const isBegun = this.#run !== undefined && this.#run.nRanks === undefined && this.#run.failed === undefined;
      // The head's first line names the collective, its second one the options.
      if (!isBegun || collective !== undefined) this.#run = this.#begun(place);
      if (this.#run !== undefined && collective !== undefined) this.#run.collective = ownText(collective);
      this.#ranks = 0;
      this.#isCpuTime = false;
      for (const known of [this.#hosts, this.#processes, this.#gpus]) known.clear();
      if (collective !== undefined) this.#collective = collective;
      this.#isGraph = / graph: [1-9]/.test(text);
      this.#gpusPerThread = Math.max(1, Number(/ nGpus (\d{1,4})\b/.exec(text)?.[1] ?? 1));
    }
    const [, library] = / nccl-library=(\d{4,6})\b/.exec(text) ?? [];
    if (library !== undefined) this.#nccl = versionOfCode(Number(library));
    if (/ size +count +type /.test(text)) {
      this.#isTable = true;
      this.#columns = text.slice(text.indexOf('size')).trim().split(/\s+/);
      this.#nTimes = (text.match(/ (?:cpu)?time /g)?.length ?? 2) > 1 ? 2 : 1;
      this.#isCpuTime = / cputime /.test(text);
    }
    const [, rank, pid = '', host = '', gpu = ''] =
      /^\s*(?:\[[^\]]{0,200}\]\S{0,50})?#\s+Rank\s+(\d{1,7}) .{0,80}Pid +(\d+) on +(\S{1,255}) device(?: +\d+ \[[^\]]{0,40}\] (.{1,100}))?/.exec(
        text.slice(0, ROW_LENGTH),
      ) ?? [];
    if (rank !== undefined) {
      this.#ranks = Math.max(this.#ranks, Number(rank) + 1);
      const nRanks = this.#hosts.get(host);
      if (nRanks !== undefined || this.#hosts.size < MOST_HOSTS) this.#hosts.set(ownText(host), (nRanks ?? 0) + 1);
      if (this.#processes.size < MOST_PROCESSES) this.#processes.add(`${host} ${pid}`);
      if (gpu !== '' && this.#gpus.size < MOST_HOSTS) this.#gpus.add(ownText(gpu.trim()));
      if (this.#run === undefined || this.#run.ended !== undefined) this.#run = this.#begun(place);
      this.#run.nRanks = this.#ranks;
      this.#run.last = place;
      if (!this.#run.hosts.includes(host) && this.#run.hosts.length < MOST_HOSTS) this.#run.hosts.push(ownText(host));
      if (this.#run.processes.size < MOST_PROCESSES) this.#run.processes.add(ownText(`${host} ${pid}`));
    }
    if (text.includes('Avg bus bandwidth')) {
      this.#open = undefined;
      this.#isTable = false;
      this.#run ??= this.#begun(place);
      this.#run.ended = place;
      this.#run.last = place;
    }
  }

  #readRow(text: string, place: LogPlace): void {
    // A launcher's `[0]` may be anywhere in the row, because the row is written in pieces.
    const fields = text
      .slice(0, ROW_LENGTH)
      .replaceAll(/\[[^\]]{0,200}\](?:<\w{1,20}>:)?/g, ' ')
      .trim()
      .split(/\s+/);
    const row = this.#whole(fields, place);
    if (row === undefined) return;
    this.#run ??= this.#begun(place);
    this.#run.last = place;
    if (this.#open === undefined) {
      this.#open = {
        collective: this.#collective ?? guessed(fields),
        isNamed: this.#collective !== undefined,
        nRanks: this.#ranks === 0 ? undefined : this.#ranks,
        hosts: [...this.#hosts.keys()],
        ranksOfHosts: new Map(this.#hosts),
        run: {
          nccl: this.#nccl,
          nProcesses: this.#processes.size,
          gpusPerThread: this.#gpusPerThread,
          gpus: [...this.#gpus],
          isGraph: this.#isGraph,
          isCpuTime: this.#isCpuTime,
        },
        rows: [],
        wrong: 0,
        firstWrong: undefined,
      };
      this.#collective = undefined;
      if (this.tables.length < TABLE_LIMIT) this.tables.push(this.#open);
    }
    if (row.wrong > 0) {
      this.#open.wrong += row.wrong;
      this.#open.firstWrong ??= row;
    }
    if (this.#open.rows.length < ROW_LIMIT) this.#open.rows.push(row);
  }

  /** A row is written in three pieces, and ranks may write their own lines between them. */
  #whole(fields: readonly string[], place: LogPlace): MeasuredRow | undefined {
    const isBeginning = types.has(fields[2] ?? '');
    if (!isBeginning && (this.#pending.length === 0 || !fields.every((field) => numberForm.test(field)))) {
      if (this.#isTable && fields.length > 2 && fields.every((field) => numberForm.test(field))) this.#broken ??= place;
      return undefined;
    }
    if (isBeginning && this.#pendingAt !== undefined) this.#broken ??= this.#pendingAt;
    const joined = isBeginning ? fields : [...this.#pending, ...fields];
    const row = readFields(measured(joined, this.#columns), place) ?? this.#ofOneTime(joined, place);
    const isPending = row === undefined && joined.length < Math.max(13, this.#columns.length);
    if (isBeginning) this.#pendingAt = place;
    if (row === undefined && !isPending && this.#pendingAt !== undefined) this.#broken ??= this.#pendingAt;
    this.#pending = isPending ? [...joined].map(ownText) : [];
    if (!isPending) this.#pendingAt = undefined;
    return row;
  }

  /** A row with one measurement, where the head has one, or in a table without head. */
  #ofOneTime(fields: readonly string[], place: LogPlace): MeasuredRow | undefined {
    const isOne = this.#nTimes === 1 || (this.#nTimes === undefined && this.#ranks === 0 && this.#pending.length === 0);
    if (!isOne || fields.length < 7 || fields.length > 9) return undefined;
    return readFields([...fields, ...fields.slice(-4)], place, 1);
  }
}

const PREFIX_LENGTH = 200;
/** Prefixes of launchers: `[1,0]<stdout>:`, `[pod/a/b] `, `0: `, `node7: `, `(pid=7) `, a time. */
const prefixForm =
  /^(?:(?:\[[^\]]{0,150}\](?:<\w{1,20}>:?)?|\d{4}-\d\d-\d\dT[\d:.]{8,20}(?:Z|[+-]\d\d:?\d\d)|[\w./-]{1,100}:|\([^)]{1,100}\)) ?)+$/;
/** A row behind the name of a rank or host. */
const namedRow =
  /^\s*(?:\d{4}-\d\d-\d\dT[\d:.]{8,20}(?:Z|[+-]\d\d:?\d\d)|[\w./-]{1,100}:|\([^)]{1,100}\))\s+(\d+\s+\d+\s+[a-z]\S{0,15}\s.+)$/;

/** `22902` is 2.29.2; releases before 2.9 had a digit less. */
function versionOfCode(code: number): string {
  const step = code < 10_000 ? 1000 : 10_000;
  return `${Math.floor(code / step)}.${Math.floor((code % step) / 100)}.${code % 100}`;
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

/**
 * `size count type [redop] [root] time algbw busbw #wrong time algbw busbw #wrong`, with four more after each `#wrong` in
 * reports of iterations, and a time of day at the end where one was asked for; a row that is not whole is none.
 */
function readFields(all: readonly string[], place: LogPlace, nTimes: 1 | 2 = 2): MeasuredRow | undefined {
  const type = all[2] ?? '';
  const fields = /^\d+-\d\d-\d\d$/.test(all.at(-2) ?? '') && (all.at(-1) ?? '').includes(':') ? all.slice(0, -2) : all;
  if (!types.has(type) || fields.length < 11 || fields.length > 21) return undefined;
  const bytes = Number(fields[0]);
  const numbers =
    fields.length >= 19 ? [...fields.slice(-16, -12), ...fields.slice(-8, -4)] : fields.length <= 13 ? fields.slice(-8) : [];
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
  const counted = [wrong, wrongInPlace]
    .slice(0, nTimes)
    .filter((count, index) => Number.isInteger(count) && /^\d+$/.test(numbers[index === 0 ? 3 : 7] ?? ''));
  return {
    bytes,
    type,
    timeUs: best ? timeInPlace : time,
    busGBps: best ? busInPlace : bus,
    wrong: counted.length === 0 ? NaN : counted.reduce((sum, count) => sum + count, 0),
    place,
  };
}

/** A row without columns that only some programs have, such as algorithm, protocol and channels of RCCL's (`-A 1`). */
function measured(fields: readonly string[], columns: readonly string[]): readonly string[] {
  if (fields.length !== columns.length) return fields;
  const times = columns.flatMap((name, at) => (/^(?:cpu)?time$/.test(name) ? [at] : []));
  const [first] = times;
  if (first === undefined || times.length > 2) return fields;
  return [...fields.slice(0, Math.min(first, 5)), ...times.flatMap((at) => fields.slice(at, at + 4))];
}

/** Old programs do not print their name; those without an operator are all-gather, all-to-all and the like. */
function guessed(fields: readonly string[]): string | undefined {
  return ['sum', 'prod', 'min', 'max', 'avg'].includes(fields[3] ?? '') && fields[4] === '-1' ? 'all_reduce' : undefined;
}
