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
  /**
   * Another line begins within this one, or this one began within another: what it says first can be trusted, what
   * it ends with cannot.
   */
  readonly torn: boolean;
}

/** Hosts and processes met so far: what a torn line's host must be among. */
export interface KnownProcesses {
  hasHost(host: string): boolean;
  /** The host of a process with this number whose name ends as `text` does, or that `text` ends with. */
  hostLike(text: string, pid: number): string | undefined;
}

const marker = /NCCL (INFO|WARN) /g;
/** The head of a line, up to its marker. Launchers write their prefix directly before it: it ends with a colon. */
const head = /(\S{1,255}):(\d{1,10}):(\d{1,10}) \[(-?\d{1,4})\] (?:(\S{1,200}:\d{1,6}) (?:\([^)]{1,80}\) )?)?$/;
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
  if (!text.includes('NCCL ')) return [];
  const plain = text.includes('\u001b') ? text.replace(colours, '') : text;
  const starts: { readonly at: number; readonly messageAt: number; readonly match: RegExpExecArray; readonly level: 'INFO' | 'WARN' }[] = [];
  let isBroken = false;
  for (const found of plain.matchAll(marker)) {
    const before = plain.slice(Math.max(0, found.index - headLength), found.index);
    const match = head.exec(before);
    if (match === null) {
      isBroken = true;
      continue;
    }
    starts.push({ at: found.index - before.length + match.index, messageAt: found.index + found[0].length, match, level: found[1] === 'WARN' ? 'WARN' : 'INFO' });
  }
  if (starts.length === 0) return isBroken ? undefined : [];
  const torn = isBroken || starts.length > 1;
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

/** The host's name at the end of what stands before the process number. */
function hostIn(text: string, pid: number, isWithinLine: boolean, known: KnownProcesses): { readonly name: string; readonly torn: boolean } | undefined {
  const name = text.slice(text.lastIndexOf(':') + 1).replace(/^\[[^\]]*\]/, '');
  if (known.hasHost(name)) return { name, torn: false };
  const like = known.hostLike(name, pid);
  if (like !== undefined) return { name: like, torn: true };
  return isWithinLine || name === '' ? undefined : { name, torn: false };
}
