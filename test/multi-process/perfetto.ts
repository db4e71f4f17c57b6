/**
 * Perfetto's reading of a trace in Chrome's JSON format, by the rules of its importer (google/perfetto, src/trace_processor:
 * importers/json, importers/common/slice_tracker.cc and process_tracker.cc, util/json_parser.h), as far as our traces touch them.
 * Whatever it would drop, move, or draw in a way that is not meant is a problem here.
 */
export interface PerfettoTrace {
  /** Names of processes, by their numbers. */
  readonly processes: ReadonlyMap<number, string>;
  readonly tracks: readonly PerfettoTrack[];
  /** Process and name of each. */
  readonly counters: ReadonlySet<string>;
  readonly asynchronous: readonly PerfettoSlice[];
  readonly problems: readonly string[];
}

export interface PerfettoTrack {
  readonly pid: number;
  readonly tid: number;
  name: string;
  sortIndex: number | undefined;
  readonly slices: PerfettoSlice[];
}

/** Times in nanoseconds, as Perfetto has them. */
export interface PerfettoSlice {
  readonly name: string;
  readonly category: string | undefined;
  readonly from: number;
  /** Undefined while it has not ended: drawn to the end of the trace. */
  to: number | undefined;
  readonly tid: number;
  readonly args: Record<string, unknown>;
  readonly parent: PerfettoSlice | undefined;
}

interface RawEvent {
  readonly name?: string;
  readonly cat?: string;
  readonly ph?: string;
  readonly ts?: number;
  readonly dur?: number;
  readonly pid?: number;
  readonly tid?: number;
  readonly id?: string;
  readonly args?: Record<string, unknown>;
}

/** So much of a file tells Perfetto that it is JSON. */
const SNIFFED_CHARACTERS = 128;

export function perfettoImport(text: string): PerfettoTrace {
  const problems: string[] = [];
  const processes = new Map<number, string>();
  const counters = new Set<string>();
  const tracks = new Map<string, PerfettoTrack>();
  const open = new Map<PerfettoTrack, PerfettoSlice[]>();
  const asynchronous = new Map<string, PerfettoSlice>();
  const allAsynchronous: PerfettoSlice[] = [];

  if (!/^(\[\{"|\{")/.test(text.slice(0, SNIFFED_CHARACTERS).replace(/\s/g, ''))) problems.push('not recognised as a JSON trace');
  const exact = (value = 0): boolean => Number.isInteger(value * 8);
  // Sorted by time; events of one time stay in the order of the file. Metadata have none.
  const events = parsed(text, problems)
    .filter((event) => isEvent(event, problems))
    .map((event, place) => ({ event, place, ts: Math.round((event.ts ?? 0) * 1000) }));
  // Other viewers add in floating point: a slice may not end a hair after the next begins.
  if (!events.every(({ event: { ts: at, dur } }) => exact(at) && exact(dur)))
    problems.push('times are not whole eighths of a microsecond');
  events.sort((a, b) => a.ts - b.ts || a.place - b.place);

  for (const { event, ts } of events) {
    const { ph = '', pid = 0, tid = 0, name, cat, args = {} } = event;
    // A thread without a number gets its process's, and the thread of that number counts as the main one.
    if (name !== 'process_name' && (tid === pid || tid === 0))
      problems.push(`${String(name)}: track ${tid} of process ${pid} is drawn as its main thread`);
    if (name === 'process_name') {
      processes.set(pid, String(args['name']));
      continue;
    }
    if (ph === 'C') {
      // A counter is a track of its process, and each argument a series of numbers.
      if (!Object.values(args).every((value) => typeof value === 'number'))
        problems.push(`counter ${String(name)} counts no number`);
      counters.add(`${pid} ${String(name)}`);
      continue;
    }
    const key = `${pid} ${tid}`;
    let track = tracks.get(key);
    if (track === undefined) tracks.set(key, (track = { pid, tid, name: '', sortIndex: undefined, slices: [] }));
    const stack = open.get(track) ?? [];
    open.set(track, stack);
    const begin = (to: number | undefined): void => {
      const slice: PerfettoSlice = {
        name: name ?? '[No name]',
        category: cat,
        from: ts,
        to,
        tid,
        args: { ...args },
        parent: stack.at(-1),
      };
      stack.push(slice);
      track.slices.push(slice);
    };
    switch (ph) {
      case 'M':
        if (name === 'thread_name') track.name = String(args['name']);
        else if (name === 'thread_sort_index') track.sortIndex = Number(args['sort_index']);
        else problems.push(`metadata ${String(name)} mean nothing`);
        break;
      case 'B':
        closeStack(stack, ts, undefined, problems);
        begin(undefined);
        break;
      case 'E': {
        closeStack(stack, ts, undefined, problems);
        const slice = stack.findLast(
          (one) => one.to === undefined && (name ?? one.name) === one.name && (cat ?? one.category) === one.category,
        );
        if (slice === undefined) problems.push(`an end without a beginning at ${ts}`);
        else {
          slice.to = ts;
          Object.assign(slice.args, args);
          if (stack.at(-1) === slice) stack.pop();
        }
        break;
      }
      case 'X': {
        const durationNs = Math.round((event.dur ?? 0) * 1000);
        closeStack(stack, ts, durationNs, problems);
        begin(ts + durationNs);
        break;
      }
      case 'b': {
        const slice: PerfettoSlice = {
          name: name ?? '',
          category: cat,
          from: ts,
          to: undefined,
          tid,
          args: { ...args },
          parent: undefined,
        };
        const cookie = `${pid} ${String(name)} ${String(cat)} ${String(event.id)}`;
        if (asynchronous.has(cookie)) problems.push(`${cookie} begins within itself`);
        asynchronous.set(cookie, slice);
        allAsynchronous.push(slice);
        break;
      }
      case 'e': {
        const cookie = `${pid} ${String(name)} ${String(cat)} ${String(event.id)}`;
        const slice = asynchronous.get(cookie);
        if (slice === undefined) problems.push(`${cookie} ends but never began`);
        else {
          slice.to = ts;
          Object.assign(slice.args, args);
          asynchronous.delete(cookie);
        }
        break;
      }
    }
  }
  for (const { pid, tid, name } of tracks.values()) {
    if (name === '') problems.push(`track ${tid} has no name`);
    if (!processes.has(pid)) problems.push(`process ${pid} has no name`);
  }
  return { processes, tracks: [...tracks.values()], counters, asynchronous: allAsynchronous, problems };
}

/** A JSON array whose end may be missing, also within its last event; commas may trail. */
function parsed(text: string, problems: string[]): RawEvent[] {
  // Surrogates must stand as themselves: \\ud83d is an error that ends the import.
  if (/[^\\](\\\\)*\\u[dD][89a-fA-F]/.test(text)) problems.push('a surrogate is escaped');
  // Each of our events is a line.
  const complete = /[\]},]$/.test(text.trimEnd()) ? text.trimEnd().replace(/,$/, '') : text.slice(0, text.lastIndexOf(',\n'));
  try {
    return JSON.parse(complete.endsWith(']') ? complete : `${complete}]`) as RawEvent[];
  } catch (error) {
    problems.push(`not JSON: ${(error as Error).message}`);
    return [];
  }
}

/** Fields that an event of its kind must have, in the types that are read. */
function isEvent(event: RawEvent, problems: string[]): boolean {
  const { ph, ts, dur, pid, tid, id, name, args } = event;
  const isNumber = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value) && value >= 0;
  const isId = (value: unknown): boolean => Number.isInteger(value) && isNumber(value) && (value as number) < 2 ** 32;
  const wrong = [
    ...(['M', 'B', 'E', 'X', 'b', 'e', 'C'].includes(ph ?? '') ? [] : ['ph']),
    ...(ph === 'M' || isNumber(ts) ? [] : ['ts']),
    ...(ph !== 'X' || isNumber(dur) ? [] : ['dur']),
    ...(isId(pid) ? [] : ['pid']),
    ...((ph === 'M' && name === 'process_name' && tid === undefined) || isId(tid) ? [] : ['tid']),
    ...((ph !== 'b' && ph !== 'e') || (typeof id === 'string' && id !== '') ? [] : ['id']),
    // Perfetto would do without the name of an end; speedscope pairs by name and arguments.
    ...(typeof name === 'string' && name !== '' ? [] : ['name']),
    ...(args === undefined || (typeof args === 'object' && !Array.isArray(args)) ? [] : ['args']),
    ...(ph === 'M' && name?.endsWith('_name') === true && (typeof args?.['name'] !== 'string' || args['name'] === '')
      ? ['args.name']
      : []),
    ...(ph === 'M' && name === 'thread_sort_index' && !(Number(args?.['sort_index']) < 2 ** 31) ? ['args.sort_index'] : []),
  ];
  if (wrong.length > 0) problems.push(`${JSON.stringify(event)}: wrong ${wrong.join(', ')}`);
  return wrong.length === 0;
}

/** Takes slices off a track's stack that are over when something of `durationNs` (undefined: open) comes at `ts`. */
function closeStack(stack: PerfettoSlice[], ts: number, durationNs: number | undefined, problems: string[]): void {
  let hasOpenChild = false;
  for (let i = stack.length - 1; i >= 0; i--) {
    const slice = stack[i]!;
    if (slice.to === undefined) {
      hasOpenChild = true;
      continue;
    }
    if (hasOpenChild) {
      if (ts > slice.to) problems.push(`what is open in ${slice.name} is cut off at its end`);
      continue;
    }
    // Instants stack on each other; else what ends as another begins is over.
    const isOver = slice.to < ts || (slice.to === ts && !(slice.from === slice.to && durationNs === 0));
    if (isOver) stack.pop();
    else if (durationNs !== undefined && ts + durationNs > slice.to)
      problems.push(`a slice at ${ts} overlaps the end of ${slice.name}`);
  }
}
