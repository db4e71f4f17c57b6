import { InputError } from '../../errors.js';
import { type Fields, isFields, parseJson, textOf } from './json.js';
import type { TextPlace, ToolFormat } from './section.js';

/** A report of NCCL's RAS (`ncclras`), as text or JSON. It counts operations that ranks launched, not completed ones. */
export interface RasReport {
  /** NCCL's version, such as `2.28.7`; undefined where the report has none. */
  readonly version: string | undefined;
  /** True if healthy communicators and their counts are in it, as in JSON; text names only those in trouble. */
  readonly isComplete: boolean;
  readonly communicators: readonly RasCommunicator[];
  /** Processes that RAS considers dead. */
  readonly dead: readonly RasGone[];
  /** Processes that gave no data, dead or not. */
  readonly silent: readonly RasGone[];
  /** Kinds of trouble in the table of a text, such as `INCOMPLETE`. */
  readonly troubles: readonly string[];
}

export interface RasCommunicator {
  /** Hash; several communicators may share one. */
  readonly name: string;
  /** Its two hashes in JSON, which no other communicator has; in text its hash. */
  readonly id: string;
  /** Number of its ranks, where the report has it. */
  readonly size: number | undefined;
  /** By operation, ranks by the number that they launched. */
  readonly counts: ReadonlyMap<string, readonly RankGroup<number>[]>;
  readonly statuses: readonly RankGroup<string>[];
  /** Ranks with an asynchronous error, by its words; empty where there are none. */
  readonly errors: readonly RankGroup<string>[];
  readonly missing: readonly { readonly rank: number; readonly isDead: boolean }[];
  /** Processes of its ranks: of all in JSON, of those that the report names in text. */
  readonly processes: ReadonlyMap<number, RasProcess>;
  readonly place: TextPlace;
}

/** A process from which RAS has nothing: in text without its rank. */
export interface RasGone {
  readonly process: RasProcess;
  /** Rank, where the report leaves no doubt. */
  readonly rank: number | undefined;
  readonly place: TextPlace;
}

/** The process of a rank. */
export interface RasProcess {
  readonly host: string;
  readonly pid: number;
  /** Number of its GPU in CUDA's order; undefined where the report has none. */
  readonly gpu: number | undefined;
  /** The same in NVML's order, which is that of `nvidia-smi`. */
  readonly nvml?: number | undefined;
}

/** Ranks with the same report; without their numbers where RAS gives only how many they are. */
export interface RankGroup<Value> {
  readonly value: Value;
  readonly size: number;
  readonly ranks: readonly number[];
}

function isRasJson(value: unknown): value is Fields {
  return isFields(value) && Array.isArray(value['communicators']) && 'nccl_version' in value;
}

/**
 * Parses JSON of `ncclras`, which in NCCL 2.28.9 lacks commas between values.
 *
 * @throws InputError where it is no JSON even then, or no report of RAS
 */
export function parseRasJson(text: string, place: TextPlace): RasReport {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (error) {
    const mended = withCommas(text);
    if (mended === text) throw error;
    value = parseJson(mended);
  }
  if (!isRasJson(value))
    throw new InputError('CONTENT', 'is JSON, but no report of RAS: it has no nccl_version and communicators');
  return readRasJson(value, place);
}

/** A value that follows another one without a comma gets one. */
function withCommas(text: string): string {
  let result = '';
  let before = '';
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+|\s+/g)) {
    if (/^\s/.test(token)) {
      result += token;
      continue;
    }
    const begins = !/^[}\],:]/.test(token);
    const hasEnded = before !== '' && !/[{[,:]$/.test(before);
    result += begins && hasEnded ? `,${token}` : token;
    before = token.startsWith('"') ? '"' : token;
  }
  return result;
}

export function readRasJson(value: Fields, place: TextPlace): RasReport {
  const communicators = listOf(value['communicators']).map((communicator): RasCommunicator => {
    const ranks = listOf(communicator['ranks']);
    const failed = ranks.filter((rank) => isFields(rank['status']) && Number(rank['status']['async_error'] ?? 0) !== 0);
    const missing = listOf(communicator['missing_ranks']);
    const name = textOf(communicator['hash']);
    return {
      name,
      id: `${name} ${textOf(communicator['secondary_hash'])}`,
      size: Number.isInteger(communicator['size']) ? Number(communicator['size']) : undefined,
      counts: countsOf(ranks),
      statuses: groupsBy(ranks, statusOf),
      errors: failed.length === 0 ? [] : [{ value: '', size: failed.length, ranks: failed.map(rankOf) }],
      missing: missing.map((rank) => ({
        rank: rankOf(rank),
        isDead: isFields(rank['status']) && rank['status']['considered_dead'] === true,
      })),
      processes: new Map([...ranks, ...missing].map((rank) => [rankOf(rank), processOf(rank)])),
      place,
    };
  });
  return {
    version: textOf(value['nccl_version']) || undefined,
    isComplete: true,
    communicators,
    dead: [],
    silent: [],
    troubles: [],
  };
}

function processOf(rank: Fields): RasProcess {
  const { cuda_dev: gpu, nvml_dev: nvml, pid } = rank;
  return {
    host: textOf(rank['host']),
    pid: Number(pid ?? 0),
    gpu: typeof gpu === 'number' ? gpu : undefined,
    nvml: typeof nvml === 'number' ? nvml : undefined,
  };
}

function groupsBy<Value extends string | number>(ranks: readonly Fields[], valueOf: (rank: Fields) => Value): RankGroup<Value>[] {
  const groups = new Map<Value, number[]>();
  for (const rank of ranks) groups.set(valueOf(rank), [...(groups.get(valueOf(rank)) ?? []), rankOf(rank)]);
  return [...groups].map(([value, all]) => ({ value, size: all.length, ranks: all }));
}

/** Text of `ncclras` for it. */
function statusOf({ status }: Fields): string {
  if (!isFields(status)) return 'RUNNING';
  if (status['abort_flag'] === true) return 'ABORT';
  if (status['finalize_called'] === true || status['destroy_flag'] === true) return 'FINALIZE';
  return Number(status['init_state'] ?? 0) === 0 ? 'RUNNING' : 'INIT';
}

function countsOf(ranks: readonly Fields[]): Map<string, RankGroup<number>[]> {
  const counts = (rank: Fields) => (isFields(rank['collective_counts']) ? rank['collective_counts'] : {});
  const operations = new Set(ranks.flatMap((rank) => Object.keys(counts(rank))));
  return new Map(
    [...operations].map((operation) => [operation, groupsBy(ranks, (rank) => Number(counts(rank)[operation] ?? 0))]),
  );
}

/** `ncclras` as text: its table of communicators, and its sections on incomplete, dead, failed and mismatched ranks. */
export const rasText: ToolFormat<'ras', RasReport> = {
  name: 'ras',
  commands: ['ncclras', 'ncclras -v', 'ncclras -f json'],
  holds:
    /^Job summary|^#\d|^\s*(?:\d+ ranks?|Rank \d+|Process \d+) |^\s*The missing ranks?: |^(?:INCOMPLETE|DEAD|TIMEOUT|Warnings|Errors)\s*$|ranks have|^ +\d+ +\d/,
  needles: ['job summary', 'gathering data about the ras', 'group     comms', ') mismatch', ') incomplete', ') error'],
  begins: /^(?:Job summary|Gathering data about the RAS network|Group +Comms +Nodes +Ranks|#\d+-\d+ \([0-9a-f]{8,16}\) \w+)/,
  restarts: /^Job summary/,
  parse: (lines) => {
    const text = new RasText();
    for (const line of lines) text.read(line.text, line.place);
    return text.finish();
  },
};

interface GrowingCommunicator {
  name: string;
  id: string;
  size: number | undefined;
  counts: Map<string, RankGroup<number>[]>;
  statuses: RankGroup<string>[];
  errors: RankGroup<string>[];
  missing: { rank: number; isDead: boolean }[];
  processes: Map<number, RasProcess>;
  place: TextPlace;
}

const RANGE_LIMIT = 4096;

class RasText {
  readonly #communicators: GrowingCommunicator[] = [];
  readonly #gone: { readonly process: RasProcess; readonly isDead: boolean; readonly place: TextPlace }[] = [];
  readonly #troubles = new Set<string>();
  /** By number of the group in the table: ranks of a communicator. */
  readonly #sizes = new Map<string, number>();
  #version: string | undefined;
  #open: GrowingCommunicator | undefined;
  #section = '';
  #operation = '';
  /** The group whose ranks the next lines list. */
  #listed: number[] | undefined;

  read(text: string, place: TextPlace): void {
    const [, group = '', name, section] = /^#(\d+)-\d+ \(([0-9a-f]{8,16})\) (\w+)/.exec(text) ?? [];
    const heading = name === undefined ? /^(INCOMPLETE|DEAD|TIMEOUT|Warnings|Errors)\s*$/.exec(text)?.[1] : section;
    if (heading !== undefined) {
      this.#section = heading;
      this.#listed = undefined;
      this.#open = name === undefined ? undefined : this.#communicator(name, this.#sizes.get(group), place);
      return;
    }
    const row = /^ +(\d+) +\d+ +\d+ +[\d-]+ +(\d+) +\d+ +[A-Z-]+ +([A-Z,]+)\s*$/.exec(text);
    if (row !== null) {
      const [, number = '', size, troubles = ''] = row;
      this.#sizes.set(number, Number(size));
      for (const trouble of troubles.split(',')) if (trouble !== 'OK' && trouble !== '') this.#troubles.add(trouble);
      return;
    }
    this.#version ??= /^NCCL version (\d+\.\d+\.\d+)/.exec(text)?.[1];
    this.#operation = /ranks have different (\w+) operation counts/.exec(text)?.[1] ?? this.#operation;
    this.#readGroup(text);
    this.#readMissing(text);
    const isDead = this.#section === 'DEAD';
    const [, pid, host = '', gpu] = /^\s*Process (\d+) on node (\S+) managing(?: GPU (\d+))?/.exec(text) ?? [];
    if (pid !== undefined && (isDead || this.#section === 'INCOMPLETE')) {
      const process = { host, pid: Number(pid), gpu: gpu === undefined ? undefined : Number(gpu) };
      this.#gone.push({ process, isDead, place });
    }
  }

  finish(): RasReport {
    // The text does not say which process had which rank; one of each belong together.
    const missing = this.#communicators.filter((communicator) => communicator.missing.length > 0);
    const [only] = this.#gone;
    const isOne = this.#gone.length === 1 && missing.every((communicator) => communicator.missing.length === 1);
    if (isOne && only !== undefined)
      for (const communicator of missing)
        for (const each of communicator.missing) {
          if (!communicator.processes.has(each.rank)) communicator.processes.set(each.rank, only.process);
          each.isDead ||= only.isDead;
        }
    const rank = isOne && missing.length === 1 ? missing[0]?.missing[0]?.rank : undefined;
    const gone = this.#gone.map(({ process, isDead, place }) => ({ process, isDead, rank, place }));
    return {
      version: this.#version,
      isComplete: false,
      communicators: this.#communicators,
      dead: gone.filter(({ isDead }) => isDead),
      silent: gone,
      troubles: [...this.#troubles],
    };
  }

  /** `The missing ranks: 21,23`. */
  #readMissing(text: string): void {
    const [, list] = /^\s*The missing ranks?: (\d[\d, -]*)$/.exec(text.trimEnd()) ?? [];
    if (list === undefined || this.#open === undefined || this.#section !== 'INCOMPLETE') return;
    for (const part of list.split(',')) {
      const [from = NaN, to = from] = part.split('-').map(Number);
      for (let rank = from; rank <= to && rank < from + RANGE_LIMIT; rank++) this.#open.missing.push({ rank, isDead: false });
    }
  }

  /** A communicator has a section of its own for each kind of trouble. */
  #communicator(name: string, size: number | undefined, place: TextPlace): GrowingCommunicator {
    const made: GrowingCommunicator = {
      name,
      id: name,
      size,
      counts: new Map(),
      statuses: [],
      errors: [],
      missing: [],
      processes: new Map(),
      place,
    };
    this.#communicators.push(made);
    return made;
  }

  /** `2 ranks have status ABORT` and `Rank 3 -- GPU …` for each, or `Rank 3 has status ABORT -- …`. */
  #readGroup(text: string): void {
    const open = this.#open;
    const [, number, rank, rest = ''] = /^\s*(?:(\d+) ranks?|Rank (\d+)) (\S.*)$/.exec(text) ?? [];
    if (open === undefined || (number === undefined && rank === undefined)) return;
    const [, gpu, pid, host = ''] = /-- GPU (\d+)(?: \(NVML \d+\))? managed by process (\d+) on node (\S+)/.exec(rest) ?? [];
    if (rank !== undefined && pid !== undefined) open.processes.set(Number(rank), { host, pid: Number(pid), gpu: Number(gpu) });
    if (rest.startsWith('-- ')) {
      if (this.#listed !== undefined) this.#listed.push(Number(rank));
      else if (this.#section === 'INCOMPLETE') open.missing.push({ rank: Number(rank), isDead: false });
      return;
    }
    const size = Number(number ?? 1);
    const ranks = rank === undefined ? [] : [Number(rank)];
    const [, count] = /^ha(?:ve|s) (?:launched up to operation (\d+)|not launched any operations)/.exec(rest) ?? [];
    const status = /^ha(?:ve|s) status (\w+)/.exec(rest)?.[1];
    const error = /^reported ([^-]{3,60}?)\s*(?:--|$)/.exec(rest)?.[1];
    if (status !== undefined) open.statuses.push({ value: status, size, ranks });
    else if (error !== undefined) open.errors.push({ value: error, size, ranks });
    else if (/^ha(?:ve|s) (?:not )?launched/.test(rest)) {
      const known = open.counts.get(this.#operation) ?? [];
      open.counts.set(this.#operation, [...known, { value: Number(count ?? 0), size, ranks }]);
    } else return;
    this.#listed = ranks;
  }
}

function rankOf(rank: Fields): number {
  return Number(rank['rank'] ?? -1);
}

function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : [];
}
