import { ANY_SOURCE } from '../algorithms/activity.js';
import { callArguments, hasCount, nameOf, type Call } from '../algorithms/call.js';
import { readBoard, type ShownCommunicator, type ShownRank } from './read-boards.js';
import { readCalls, type RecordedCalls } from './read-calls.js';

/** Most calls of a recording. */
const MOST_CALLS = 2000;

/** One call in a {@link FlightRecording}; the names are those of PyTorch. */
interface FlightEntry {
  readonly record_id: number;
  readonly process_group: readonly [name: string, description: string];
  readonly profiling_name: string;
  readonly is_p2p: boolean;
  /** Number among the collectives of the communicator, from 0. */
  readonly collective_seq_id?: number;
  readonly input_sizes: readonly (readonly number[])[];
  readonly input_dtypes: readonly string[];
  readonly state: 'started' | 'completed';
  /** Nanoseconds since 1970. Of a call that began between two readings of the clock it is that of the earlier one. */
  readonly time_created_ns: number | null;
  readonly time_discovered_started_ns: number | null;
  readonly time_discovered_completed_ns: number | null;
  readonly duration_ms: number | null;
}

/** The last calls of a rank, in the form of PyTorch's flight recorder. */
export interface FlightRecording {
  readonly version: string;
  readonly comm_lib_version: string;
  readonly rank: number;
  readonly hostname: string;
  readonly pid: number;
  readonly time_written_ns: number;
  /** Members of the open communicators, as ranks of the job. */
  readonly pg_config: Readonly<Record<string, { readonly name: string; readonly desc: string; readonly ranks: string }>>;
  readonly entries: readonly FlightEntry[];
}

/** Version of PyTorch's form. */
const FORM = '2.4';

/**
 * The last 2,000 calls of a rank.
 * @param board bytes of its whole board
 * @param host name of its host
 * @returns undefined if no rank shows anything there
 */
export function flightRecording(board: Uint8Array, host: string, nowMs: number): FlightRecording | undefined {
  const shown = readBoard(board);
  if (shown === undefined) return undefined;
  const calls = expanded(shown, readCalls(board));
  // Calls that wait matter most, however old.
  const waiting = calls.slice(0, -MOST_CALLS).filter(({ isOpen }) => isOpen);
  const kept = [...waiting, ...calls.slice(calls.length > MOST_CALLS ? waiting.length - MOST_CALLS : 0)];
  const lost = calls.length - kept.length;
  return {
    version: FORM,
    comm_lib_version: `tccl ${shown.facts.version}`,
    rank: shown.rank,
    hostname: host,
    pid: shown.pid,
    time_written_ns: nanoseconds(nowMs),
    pg_config: Object.fromEntries(
      shown.communicators.flatMap(({ id, name, members }) => {
        const ranks = members === undefined ? '' : `[${members.join(', ')}]`;
        const hasOutOfBand = kept.some(({ of, communicator }) => of.kind === 'bootstrap' && communicator.id === id);
        return [id, ...(hasOutOfBand ? [bootstrapGroup(id)] : [])].map((group) => [
          group,
          { name: group, desc: name ?? '', ranks },
        ]);
      }),
    ),
    entries: kept.map((call, i) => flightEntry(shown.rank, call, lost + i)),
  };
}

/** A call with its communicator, and the latest reading of the clock before it. */
interface PlacedCall extends Omit<RecordedCalls, 'serial'> {
  readonly communicator: Pick<ShownCommunicator, 'id' | 'name'>;
  readonly number: number;
  readonly notBeforeMs: number | undefined;
}

/** Makes a call of each one that shares an entry: an entry ends where the next one of its communicator begins. */
function expanded({ rank, communicators }: ShownRank, recorded: readonly RecordedCalls[]): PlacedCall[] {
  const bySerial = new Map(communicators.map((communicator) => [communicator.serial, communicator]));
  const nextOf = new Map(communicators.map(({ serial, begun }) => [serial, begun]));
  const newestFirst = [...recorded].reverse().flatMap((entry): (RecordedCalls & { readonly last: number })[] => {
    const { of, serial, isOpen } = entry;
    if (of.kind !== 'collective') return [{ ...entry, last: -1 }];
    const next = nextOf.get(serial) ?? of.first + 1;
    nextOf.set(serial, of.first);
    return [{ ...entry, last: isOpen ? of.first : Math.max(of.first, next - 1) }];
  });
  let nowMs: number | undefined;
  const calls = newestFirst.reverse().flatMap(({ serial, last, ...entry }): PlacedCall[] => {
    nowMs = entry.startMs ?? nowMs;
    const notBeforeMs = nowMs;
    const communicator = bySerial.get(serial) ?? { id: `closed communicator ${serial} of rank ${rank}`, name: undefined };
    const { of } = entry;
    if (of.kind !== 'collective')
      return [{ ...entry, communicator, number: of.kind === 'bootstrap' ? of.number : -1, notBeforeMs }];
    // Only the last ones are kept.
    const first = Math.max(of.first, last - MOST_CALLS + 1);
    return Array.from({ length: last - first + 1 }, (_, i) => ({
      ...entry,
      startMs: first + i === of.first ? entry.startMs : undefined,
      communicator,
      number: first + i,
      notBeforeMs,
    }));
  });
  return [...overwritten(communicators, calls), ...calls];
}

/** Calls that still wait, and whose entries later calls of other communicators have taken. */
function overwritten(communicators: readonly ShownCommunicator[], calls: readonly PlacedCall[]): PlacedCall[] {
  return communicators.flatMap((communicator): PlacedCall[] => {
    const { id, waited, waits } = communicator;
    if (waited === undefined || waited.hasEnded) return [];
    if (calls.some((call) => call.communicator.id === id && call.number === waited.number)) return [];
    const startMs = waits.find(({ activity }) => activity.kind === 'collective')?.sinceMs;
    const { call, number } = waited;
    return [
      {
        of: { kind: 'collective', call, first: number },
        isOpen: true,
        startMs,
        durationMs: undefined,
        communicator,
        number,
        notBeforeMs: startMs,
      },
    ];
  });
}

function flightEntry(rank: number, call: PlacedCall, index: number): FlightEntry {
  const { of, communicator, number, isOpen, startMs, durationMs, notBeforeMs } = call;
  const { id, name = '' } = communicator;
  const isOfAll = of.kind === 'collective' || of.kind === 'bootstrap';
  const elements = elementsOf(of);
  return {
    record_id: index,
    process_group: [of.kind === 'bootstrap' ? bootstrapGroup(id) : id, name],
    profiling_name: `tccl:${textOf(of, rank)}`,
    is_p2p: !isOfAll,
    ...(isOfAll ? { collective_seq_id: number } : {}),
    input_sizes: elements === undefined ? [] : [[elements.count]],
    input_dtypes: elements === undefined ? [] : [elements.type],
    state: isOpen ? 'started' : 'completed',
    time_created_ns: nanoseconds(startMs ?? notBeforeMs),
    time_discovered_started_ns: nanoseconds(startMs),
    time_discovered_completed_ns: startMs === undefined || durationMs === undefined ? null : nanoseconds(startMs + durationMs),
    duration_ms: durationMs ?? null,
  };
}

/** Calls over the bootstrap network have numbers of their own: calls of the remaining ranks are no collectives. */
function bootstrapGroup(id: string): string {
  return `${id} (bootstrap)`;
}

/** `allReduce (sum)`, `broadcast, root 0`, `send 0->1`, `shrink`: everything in which ranks may differ, except elements. */
function textOf(of: RecordedCalls['of'], rank: number): string {
  if (of.kind === 'collective') return collectiveText(of.call);
  if (of.kind === 'bootstrap') return of.name;
  const name = of.kind === 'window' ? of.name : of.kind;
  const comesIn = name === 'recv' || name === 'waitSignal' || name === 'get';
  return `${name} ${rank}${comesIn ? '<-' : '->'}${of.peer === ANY_SOURCE ? 'any' : of.peer}`;
}

function collectiveText(call: Call): string {
  const { operator, root } = callArguments(call);
  return `${nameOf(call)}${operator === undefined ? '' : ` (${operator})`}${root === undefined ? '' : `, root ${root}`}`;
}

function elementsOf(of: RecordedCalls['of']): { readonly count: number; readonly type: string } | undefined {
  if (of.kind === 'bootstrap') return undefined;
  if (of.kind !== 'collective') return { count: of.count, type: of.type.name };
  const { count, type } = callArguments(of.call);
  return hasCount(of.call) ? { count: Number(count), type: String(type) } : undefined;
}

function nanoseconds(ms: number): number;
function nanoseconds(ms: number | undefined): number | null;
function nanoseconds(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.round(ms * 1e6);
}
