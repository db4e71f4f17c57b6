import { spawn } from 'node:child_process';
import type { ServerResponse } from 'node:http';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { ownPath } from '../../own-module.js';
import { began, event, type LiveSource, Pages, problem } from './pages.js';

/** Jobs of tccl for pages: each message is a line of `tccl inspect --json`, or what it says where there is no job. */
export class InspectedJobs implements LiveSource {
  readonly #args: readonly string[];
  readonly #everyMs: number;
  readonly #pages = new Pages();
  #latest = '';

  /** @param job start of the id of a job, or a process of it; undefined for all jobs of this user */
  constructor(job: string | undefined, everyMs: number) {
    this.#args = ['inspect', ...(job === undefined ? [] : [job]), '--json', '--watch', '--every', `${everyMs}ms`];
    this.#everyMs = everyMs;
  }

  send(response: ServerResponse, headers: Readonly<Record<string, string>>): void {
    this.#pages.add(response, headers, this.#latest);
  }

  begin(): AbortController {
    return began((signal) => this.#run(signal));
  }

  /** `tccl inspect` ends with its jobs: it is started again for the next ones. */
  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const child = spawn(process.execPath, [ownPath('cli/main.js'), ...this.#args], { stdio: ['ignore', 'pipe', 'pipe'] });
      const end = () => child.kill();
      signal.addEventListener('abort', end, { once: true });
      const closed = new Promise<void>((resolve) => {
        child.once('close', () => resolve());
        child.once('error', () => resolve());
      });
      for (const stream of [child.stdout, child.stderr])
        createInterface({ input: stream }).on('line', (line) =>
          this.#write(line.startsWith('{') ? inspection(line) : problem(line)),
        );
      await closed;
      signal.removeEventListener('abort', end);
      await pause(this.#everyMs, undefined, { signal }).catch(() => undefined);
    }
  }

  #write(message: string): void {
    this.#latest = message;
    this.#pages.write(message);
  }
}

const inspection = (line: string) => `event: inspection\n${event(line)}`;
