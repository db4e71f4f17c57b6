import type { FlightCall, FlightRecording } from './flight.js';
import { type Fields, isFields, parseJson, wordOf } from './json.js';
import type { TextPlace } from './section.js';

/**
 * Recordings with times: what NCCL Inspector writes (a JSON record a line), what NCCL's example profiler writes, and what
 * `TCCL_TRACE` writes (both Chrome's trace format).
 *
 * A collective ends on all ranks at about the same time. So, without comparing clocks, the rank with the shortest duration came
 * last, and the others waited for the difference.
 */
export interface TimedCall {
  /** Id of the communicator. */
  readonly group: string;
  /** Name for messages, where the communicator has one. */
  readonly groupName?: string;
  readonly sequence: number;
  readonly operation: string;
  readonly rank: number;
  readonly host: string;
  readonly durationUs: number;
  /** End of its kernel by the rank's clock, where the record has it (NCCL_INSPECTOR_DUMP_VERBOSE=1), µs. */
  readonly endUs?: number;
  /** Ranks of the communicator, where the record has their number. */
  readonly nRanks?: number;
  /** Bytes that the rank gave to the call, where the record has them. */
  readonly bytes?: number;
  readonly place: TextPlace;
}

/** A file's calls, and entries like those of a flight recording for calls that may not have ended. */
export interface Timeline {
  readonly timed: readonly TimedCall[];
  readonly recordings: readonly FlightRecording[];
}

const CALL_LIMIT = 1_000_000;

/** Records of NCCL Inspector (NCCL_INSPECTOR_ENABLE=1), one a line or each over several lines. */
export function readInspector(text: string, file: number): Timeline {
  const timed: TimedCall[] = [];
  for (const { value, line } of values(text)) {
    const { header, metadata, coll_perf: call } = value;
    if (!isFields(header) || !isFields(call) || timed.length >= CALL_LIMIT) continue;
    const durationUs = Number(call['coll_exec_time_us']);
    if (!(durationUs >= 0)) continue;
    const name = wordOf(header['comm_name']);
    timed.push({
      group: wordOf(header['id']) || name,
      ...(name === '' || name === 'unknown' ? {} : { groupName: name }),
      sequence: Number(call['coll_sn'] ?? -1),
      operation: wordOf(call['coll']),
      rank: Number(header['rank'] ?? -1),
      host: isFields(metadata) ? wordOf(metadata['hostname']) : '',
      durationUs,
      ...endOf(call),
      ...(typeof header['n_ranks'] === 'number' ? { nRanks: header['n_ranks'] } : {}),
      ...(typeof call['coll_msg_size_bytes'] === 'number' ? { bytes: call['coll_msg_size_bytes'] } : {}),
      place: { file, line },
    });
  }
  return { timed, recordings: [] };
}

/** The end of the last channel's kernel. */
function endOf({ event_trace_ts: trace }: Fields): Pick<TimedCall, 'endUs'> {
  const events = isFields(trace) && Array.isArray(trace['kernel_events']) ? trace['kernel_events'].filter(isFields) : [];
  const ends = events.map((event) => Number(event['kernel_stop_ts'])).filter((time) => time > 0);
  return ends.length === 0 ? {} : { endUs: ends.reduce((latest, time) => Math.max(latest, time)) };
}

/** Events of a trace: those of NCCL's example profiler name the rank, those of `TCCL_TRACE` have a track for each. */
export function readTrace(text: string, file: number): Timeline {
  const tracks = new Map<string, string>();
  const hosts = new Map<number, string>();
  const open = new Map<string, OpenCall>();
  const done: OpenCall[] = [];
  for (const { value, line } of values(text)) {
    const { ph: phase, cat: category, name, pid, tid, id } = value;
    const given: Fields = isFields(value['args']) ? value['args'] : {};
    const track = `${String(pid)}.${String(tid)}`;
    if (phase === 'M') {
      if (name === 'thread_name') tracks.set(track, String(given['name']));
      else if (name === 'process_name') hosts.set(Number(pid), String(given['name']));
      // Calls of copy engines (CE_COLL) name neither rank nor communicator, so that they cannot be compared.
    } else if (category === 'collective' || category === 'COLL') {
      const key = category === 'COLL' ? `${String(pid)} ${String(id)}` : track;
      if (phase === 'B' || phase === 'b') {
        if (open.size + done.length >= CALL_LIMIT) continue;
        open.set(key, {
          fields: given,
          name: String(name),
          track,
          pid: Number(pid),
          from: Number(value['ts']),
          to: undefined,
          line,
        });
      } else if (phase === 'E' || phase === 'e') {
        const call = open.get(key);
        open.delete(key);
        if (call !== undefined) done.push({ ...call, to: Number(value['ts']) });
      }
    }
  }
  const all = [...done, ...open.values()].map((call) => ({ call, where: whereOf(call, tracks) }));
  const timed = all.flatMap(({ call, where }): TimedCall[] =>
    call.to === undefined
      ? []
      : [
          {
            ...where,
            operation: call.name,
            host: hosts.get(call.pid) ?? '',
            durationUs: call.to - call.from,
            place: { file, line: call.line },
          },
        ],
  );
  const byRank = new Map<number, FlightCall[]>();
  for (const { call, where } of all) {
    const calls = byRank.get(where.rank) ?? [];
    if (calls.length === 0) byRank.set(where.rank, calls);
    calls.push({
      group: where.group,
      sequence: where.sequence,
      operation: call.name,
      input: inputOf(call.fields),
      state: call.to === undefined ? 'started' : 'completed',
      calledAt: '',
      order: call.line,
    });
  }
  const recordings = [...byRank].map(([rank, calls]): FlightRecording => ({
    rank,
    messages: [],
    isCut: true,
    calls: calls.sort((a, b) => a.sequence - b.sequence),
    groups: new Map(),
    place: { file, line: 1 },
  }));
  return { timed, recordings };
}

interface OpenCall {
  readonly fields: Fields;
  readonly name: string;
  readonly track: string;
  readonly pid: number;
  readonly from: number;
  readonly to: number | undefined;
  readonly line: number;
}

function whereOf(
  { fields, track, name }: OpenCall,
  tracks: ReadonlyMap<string, string>,
): { readonly group: string; readonly sequence: number; readonly rank: number } {
  if (fields['Rank'] !== undefined)
    // NCCL numbers the calls of each collective by themselves, so only these can be compared.
    return { group: `${String(fields['CommHash'])} ${name}`, sequence: Number(fields['SeqNum']), rank: Number(fields['Rank']) };
  const [, rank, group] = /^rank (\d+)(?:, \d+ of (.+))?$/.exec(tracks.get(track) ?? '') ?? [];
  return { group: group ?? 'world', sequence: Number(fields['number'] ?? -1), rank: Number(rank ?? -1) };
}

function inputOf(fields: Fields): string {
  const count = fields['count'] ?? fields['Count'];
  const type = fields['type'] ?? fields['Datatype'];
  return [count, type]
    .filter((each) => each !== undefined)
    .map(String)
    .join(' ');
}

/** The JSON values of a text: one a line, with commas and brackets of a list around them, or each over several lines. */
function* values(text: string): Generator<{ readonly value: Fields; readonly line: number }> {
  let pending = '';
  let begun = 0;
  for (const [index, whole] of text.split('\n').entries()) {
    const line = whole.trim();
    if (pending === '') {
      const inner = line.replace(/^[[,]\s*/, '').replace(/[,\]]$/, '');
      if (!inner.startsWith('{')) continue;
      const value = parsed(inner);
      if (value !== undefined) yield { value, line: index + 1 };
      else if (whole === '{') {
        pending = whole;
        begun = index + 1;
      }
    } else {
      pending += whole;
      if (/^\}[,\]]?\s*$/.test(whole)) {
        const value = parsed(pending.replace(/[,\]]\s*$/, ''));
        if (value !== undefined) yield { value, line: begun };
        pending = '';
      }
    }
  }
}

function parsed(text: string): Fields | undefined {
  try {
    const value = parseJson(text);
    return isFields(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
