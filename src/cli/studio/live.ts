import type { ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { describeError, TcclError } from '../../errors.js';
import type { RecordedReport } from '../../planner/log/live/recording.js';
import { type ReportSource, socketSource } from '../watch/source.js';

/** Reports at most that a page gets which is opened later, and their characters. */
const MOST_REPORTS = 200;
const MOST_CHARACTERS = 2 ** 26;
/** Seconds that RAS may take to collect. */
const COLLECT_SECONDS = 5;

/** A source of server-sent events about running jobs. */
export interface LiveSource {
  /** Sends a page the events so far and those that follow. */
  send(response: ServerResponse, headers: Readonly<Record<string, string>>): void;
  /** Begins to ask; the controller ends it. */
  begin(): AbortController;
}

/** Reports of running jobs for pages, as server-sent events: each is a line of the recording that `tccl watch` writes. */
export class LiveReports implements LiveSource {
  readonly #sources: readonly ReportSource[];
  readonly #everyMs: number;
  readonly #pages = new Set<ServerResponse>();
  readonly #lines: string[] = [];
  #length = 0;

  /** @param targets as `tccl watch` takes them */
  constructor(targets: readonly string[], everyMs: number) {
    this.#sources = targets.map((target) => socketSource(target, COLLECT_SECONDS));
    this.#everyMs = everyMs;
  }

  send(response: ServerResponse, headers: Readonly<Record<string, string>>): void {
    response.writeHead(200, { ...headers, 'Content-Type': 'text/event-stream' });
    response.write(this.#lines.map(event).join('') || ': begun\n\n');
    this.#pages.add(response);
    response.once('close', () => this.#pages.delete(response));
  }

  begin(): AbortController {
    const controller = new AbortController();
    void this.#run(controller.signal);
    return controller;
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
      this.#write(`event: problem\n${event(describeError(error))}`);
    }
  }

  #add(line: string): void {
    this.#lines.push(line);
    this.#length += line.length;
    while (this.#lines.length > MOST_REPORTS || (this.#length > MOST_CHARACTERS && this.#lines.length > 2))
      this.#length -= this.#lines.shift()?.length ?? 0;
    this.#write(event(line));
  }

  #write(text: string): void {
    for (const page of this.#pages) page.write(text);
  }
}

/** A message of server-sent events: a line of text. */
export function event(line: string): string {
  return `data: ${line.replaceAll(/[\r\n]+/g, ' ')}\n\n`;
}
