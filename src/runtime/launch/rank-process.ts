import { spawn, type ChildProcess, type StdioOptions } from '#platform/processes';
import { Socket, type Readable, type Writable } from '#platform/streams';
import { sleep } from '../platform/platform.js';
import { WatchClock } from '../progress/watch-clock.js';
import type { JobProcesses } from './job-processes.js';

/** End of a rank: with an exit code, by a signal, because it could not be started, or because its host was lost. */
export type Ending =
  | { readonly kind: 'code'; readonly code: number }
  | { readonly kind: 'signal'; readonly signal: NodeJS.Signals }
  | { readonly kind: 'unstarted'; readonly message: string }
  /** All ranks of the host have the same object. */
  | { readonly kind: 'lost'; readonly reason: string };

export interface RankProcessOptions {
  readonly rank: number;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly stdio: StdioOptions;
  /** Its working directory; default: this process's. */
  readonly directory?: string | undefined;
  /** Time from SIGTERM to SIGKILL for processes that the rank leaves behind, milliseconds. */
  readonly graceMs: number;
  /** The rank and all processes that it started. */
  readonly processes: JobProcesses;
}

/**
 * One rank as a process, with all processes that it started.
 *
 *     running ──► ended: the process is gone
 *                   └──► closed: all its output was read; processes that it left behind and that held the output open were ended
 */
export class RankProcess {
  readonly rank: number;
  /** Undefined if it could not be started. */
  readonly pid: number | undefined;
  readonly ended: Promise<Ending>;
  readonly closed: Promise<void>;
  readonly #child: ChildProcess;
  readonly #processes: JobProcesses;
  #running: boolean;

  constructor({ rank, command, args, env, stdio, directory, graceMs, processes }: RankProcessOptions) {
    const child = spawn(command, args, { env, stdio, cwd: directory });
    this.rank = rank;
    this.pid = child.pid;
    this.#child = child;
    this.#processes = processes;
    this.#running = child.pid !== undefined;
    this.ended = new Promise((resolve) => {
      child.once('error', (error) => resolve({ kind: 'unstarted', message: `${error.message}${remedyOf(error)}` }));
      child.once('exit', (code, signal) => {
        this.#running = false;
        resolve(signal === null ? { kind: 'code', code: code ?? 0 } : { kind: 'signal', signal });
      });
    });
    const drained = new Promise<void>((resolve) => child.once('close', () => resolve()));
    this.closed = this.ended.then(async () => {
      if (this.pid === undefined) return;
      // If the output is still open, a process that the rank left behind holds it.
      const open = await Promise.race([drained.then(() => false), sleep(LINGER_MS, { ref: false }).then(() => true)]);
      if (open) await processes.end(graceMs);
      await this.#drain(drained, graceMs);
    });
  }

  get running(): boolean {
    return this.#running;
  }

  get stdin(): Writable | undefined {
    return this.#child.stdin ?? undefined;
  }

  get stdout(): Readable | undefined {
    return this.#child.stdout ?? undefined;
  }

  get stderr(): Readable | undefined {
    return this.#child.stderr ?? undefined;
  }

  /** Signals the rank and all processes that it started. Does nothing once the rank has ended. */
  signal(signal: NodeJS.Signals): void {
    if (this.#running && this.pid !== undefined) this.#processes.signal(signal, this.pid);
  }

  /**
   * Waits until all output was read. A process that left the job may hold the pipes open; they are closed when nothing was
   * written for the grace time.
   */
  async #drain(drained: Promise<void>, graceMs: number): Promise<void> {
    const pipes = [this.#child.stdout, this.#child.stderr].filter((stream) => stream instanceof Socket);
    const open = () => pipes.some((pipe) => !pipe.closed);
    let bytes = -1;
    const clock = new WatchClock(graceMs);
    let deadline = 0;
    while (open()) {
      const bytesNow = pipes.reduce((sum, pipe) => sum + pipe.bytesRead, 0);
      if (bytesNow !== bytes || pipes.some((pipe) => pipe.readableFlowing === false)) {
        bytes = bytesNow;
        deadline = clock.look() + graceMs;
      }
      if (clock.look() >= deadline) break;
      await Promise.race([drained, sleep(POLL_MS)]);
    }
    for (const pipe of pipes) pipe.destroy();
  }
}

function remedyOf({ code }: NodeJS.ErrnoException): string {
  if (code === 'EMFILE') return ': each rank takes two file descriptors of tccl run; raise the limit (ulimit -n)';
  if (code === 'EAGAIN') return ': this user may have no more processes (ulimit -u)';
  return '';
}

/** Interval at which open output is checked, milliseconds. */
const POLL_MS = 10;
/** Time that output may stay open after a rank's end before a child process is suspected of holding it, milliseconds. */
const LINGER_MS = 100;
