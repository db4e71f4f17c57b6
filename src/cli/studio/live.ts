import type { ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { describeError, TcclError } from '../../errors.js';
import type { RecordedReport } from '../../planner/log/live/recording.js';
import { type ReportSource, socketSource } from '../watch/source.js';
import { began, event, type LiveSource, Pages, problem } from './pages.js';

/** Reports at most that a page gets which is opened later, and their characters. */
const MOST_REPORTS = 200;
const MOST_CHARACTERS = 2 ** 26;
/** Seconds that RAS may take to collect. */
const COLLECT_SECONDS = 5;

/** Reports of running jobs for pages, as server-sent events: each is a line of the recording that `tccl watch` writes. */
export class LiveReports implements LiveSource {
  readonly #sources: readonly ReportSource[];
  readonly #everyMs: number;
  readonly #pages = new Pages();
  readonly #lines: string[] = [];
  #length = 0;

  /** @param targets as `tccl watch` takes them */
  constructor(targets: readonly string[], everyMs: number) {
    this.#sources = targets.map((target) => socketSource(target, COLLECT_SECONDS));
    this.#everyMs = everyMs;
  }

  send(response: ServerResponse, headers: Readonly<Record<string, string>>): void {
    this.#pages.add(response, headers, this.#lines.map(event).join(''));
  }

  begin(): AbortController {
    return began((signal) => this.#run(signal));
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const beganMs = performance.now();
      for (const source of this.#sources) await this.#ask(source, signal);
      await pause(Math.max(0, this.#everyMs - (performance.now() - beganMs)), undefined, { signal }).catch(() => undefined);
    }
  }

  async #ask(source: ReportSource, signal: AbortSignal): Promise<void> {
    try {
      const { text } = await source.ask(signal);
      const line: RecordedReport = { tcclWatch: 1, time: new Date().toISOString(), source: source.name, report: text };
      this.#add(JSON.stringify(line));
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof TcclError)) throw error;
      this.#pages.write(problem(describeError(error)));
    }
  }

  #add(line: string): void {
    this.#lines.push(line);
    this.#length += line.length;
    while (this.#lines.length > MOST_REPORTS || (this.#length > MOST_CHARACTERS && this.#lines.length > 2))
      this.#length -= this.#lines.shift()?.length ?? 0;
    this.#pages.write(event(line));
  }
}
