export type { TextPlace as LogPlace } from '../../readers/section.js';

/** One message of NCCL: `host:pid:tid [cudaDev] NCCL INFO message`. */
export interface LogLine {
  /** Empty if the head was stripped, as in pasted excerpts. */
  readonly host: string;
  readonly pid: number;
  readonly tid: number;
  readonly cudaDev: number;
  readonly level: 'INFO' | 'WARN';
  /** `init.cc:327`, of warnings and of level ATTN. */
  readonly source: string | undefined;
  readonly message: string;
  /** True if another line begins within this one, or this one began within another; it may contain a piece of a third. */
  readonly torn: boolean;
}

/** NCCL's parts of a line of text. */
interface ReadLine {
  readonly lines: readonly LogLine[];
  /** Text before the first of them: a launcher's prefix, or half a line of another program. */
  readonly before: string;
  /** True if NCCL's marker has no head or an incomplete one. */
  readonly broken: boolean;
  /** True if the line is NCCL's, of a kind that is not read (CALL, TRACE). */
  readonly other: boolean;
}

/** Hosts and processes so far, among which a torn line's host must be. */
export interface KnownProcesses {
  hasHost(host: string): boolean;
  /** True if any line had a head with a host. */
  hasHosts(): boolean;
  /** The host of a process with this number whose name ends as `text` does, or that `text` ends with. */
  hostLike(text: string, pid: number): string | undefined;
  /** True if the name was asked for before. */
  isSeenAgain(host: string): boolean;
}

/** After an N: NCCL's own lines; after a T: those of tccl's ranks, which have the same shape. */
const MARKER = 'CCL ';
/** The head of a line, up to its marker. Launchers write their prefix directly before it: it ends with a colon. */
const head = /(\S{1,255}):(\d{1,10}):(\d{1,10}) \[(-?\d{1,4})\] (?:(\S{1,200}:\d{1,6}) (?:\([^)]{1,80}\) )?)?$/;
/** Remains of a line whose host and process were stripped: a device, and the source of a warning. */
const strippedHead = /(?:^|\s)(?:\[(-?\d{1,4})\] )?(?:(\S{1,200}:\d{1,6}) (?:\([^)]{1,80}\) )?)?$/;
const callHead = /:\d{1,10}:\d{1,10} (?:\[-?\d{1,4}\] )?(?:\S{1,40} )?(?:\S{1,200}:\d{1,6} )?$/;
/** Prefix of launchers, collectors and grep without a space before the line; it ends with a mark, not with a letter. */
const launcherPrefix =
  /^(?:\[[^\]]{0,200}\](?:<[^>]{0,50}>)?:?|\d+:|.{0,250}[|",>)\]'`=;]|[\w./-]{1,200}\.(?:log|txt|out|err)[\w.-]{0,40}:(?:\d{1,9}:)?)?$/;
const gluedTime = /^\[?\d{4}-\d\d-\d\d[T_ ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?/;
/** The longest head that is looked for, and the most lines of NCCL in one line of text. */
const HEAD_LENGTH = 500;
const MARKER_LIMIT = 100;
/** The longest name of a host with what stands directly before it. */
const HOST_LENGTH = 255;
const SPACE = 32;
const COLON = 58;
// Colours, and the other controls that terminals get: erase, cursor.
const controls = /\u001b\[[0-9;?]{0,20}[A-Za-z]/g;

const nothing: ReadLine = { lines: [], before: '', broken: false, other: false };

/** A text without the controls that colour it on a terminal. */
export function withoutColours(text: string): string {
  return text.includes('\u001b') ? text.replace(controls, '') : text;
}

/** Matches the source of a warning that stands alone before it. */
const sourceHead = /(?:^|\s)\S{1,200}\.(?:h|cc|cu|c):\d{1,6} $/;

/** A line of NCCL up to 2.3, which lacks the marker, with it; any other text as it is. */
export function withMarker(plain: string): string {
  if (plain.includes(MARKER)) return plain;
  const level = plain.includes(' WARN ') ? ' WARN ' : '] INFO ';
  const at = plain.indexOf(level);
  if (at < 0) return plain;
  const end = at + level.length - 'WARN '.length;
  const before = plain.slice(Math.max(0, end - HEAD_LENGTH), end);
  return head.test(before) || (level === ' WARN ' && sourceHead.test(before))
    ? `${plain.slice(0, end)}NCCL ${plain.slice(end)}`
    : plain;
}

/**
 * The lines of NCCL in one line of text: none in an application's own, several where ranks wrote at the same time. Prefixes of
 * launchers and collectors (`[1,3]<stdout>:`, `3: `, `[rank3]:`, a timestamp) are skipped.
 */
export function readLine(plain: string, known: KnownProcesses): ReadLine {
  let at = plain.indexOf(MARKER);
  if (at < 0) return nothing;
  const starts: Start[] = [];
  let broken = false;
  let other = false;
  for (let count = 0; at >= 0 && count < MARKER_LIMIT; at = plain.indexOf(MARKER, at + MARKER.length), count++) {
    const writer = plain[at - 1];
    if (writer !== 'N' && writer !== 'T') continue;
    const level = levelAt(plain, at + MARKER.length);
    if (level === undefined) continue;
    const messageAt = at + MARKER.length + level.length + 1;
    const quick = level === 'CALL' ? undefined : headWithoutSource(plain, at - 1);
    if (quick !== undefined) {
      starts.push({ head: quick, messageAt, level: level as 'INFO' | 'WARN' });
      continue;
    }
    const before = plain.slice(Math.max(0, at - 1 - HEAD_LENGTH), at - 1);
    if (level === 'CALL') {
      if (callHead.test(before)) other = true;
      continue;
    }
    const found = headAtEnd(before, at - 1 - before.length);
    if (found !== undefined) starts.push({ head: found, messageAt, level });
    else if (starts.length === 0 && isStripped(before, level, known)) return stripped(plain, before, at, level);
    else broken = true;
  }
  if (starts.length === 0) return broken || other ? { lines: [], before: '', broken, other } : nothing;
  return cutAtStarts(plain, starts, broken, known);
}

interface Start {
  readonly head: Head;
  readonly messageAt: number;
  readonly level: 'INFO' | 'WARN';
}

/** `host:pid:tid [cudaDev] source:line ` before a marker. */
interface Head {
  readonly at: number;
  /** The host, behind what a launcher wrote directly before it. */
  readonly host: string;
  readonly pid: number;
  readonly tid: number;
  readonly cudaDev: number;
  readonly source: string | undefined;
}

function headAtEnd(before: string, offset: number): Head | undefined {
  const match = head.exec(before);
  if (match === null) return undefined;
  const [, host = '', pid, tid, cudaDev, source] = match;
  return { at: offset + match.index, host, pid: Number(pid), tid: Number(tid), cudaDev: Number(cudaDev), source };
}

/** A head that ends with `] `, as most do: read backwards, which takes a fifth of the pattern's time. */
function headWithoutSource(plain: string, end: number): Head | undefined {
  if (plain.charCodeAt(end - 1) !== SPACE || plain.charCodeAt(end - 2) !== 93 /* ] */) return undefined;
  const deviceAt = digitsBefore(plain, end - 2, 4);
  const isNegative = plain.charCodeAt(deviceAt - 1) === 45; /* - */
  const bracket = isNegative ? deviceAt - 2 : deviceAt - 1;
  if (deviceAt === end - 2 || plain.charCodeAt(bracket) !== 91 /* [ */ || plain.charCodeAt(bracket - 1) !== SPACE)
    return undefined;
  const tidAt = digitsBefore(plain, bracket - 1, 10);
  if (tidAt === bracket - 1 || plain.charCodeAt(tidAt - 1) !== COLON) return undefined;
  const pidAt = digitsBefore(plain, tidAt - 1, 10);
  if (pidAt === tidAt - 1 || plain.charCodeAt(pidAt - 1) !== COLON) return undefined;
  let at = pidAt - 1;
  for (const least = Math.max(0, at - HOST_LENGTH); at > least && plain.charCodeAt(at - 1) < 128; at--)
    if (plain.charCodeAt(at - 1) <= SPACE) break;
  // A name with other letters, or none: rare, and the pattern decides.
  if (at === pidAt - 1 || plain.charCodeAt(at - 1) > 127) return undefined;
  return {
    at,
    host: plain.slice(at, pidAt - 1),
    pid: Number(plain.slice(pidAt, tidAt - 1)),
    tid: Number(plain.slice(tidAt, bracket - 1)),
    cudaDev: Number(plain.slice(bracket + 1, end - 2)),
    source: undefined,
  };
}

/** The place where a row of at most `most` digits begins that ends before `end`; `end` where there is none. */
function digitsBefore(text: string, end: number, most: number): number {
  let at = end;
  for (; end - at < most; at--) {
    const code = text.charCodeAt(at - 1);
    if (!(code >= 48 && code <= 57)) break;
  }
  return at;
}

function levelAt(text: string, at: number): 'INFO' | 'WARN' | 'CALL' | undefined {
  // ATTN, since 2.32.3, is less than a warning, and has a source as that.
  if (text.startsWith('INFO ', at) || text.startsWith('ATTN ', at)) return 'INFO';
  if (text.startsWith('WARN ', at)) return 'WARN';
  return text.startsWith('CALL ', at) || text.startsWith('TRACE ', at) ? 'CALL' : undefined;
}

/** A warning is read with any prefix; other lines without a head only in a log in which no line has one. */
function isStripped(before: string, level: 'INFO' | 'WARN', known: KnownProcesses): boolean {
  return level === 'WARN' || (!known.hasHosts() && /^\s*(?:\[-?\d{1,4}\] )?$/.test(before));
}

function stripped(plain: string, before: string, at: number, level: 'INFO' | 'WARN'): ReadLine {
  const [, device, source] = strippedHead.exec(before) ?? [];
  const cudaDev = device === undefined ? -1 : Number(device);
  return {
    lines: [
      {
        host: '',
        pid: 0,
        tid: cudaDev,
        cudaDev,
        level,
        source,
        message: plain.slice(at + MARKER.length + level.length + 1).trimEnd(),
        torn: false,
      },
    ],
    before: '',
    broken: false,
    other: false,
  };
}

function cutAtStarts(plain: string, starts: readonly Start[], broken: boolean, known: KnownProcesses): ReadLine {
  const [first] = starts;
  const torn = broken || starts.length > 1 || holdsHead(plain.slice(0, first?.head.at), known);
  let beforeEnd = first?.head.at ?? 0;
  const lines = starts.flatMap(({ messageAt, head: { host: before, pid, tid, cudaDev, source }, level }, index): LogLine[] => {
    const host = hostIn(before, pid, index > 0, known);
    const end = starts[index + 1]?.head.at ?? plain.length;
    const message = plain.slice(messageAt, end).trimEnd();
    if (host === undefined) {
      return level === 'WARN' ? [{ host: '', pid: 0, tid: 0, cudaDev, level, source, message, torn: true }] : [];
    }
    if (index === 0) beforeEnd += before.length - host.name.length;
    return [{ host: host.name, pid, tid, cudaDev, level, source, message, torn: torn || host.torn }];
  });
  return { lines, before: plain.slice(0, Math.max(0, beforeEnd)), broken: false, other: false };
}

/** True if a prefix is not a launcher's but the beginning of another line. */
function holdsHead(prefix: string, known: KnownProcesses): boolean {
  if (!prefix.includes(':')) return false;
  return [...prefix.slice(-4 * HEAD_LENGTH).matchAll(/([^\s:]{1,255}):\d{1,10}:\d{1,10} /g)].some(([, host = '']) =>
    known.hasHost(host),
  );
}

/** The host's name at the end of the text before the process number. */
function hostIn(
  text: string,
  pid: number,
  isWithinLine: boolean,
  known: KnownProcesses,
): { readonly name: string; readonly torn: boolean } | undefined {
  if (known.hasHost(text)) return { name: text, torn: false };
  const untimed = text.replace(gluedTime, '');
  const [name] = /[\w.-]{0,255}$/.exec(untimed) ?? [''];
  if (known.hasHost(name)) return { name, torn: false };
  const like = known.hostLike(name, pid);
  if (like !== undefined) return { name: like, torn: true };
  if (isWithinLine || name === '') return undefined;
  // grep writes `job.log:node1`; `node0:400node1` are two lines, and such a name occurs only once.
  const isPlain = launcherPrefix.test(untimed.slice(0, untimed.length - name.length));
  return isPlain || known.isSeenAgain(name) ? { name, torn: false } : undefined;
}
