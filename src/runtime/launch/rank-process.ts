import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { WatchClock } from '../progress/watch-clock.js';
import type { JobProcesses } from './job-processes.js';

/** End of a rank: an exit code, a signal, or a failure to start. */
export type Ending =
  | { readonly kind: 'code'; readonly code: number }
  | { readonly kind: 'signal'; readonly signal: NodeJS.Signals }
  | { readonly kind: 'unstarted'; readonly error: Error };

export interface RankProcessOptions {
  readonly rank: number;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly stdio: StdioOptions;
  /** Time from SIGTERM to SIGKILL for what the rank leaves behind, milliseconds. */
  readonly graceMs: number;
  /** The rank and what it starts. */
  readonly processes: JobProcesses;
}

/**
 * One rank as a process, with whatever it starts.
 *
 *     running ──► ended: the process is gone
 *                   └──► closed: all of its output was read; what it left behind with a hold on it was ended
 */
export class RankProcess {
  readonly rank: number;
  /** Undefined when it could not be started. */
  readonly pid: number | undefined;
  readonly ended: Promise<Ending>;
  readonly closed: Promise<void>;
  readonly #child: ChildProcess;
  readonly #processes: JobProcesses;
  #running: boolean;

  constructor({ rank, command, args, env, stdio, graceMs, processes }: RankProcessOptions) {
    const child = spawn(command, args, { env, stdio });
    this.rank = rank;
    this.pid = child.pid;
    this.#child = child;
    this.#processes = processes;
    this.#running = child.pid !== undefined;
    this.ended = new Promise((resolve) => {
      child.once('error', (error) => resolve({ kind: 'unstarted', error }));
      child.once('exit', (code, signal) => {
        this.#running = false;
        resolve(signal === null ? { kind: 'code', code: code ?? 0 } : { kind: 'signal', signal });
      });
    });
    const drained = new Promise<void>((resolve) => child.once('close', () => resolve()));
    this.closed = this.ended.then(async () => {
      if (this.pid === undefined) return;
      // Output that stays open is held by something that the rank left behind.
      const open = await Promise.race([drained.then(() => false), delay(LINGER_MS, true, { ref: false })]);
      if (open) await processes.end(graceMs);
      await this.#drain(drained, graceMs);
    });
  }

  get running(): boolean {
    return this.#running;
  }

  get stdout(): Readable | undefined {
    return this.#child.stdout ?? undefined;
  }

  get stderr(): Readable | undefined {
    return this.#child.stderr ?? undefined;
  }

  /** Signals the rank and everything it started. Nothing happens once it has ended. */
  signal(signal: NodeJS.Signals): void {
    if (this.#running && this.pid !== undefined) this.#processes.signal(signal, this.pid);
  }

  /**
   * Waits until all output was read. A process that left the job is not ours to end, yet it may hold the pipes
   * open for ever: they are dropped when nothing came for the grace time. Output that waits because our own
   * reader is slow does come.
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
      await Promise.race([drained, delay(POLL_MS)]);
    }
    for (const pipe of pipes) pipe.destroy();
  }
}

/** Interval at which open output is checked, milliseconds. */
const POLL_MS = 10;
/** Time that output may stay open after the end of its rank before a child process is suspected of holding it, milliseconds. */
const LINGER_MS = 100;
