/** A place in the input: which file, by its position among those given, and which line, 1-based. */
export interface Place {
  readonly file: number;
  readonly line: number;
}

/** What NCCL wrote in one go: `host:pid:tid [cudaDev] NCCL INFO message`. */
export interface LogLine {
  readonly host: string;
  readonly pid: number;
  readonly tid: number;
  readonly cudaDev: number;
  readonly level: 'INFO' | 'WARN';
  /** `init.cc:327`, as warnings have it. */
  readonly source: string | undefined;
  readonly message: string;
  /** Another line begins within this one, or this one began within another: a third may have left a piece in it, too. */
  readonly torn: boolean;
}

/** Hosts and processes met so far: what a torn line's host must be among. */
export interface KnownProcesses {
  hasHost(host: string): boolean;
  /** The host of a process with this number whose name ends as `text` does, or that `text` ends with. */
  hostLike(text: string, pid: number): string | undefined;
  /** Whether this was asked of the name before. */
  isSeenAgain(host: string): boolean;
}

/** After an N: NCCL's own lines; after a T: those of tccl's ranks, which have the same shape. */
const marker = 'CCL ';
const levels = ['INFO', 'WARN'] as const;
/** The head of a line, up to its marker. Launchers write their prefix directly before it: it ends with a colon. */
const head = /(\S{1,255}):(\d{1,10}):(\d{1,10}) \[(-?\d{1,4})\] (?:(\S{1,200}:\d{1,6}) (?:\([^)]{1,80}\) )?)?$/;
/** What launchers put before a line without a space between. */
const launcherPrefix = /^(?:\[[^\]]*\](?:<[^>]*>)?:?|\d+:)?$/;
/** The longest head that is looked for. */
const headLength = 500;
const colours = /\u001b\[[0-9;]*m/g;

/**
 * The lines of NCCL in one line of text: none in an application's own, several where ranks wrote at once. What
 * launchers and collectors put before them (`[1,3]<stdout>:`, `3: `, `[rank3]:`, a timestamp) is passed over.
 *
 * @returns undefined where the text has NCCL's marker but no whole head before it
 */
export function readLine(text: string, known: KnownProcesses): LogLine[] | undefined {
  if (!text.includes(marker)) return [];
  const plain = text.includes('\u001b') ? text.replace(colours, '') : text;
  const starts: { readonly at: number; readonly messageAt: number; readonly match: RegExpExecArray; readonly level: 'INFO' | 'WARN' }[] = [];
  let isBroken = false;
  for (let at = plain.indexOf(marker); at >= 0; at = plain.indexOf(marker, at + marker.length)) {
    const level = levels.find((each) => plain.startsWith(`${each} `, at + marker.length));
    const writer = plain[at - 1];
    if (level === undefined || (writer !== 'N' && writer !== 'T')) continue;
    const before = plain.slice(Math.max(0, at - 1 - headLength), at - 1);
    const match = head.exec(before);
    if (match === null) {
      isBroken = true;
      continue;
    }
    starts.push({ at: at - 1 - before.length + match.index, messageAt: at + marker.length + level.length + 1, match, level });
  }
  if (starts.length === 0) return isBroken ? undefined : [];
  const torn = isBroken || starts.length > 1 || holdsHead(plain.slice(0, starts[0]?.at), known);
  return starts.flatMap(({ messageAt, match, level }, index): LogLine[] => {
    const [, before = '', pid = '', tid = '', cudaDev = '', source] = match;
    const host = hostIn(before, Number(pid), index > 0, known);
    if (host === undefined) return [];
    const end = starts[index + 1]?.at ?? plain.length;
    return [{
      host: host.name, pid: Number(pid), tid: Number(tid), cudaDev: Number(cudaDev), level, source,
      message: plain.slice(messageAt, end).trimEnd(),
      torn: torn || host.torn,
    }];
  });
}

/** Whether a prefix is not a launcher's but the beginning of another line. */
function holdsHead(prefix: string, known: KnownProcesses): boolean {
  if (!prefix.includes(':')) return false;
  return [...prefix.matchAll(/([^\s:]{1,255}):\d{1,10}:\d{1,10} /g)].some(([, host = '']) => known.hasHost(host));
}

/** The host's name at the end of what stands before the process number. */
function hostIn(text: string, pid: number, isWithinLine: boolean, known: KnownProcesses): { readonly name: string; readonly torn: boolean } | undefined {
  const name = text.slice(text.lastIndexOf(':') + 1).replace(/^\[[^\]]*\]/, '');
  if (known.hasHost(name)) return { name, torn: false };
  const like = known.hostLike(name, pid);
  if (like !== undefined) return { name: like, torn: true };
  if (isWithinLine || name === '') return undefined;
  // `job.log:node1` is what grep writes; `node0:400node1` are two lines. The second comes once.
  const isPlain = launcherPrefix.test(text.slice(0, text.length - name.length));
  return isPlain || known.isSeenAgain(name) ? { name, torn: false } : undefined;
}
