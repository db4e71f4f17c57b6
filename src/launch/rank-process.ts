import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** How a rank ended: with an exit code, by a signal, or not started at all. */
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
}

/**
 * One rank as a process that leads a process group (and session) of its own, so that whatever it starts can be
 * signalled and ended with it.
 *
 *     running ──► ended: the leader is gone, the rest of its group got SIGTERM
 *                   └──► closed: all of its output was read, nothing of the group is left
 */
export class RankProcess {
  readonly rank: number;
  /** Also the id of its process group; undefined when it could not be started. */
  readonly pid: number | undefined;
  readonly ended: Promise<Ending>;
  readonly closed: Promise<void>;
  readonly #child: ChildProcess;
  #running: boolean;

  constructor({ rank, command, args, env, stdio, graceMs }: RankProcessOptions) {
    const child = spawn(command, args, { env, stdio, detached: true });
    this.rank = rank;
    this.pid = child.pid;
    this.#child = child;
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
      await this.#endGroup(graceMs);
      await this.#drain(drained, graceMs);
    });
  }

  get running(): boolean {
    return this.#running;
  }

  get stdout(): ChildProcess['stdout'] {
    return this.#child.stdout;
  }

  get stderr(): ChildProcess['stderr'] {
    return this.#child.stderr;
  }

  /** Signals the rank and everything in its group. Nothing happens once it has ended. */
  signal(signal: NodeJS.Signals): void {
    if (this.#running) this.#signalGroup(signal);
  }

  /** What the leader started and left running gets SIGTERM, and after the grace time SIGKILL. */
  async #endGroup(graceMs: number): Promise<void> {
    const deadline = performance.now() + graceMs;
    this.#signalGroup('SIGTERM');
    while (this.#signalGroup(0) && performance.now() < deadline) await delay(pollMs);
    this.#signalGroup('SIGKILL');
  }

  /**
   * Waits until all output was read. A process that moved to another group is not ours to end, yet it may hold the
   * pipes open for ever: they are dropped when nothing came for the grace time. Output that waits because our own
   * reader is slow does come.
   */
  async #drain(drained: Promise<void>, graceMs: number): Promise<void> {
    const pipes = [this.#child.stdout, this.#child.stderr].filter((stream) => stream instanceof Socket);
    const open = () => pipes.some((pipe) => !pipe.closed);
    let bytes = -1;
    let deadline = 0;
    while (open()) {
      const bytesNow = pipes.reduce((sum, pipe) => sum + pipe.bytesRead, 0);
      if (bytesNow !== bytes || pipes.some((pipe) => pipe.readableFlowing === false)) {
        bytes = bytesNow;
        deadline = performance.now() + graceMs;
      }
      if (performance.now() >= deadline) break;
      await Promise.race([drained, delay(pollMs)]);
    }
    for (const pipe of pipes) pipe.destroy();
  }

  /** False when the group has no member left. */
  #signalGroup(signal: NodeJS.Signals | 0): boolean {
    if (this.pid === undefined) return false;
    try {
      return process.kill(-this.pid, signal);
    } catch {
      return false; // ESRCH: all gone
    }
  }
}

/** How often a group that is being ended is looked at. */
const pollMs = 10;
