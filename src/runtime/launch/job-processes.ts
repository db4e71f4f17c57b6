import { clockMs, sleep } from '../platform/platform.js';
import { processIds, textOf } from '../proc.js';
import { WatchClock } from '../progress/watch-clock.js';

/** Interval of checks whether the signalled processes have ended, milliseconds. */
const POLL_MS = 10;

/**
 * Finds the processes of a job by variables in their environment, which all processes that ranks start inherit.
 *
 * One session for each rank would be usual, but Linux schedules between sessions first (sched_autogroup): a rank that gives its
 * core away gets it back immediately (8 bytes among 8 ranks on 2 cores: 7 ms instead of 80 µs).
 *
 * A process that clears its environment leaves the job, unless it is a rank.
 */
export class JobProcesses {
  readonly #entries: readonly string[];

  constructor(variables: Readonly<Record<string, string>>) {
    this.#entries = Object.entries(variables).map(([name, value]) => `\0${name}=${value}\0`);
  }

  /** Ids of the job's processes, without this process. Empty while this process has no file descriptor left. */
  find(): number[] {
    const least = idsAscend() ? process.pid : 0;
    return processIds().filter((pid) => pid > least && pid !== process.pid && this.#has(pid));
  }

  /**
   * Signals all of them, and `known` even if its environment does not show the job: because it was cleared, or because the
   * process is just executing another program.
   */
  signal(signal: NodeJS.Signals, known: number): void {
    for (const pid of new Set([known, ...this.find()])) send(pid, signal);
  }

  /** SIGTERM, then SIGKILL for processes that remain after the grace time. Resolves when none is left. */
  async end(graceMs: number): Promise<void> {
    const asked = new Set<number>();
    const clock = new WatchClock(graceMs);
    const deadline = clock.look() + graceMs;
    for (let left = this.find(); left.length > 0; left = this.find()) {
      const late = clock.look() >= deadline;
      for (const pid of left) {
        if (late || !asked.has(pid)) send(pid, late ? 'SIGKILL' : 'SIGTERM');
        asked.add(pid);
      }
      await sleep(POLL_MS);
    }
  }

  #has(pid: number): boolean {
    const environment = `\0${textOf(`/proc/${pid}/environ`)}`;
    return this.#entries.every((entry) => environment.includes(entry));
  }
}

/** Time for which ids of processes cannot have gone through all numbers, milliseconds. */
const FRESH_MS = 1000;

/**
 * True if every process that began after this one has a higher id: the kernel gives ids in ascending order and has not begun
 * again. A short job then does not read the environment of every process of the host.
 */
function idsAscend(): boolean {
  // `0.20 0.18 0.12 1/80 11206`: the last number is the last id.
  return clockMs() <= FRESH_MS && Number(textOf('/proc/loadavg').trim().split(' ').at(-1)) > process.pid;
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // The process has ended meanwhile.
  }
}
