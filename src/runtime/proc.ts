import { readdirSync, readFileSync, readlinkSync } from '#platform/files';

/**
 * Text of a short file of /proc or /sys. Empty where it cannot be read: on another system, if it belongs to another user, or once
 * the process has ended.
 */
export function textOf(file: string): string {
  return attempt(() => readFileSync(file, 'utf8')) ?? '';
}

/** Names in a folder of /proc or /sys; none where {@link textOf} is empty. */
export function namesIn(folder: string): string[] {
  return attempt(() => readdirSync(folder)) ?? [];
}

/** Target of a link of /proc or /sys; undefined where {@link textOf} is empty. */
export function linkOf(link: string): string | undefined {
  return attempt(() => readlinkSync(link));
}

/** Ids of all processes that this one sees. */
export function processIds(proc = '/proc'): number[] {
  return namesIn(proc).flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
}

/** Path by which another process of this user opens a descriptor of a process. */
export function descriptorPath(pid: number, fd: number): string {
  return `/proc/${pid}/fd/${fd}`;
}

/** State of a process or thread, from its `stat`. */
interface ProcessStat {
  /** R, S, D, T (stopped), t (held by a debugger), Z (ended, not yet awaited) … */
  readonly state: string;
  readonly parent: number;
  readonly group: number;
  /** Its terminal, 0 for none, and the process group that gets the keys of that. */
  readonly terminal: number;
  readonly foreground: number;
  /** Processor time so far. */
  readonly cpuMs: number;
}

/** Unit of times in `stat`: 100 a second on every Linux. */
const TICK_MS = 10;

/** Reads a process: `folder` is /proc/PID, /proc/self or that of a thread. Undefined once it has ended, and without /proc. */
export function statOf(folder: string): ProcessStat | undefined {
  const stat = textOf(`${folder}/stat`);
  // The name, in brackets, may contain anything.
  const [state = '', ...numbers] = stat.slice(stat.lastIndexOf(') ') + 2).split(' ');
  const [parent = 0, group = 0, , terminal = 0, foreground = 0, , , , , , user = 0, system = 0] = numbers.map(Number);
  return stat === '' ? undefined : { state, parent, group, terminal, foreground, cpuMs: (user + system) * TICK_MS };
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
