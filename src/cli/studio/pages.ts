import type { ServerResponse } from 'node:http';

/** A source of server-sent events about running jobs. */
export interface LiveSource {
  /** Sends a page the events so far and those that follow. */
  send(response: ServerResponse, headers: Readonly<Record<string, string>>): void;
  /** Begins to ask; the controller ends it. */
  begin(): AbortController;
}

/** The pages that receive the events of a source. */
export class Pages {
  readonly #open = new Set<ServerResponse>();

  /** @param before the events so far; empty for none */
  add(response: ServerResponse, headers: Readonly<Record<string, string>>, before: string): void {
    response.writeHead(200, { ...headers, 'Content-Type': 'text/event-stream' });
    response.write(before || ': begun\n\n');
    this.#open.add(response);
    response.once('close', () => this.#open.delete(response));
  }

  write(text: string): void {
    for (const page of this.#open) page.write(text);
  }
}

/** Starts a loop; the controller ends it. */
export function began(run: (signal: AbortSignal) => Promise<void>): AbortController {
  const controller = new AbortController();
  void run(controller.signal);
  return controller;
}

/** A message of server-sent events: a line of text. */
export function event(line: string): string {
  return `data: ${line.replaceAll(/[\r\n]+/g, ' ')}\n\n`;
}

/** An event whose text a page shows in place of a report. */
export function problem(text: string): string {
  return `event: problem\n${event(text)}`;
}
