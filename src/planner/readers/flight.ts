import { type Fields, isFields, wordOf } from './json.js';
import { elementsOf } from './kineto.js';
import type { TextPlace } from './section.js';

/** A call in a flight recording of PyTorch, or a batch of calls that PyTorch gave NCCL together. */
export interface FlightCall {
  /** Name of the group, which groups of other ranks may have too. */
  readonly group: string;
  readonly sequence: number;
  /** `all_reduce`, without the backend before it; the operations of a batch, joined. */
  readonly operation: string;
  /** Shapes and types of the inputs, as text. */
  readonly input: string;
  readonly state: string;
  /** `train.py:120 step`, where the program called. */
  readonly calledAt: string;
  /** Its place among all calls and messages of the recording. */
  readonly order: number;
  readonly measured?: FlightMeasurement;
}

/** Sizes and times of a call, where the recording has them. */
export interface FlightMeasurement {
  /** Elements of inputs and outputs, of a batch those of all its calls. */
  readonly inputElements: number;
  readonly outputElements: number;
  /** As PyTorch names it. */
  readonly type: string;
  /** When the CPU made the call, µs. The GPU begins it later. */
  readonly createdUs: number;
  /** Time on the GPU (TORCH_NCCL_ENABLE_TIMING=1). */
  readonly durationUs: number | undefined;
}

/** A message in a flight recording, or a signal of a window of tccl. */
export interface FlightMessage {
  readonly group: string;
  readonly direction: 'send' | 'recv';
  /** Signals of a window that it sends or waits for; 0 for a message. */
  readonly signals: number;
  /** The other rank, by its number in the group. */
  readonly peer: number;
  readonly state: string;
  readonly calledAt: string;
  readonly order: number;
  /** Number of its batch among those of the recording. */
  readonly batch: number;
  readonly measured?: FlightMeasurement;
}

/** Recording of one rank. */
export interface FlightRecording {
  readonly rank: number;
  /** True for a rank of tccl, which writes the form of PyTorch. */
  readonly isOfTccl?: boolean;
  readonly calls: readonly FlightCall[];
  readonly messages: readonly FlightMessage[];
  /** True if older entries of the ring buffer were overwritten. */
  readonly isCut: boolean;
  /** By group, its ranks in ascending order, where the recording has them. */
  readonly groups: ReadonlyMap<string, readonly number[]>;
  readonly place: TextPlace;
}

/**
 * True if a value of JSON or a pickle is a recording of PyTorch (TORCH_NCCL_TRACE_BUFFER_SIZE, TORCH_FR_BUFFER_SIZE) or of tccl
 * (TCCL_RECORD).
 */
export function isFlightRecording(value: unknown): value is Fields {
  return isFields(value) && Array.isArray(value['entries']) && ('pg_config' in value || 'version' in value);
}

/** @param name of the file, whose last number is the rank: the recording lacks it */
export function readFlightRecording(value: Fields, name: string, place: TextPlace): FlightRecording {
  const entries = (value['entries'] as readonly unknown[]).filter(isFields).filter((entry) => operationOf(entry) !== '');
  const config = isFields(value['pg_config']) ? value['pg_config'] : {};
  const groups = new Map(
    Object.entries(config).flatMap(([key, group]): [string, number[]][] =>
      isFields(group) ? [[key, ranksOf(group['ranks']).sort((a, b) => a - b)]] : [],
    ),
  );
  const own =
    typeof value['rank'] === 'number'
      ? value['rank']
      : Number(/(\d+)\D*$/.exec(name.replace(/\.(?:json|pickle|pkl|pt|bin|gz)$/, ''))?.[1] ?? -1);
  const order = new Map(entries.map((entry, index) => [entry, index]));
  const isMessage = (entry: Fields) => entry['is_p2p'] === true || messagePattern.test(operationOf(entry));
  return {
    rank: own,
    isOfTccl: /^tccl\b/.test(wordOf(value['comm_lib_version'])),
    groups,
    place,
    isCut: Number(entries[0]?.['record_id'] ?? 0) > 0,
    calls: batches(entries.filter((entry) => !isMessage(entry))).map((batch) => call(batch, order)),
    messages: batches(entries.filter(isMessage)).flatMap((batch, number) => messages(batch, number, order)),
  };
}

/**
 * Entries of one sequence number. A batch (coalesced calls) has an entry for each call, whose state PyTorch never updates,
 * and ends with an entry `coalesced` that has the state of all.
 */
interface Batch {
  readonly group: string;
  readonly sequence: number;
  readonly entries: Fields[];
  state: string;
  /** Of its calls, or of all together. */
  readonly durationsMs: number[];
  isClosed: boolean;
}

const COALESCED = 'coalesced';
const messagePattern = /^(send|recv|signal|put with signal|waitSignal) \d{1,7}(?:->|<-)(\d{1,7})$/;

function batches(entries: readonly Fields[]): Batch[] {
  const all: Batch[] = [];
  const open = new Map<string, Batch>();
  for (const entry of entries) {
    const group = groupOf(entry);
    const sequence = sequenceOf(entry);
    const key = `${sequence} ${group}`;
    let batch = open.get(key);
    if (batch === undefined) {
      batch = { group, sequence, entries: [], state: '', durationsMs: [], isClosed: false };
      open.set(key, batch);
      all.push(batch);
    }
    if (batch.entries.length === 0 || operationOf(entry) !== COALESCED) batch.entries.push(entry);
    batch.state = wordOf(entry['state']);
    if (typeof entry['duration_ms'] === 'number') batch.durationsMs.push(entry['duration_ms']);
    if (operationOf(entry) !== COALESCED) continue;
    batch.isClosed = true;
    open.delete(key);
  }
  return all;
}

function sequenceOf(entry: Fields): number {
  const own = entry['is_p2p'] === true ? (entry['p2p_seq_id'] ?? entry['collective_seq_id']) : entry['collective_seq_id'];
  return Number(own ?? entry['seq_id'] ?? -1);
}

function groupOf(entry: Fields): string {
  const group = entry['process_group'];
  return Array.isArray(group) ? wordOf(group[0], '0') : wordOf(group ?? entry['pg_id'], '0');
}

function operationOf(entry: Fields): string {
  return wordOf(entry['profiling_name']).replace(/^\w+:/, '').trim();
}

function inputOf(entry: Fields): string {
  return `${JSON.stringify(entry['input_sizes'] ?? [])} ${Array.isArray(entry['input_dtypes']) ? entry['input_dtypes'].join(' ') : ''}`.trim();
}

/** The place in the program, not in PyTorch. */
function calledAt(entry: Fields): string {
  const frames = Array.isArray(entry['frames']) ? entry['frames'].filter(isFields) : [];
  const frame =
    frames.find(
      (each) =>
        !/torch[/\\](?:distributed|nn|utils|autograd)|c10d/.test(String(each['filename'])) && each['filename'] !== undefined,
    ) ?? frames[0];
  return frame === undefined ? '' : `${String(frame['filename'])}:${String(frame['line'])} ${String(frame['name'])}`;
}

/** More operations of a batch than this are not written out. */
const SHOWN_OPERATIONS = 3;

function call({ group, sequence, entries, state, durationsMs }: Batch, order: ReadonlyMap<Fields, number>): FlightCall {
  const operations = [...new Set(entries.map(operationOf))];
  const [first] = entries;
  return {
    group,
    sequence,
    operation: operations.length <= SHOWN_OPERATIONS ? operations.join(' + ') : `${entries.length} coalesced calls`,
    input: entries.map(inputOf).join('; '),
    state,
    calledAt: first === undefined ? '' : calledAt(first),
    order: first === undefined ? -1 : (order.get(first) ?? -1),
    ...measurementOf(entries, durationsMs),
  };
}

function measurementOf(entries: readonly Fields[], durationsMs: readonly number[]): Pick<FlightCall, 'measured'> {
  const [first] = entries;
  const created = Number(first?.['time_created_ns']);
  if (first === undefined || !(created > 0)) return {};
  const elements = (name: string) => entries.reduce((sum, entry) => sum + elementsOf(entry[name]), 0);
  const types = Array.isArray(first['input_dtypes']) ? first['input_dtypes'] : [];
  return {
    measured: {
      inputElements: elements('input_sizes'),
      outputElements: elements('output_sizes'),
      type: wordOf(types[0]),
      createdUs: created / 1000,
      durationUs: durationsMs.length === 0 ? undefined : 1000 * Math.max(...durationsMs),
    },
  };
}

function messages(
  { group, entries, state, durationsMs, isClosed }: Batch,
  batch: number,
  order: ReadonlyMap<Fields, number>,
): FlightMessage[] {
  return entries.flatMap((entry): FlightMessage[] => {
    const [, name, peer] = messagePattern.exec(operationOf(entry)) ?? [];
    if (name === undefined || peer === undefined) return [];
    const [[awaited]] = [/\d+/.exec(inputOf(entry)) ?? ['1']];
    return [
      {
        group,
        direction: name === 'recv' || name === 'waitSignal' ? 'recv' : 'send',
        signals: name === 'waitSignal' ? Number(awaited) : name.endsWith('signal') ? 1 : 0,
        peer: Number(peer),
        state: isClosed ? state : wordOf(entry['state']),
        calledAt: calledAt(entry),
        order: order.get(entry) ?? -1,
        batch,
        ...measurementOf([entry], durationsMs),
      },
    ];
  });
}

/** `[0, 1]`, as a list or, as PyTorch writes it, as a text. */
function ranksOf(value: unknown): number[] {
  if (Array.isArray(value)) return value.map(Number).filter(Number.isInteger);
  return typeof value === 'string' ? [...value.matchAll(/\d{1,7}/g)].map(([rank]) => Number(rank)) : [];
}
