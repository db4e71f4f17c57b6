import { excerpt } from '../lines/excerpt.js';
import type { LogLine, LogPlace } from '../lines/line.js';
import type { LoggedWarning } from './model.js';
import { ownText } from '../lines/own-text.js';

/** Limits of kinds of warnings, and of places of one. */
const KIND_LIMIT = 500;
const PLACE_LIMIT = 50;
/**
 * Number of lines of a warning's thread that are kept before and after it, and number of lines that are searched for those
 * before.
 */
const CONTEXT_LINES = 3;
const RECENT_LINES = 48;

interface Growing extends LoggedWarning {
  count: number;
  failed: boolean;
  wentOn: boolean;
  readonly places: LogPlace[];
  readonly ranks: string[];
  readonly before: string[];
  readonly after: string[];
}

/** Pattern of a connection that was made: the job continues in spite of an earlier warning. */
const CONNECTED = /\b(?:connected|accepted|established)\b(?! to be)/i;

/** Warnings without a rule, equal ones counted: a failing fabric writes the same line ten thousand times. */
export class WarningTracker {
  readonly #kinds = new Map<string, Growing>();
  readonly #recent: { readonly thread: string; readonly text: string }[] = [];
  #next = 0;
  /** By thread, the warning whose context is incomplete. */
  readonly #open = new Map<string, Growing>();
  /** By process, the warnings without a later report of a connection. */
  readonly #pending = new Map<string, Set<Growing>>();

  /** Keeps a line of NCCL as context of warnings before and after it. */
  pass(line: LogLine, thread: string): void {
    this.#recent[this.#next] = { thread, text: line.message };
    this.#next = (this.#next + 1) % RECENT_LINES;
    if (line.level !== 'WARN' && this.#pending.size > 0 && CONNECTED.test(line.message)) {
      for (const warning of this.#pending.get(processName(line)) ?? []) warning.wentOn = true;
      this.#pending.delete(processName(line));
    }
    if (this.#open.size === 0) return;
    const open = this.#open.get(thread);
    if (open === undefined) return;
    open.after.push(excerpt(line.message, 300));
    if (open.after.length >= CONTEXT_LINES) this.#open.delete(thread);
  }

  /** @param rank undefined or -1 where the line's communicator is not known */
  add(line: LogLine, rank: number | undefined, thread: string, place: LogPlace): void {
    const key = `${line.source?.replace(/:\d+$/, '') ?? ''} ${alike(line.message)}`;
    let known = this.#kinds.get(key);
    if (known === undefined) {
      if (this.#kinds.size >= KIND_LIMIT) return;
      known = {
        text: ownText(line.message),
        source: line.source,
        count: 0,
        failed: false,
        wentOn: false,
        places: [],
        ranks: [],
        before: this.#before(thread),
        after: [],
      };
      this.#kinds.set(key, known);
      if (line.source !== 'returned' && this.#open.size < KIND_LIMIT) this.#open.set(thread, known);
    }
    known.count++;
    known.wentOn = false;
    const process = processName(line);
    const pending = this.#pending.get(process);
    if (pending !== undefined) pending.add(known);
    else if (this.#pending.size < KIND_LIMIT) this.#pending.set(process, new Set([known]));
    if (known.places.length < PLACE_LIMIT) known.places.push(place);
    const who = rank === undefined || rank < 0 ? processName(line) : `rank ${rank}`;
    if (who !== '' && known.ranks.length < PLACE_LIMIT && !known.ranks.includes(who)) known.ranks.push(who);
  }

  /** A function that returned an error: the warning before it was fatal, if there is one. */
  addReturn(
    line: LogLine,
    { where, result }: { readonly where: string; readonly result: number },
    thread: string,
    place: LogPlace,
  ): void {
    // 7 is ncclInProgress, which is no error.
    if (result === 0 || result === 7) return;
    const open = this.#open.get(thread);
    if (open !== undefined) open.failed = true;
    this.add(
      { ...line, source: 'returned', message: `${where.replace(/:\d+$/, '')} gave back ${resultName(result)}` },
      undefined,
      thread,
      place,
    );
  }

  list(): LoggedWarning[] {
    return [...this.#kinds.values()];
  }

  #before(thread: string): string[] {
    const ordered = [...this.#recent.slice(this.#next), ...this.#recent.slice(0, this.#next)];
    return (
      ordered
        .filter((each) => each.thread === thread)
        // The last one is the warning itself.
        .slice(-CONTEXT_LINES - 1, -1)
        .map(({ text }) => excerpt(text, 300))
    );
  }
}

/** `node1:4000`, or nothing where the head of the line was stripped. */
export function processName({ host, pid, cudaDev }: LogLine): string {
  if (host !== '') return `${host}:${pid}`;
  return cudaDev < 0 ? '' : `device ${cudaDev}`;
}

const results = [
  'ncclSuccess',
  'ncclUnhandledCudaError',
  'ncclSystemError',
  'ncclInternalError',
  'ncclInvalidArgument',
  'ncclInvalidUsage',
  'ncclRemoteError',
  'ncclInProgress',
  'ncclTimeout',
];

function resultName(result: number): string {
  return results[result] ?? `error ${result}`;
}

/** The text without its variable parts: addresses, numbers. */
function alike(text: string): string {
  return text.slice(0, 300).replaceAll(/0x[0-9a-f]+|\d+/gi, '#');
}
