import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { InvalidArgumentError, SystemError } from '../../errors.js';
import { print, writeFile } from '../output.js';
import { InspectedJobs } from './inspected.js';
import { LiveReports } from './live.js';
import type { LiveSource } from './pages.js';
import { studioPage } from './page.js';

/** Options of `tccl studio`. */
export interface StudioOptions {
  readonly port?: string;
  /** False with `--no-open`. */
  readonly open: boolean;
  readonly out?: string;
  /** Addresses at which RAS of jobs answers, as `tccl watch` takes it. */
  readonly watch?: readonly string[];
  /** Jobs of tccl: a job as `tccl inspect` takes it, or true for all. */
  readonly inspect?: string | true;
  /** Milliseconds between two reports. */
  readonly every: number;
}

const ADDRESS = '127.0.0.1';
/** Path of the reports, beside the page. */
const EVENTS = 'events';

/** `tccl studio`: serves the page until it is interrupted, or writes it. */
export async function showStudio(names: readonly string[], options: StudioOptions): Promise<void> {
  const port = portOf(options.port);
  const live = liveOf(options);
  if (live !== undefined && options.out !== undefined)
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      '--watch and --inspect need a running server: leave --out away; tccl watch --record writes a file',
    );
  const { html: page, fragment } = studioPage(names);
  const html = live === undefined ? page : withEvents(page);
  if (options.out !== undefined) {
    writeFile(options.out, html);
    print(
      `${options.out}: the page, for any browser and without a network${fragment === '' ? '' : `; open it as ${options.out}${fragment}`}`,
    );
    return;
  }
  await serve(html, fragment, port, options.open, live);
}

function liveOf({ watch, inspect, every }: StudioOptions): LiveSource | undefined {
  if (watch !== undefined && inspect !== undefined)
    throw new InvalidArgumentError('ARGUMENT_TYPE', '--watch follows jobs of NCCL, --inspect those of tccl: give one of them');
  if (watch !== undefined) return new LiveReports(watch, every);
  return inspect === undefined ? undefined : new InspectedJobs(inspect === true ? undefined : inspect, every);
}

/** The page's policy then allows requests to its own server, which sends the reports. */
function withEvents(page: string): string {
  return page
    .replace("connect-src 'none'", "connect-src 'self'")
    .replace('<meta name="referrer"', `<meta name="tccl-events" content="${EVENTS}">\n<meta name="referrer"`);
}

function portOf(text: string | undefined): number {
  if (text === undefined) return 0;
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  throw new InvalidArgumentError('ARGUMENT_RANGE', `--port '${text}' must be a whole number from 0 to 65535`);
}

/** Only who knows the address with its token gets the page: other users of the host can connect to the port. */
async function serve(html: string, fragment: string, port: number, opens: boolean, live: LiveSource | undefined): Promise<void> {
  const path = `/${randomBytes(16).toString('hex')}/`;
  const server = createServer((request, response) => {
    if (live !== undefined && request.url === path + EVENTS && request.method === 'GET') live.send(response, headers);
    else answer(request, response, path, html);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why = error.code === 'EADDRINUSE' ? 'another program listens there; leave --port out for a free one' : error.message;
      reject(new SystemError('NETWORK', `cannot listen on ${ADDRESS}:${port}: ${why}`, { cause: error }));
    });
    server.listen(port, ADDRESS, resolve);
  });
  const bound = server.address();
  const url = `http://${ADDRESS}:${bound !== null && typeof bound === 'object' ? bound.port : port}${path}${fragment}`;
  print(`tccl studio: ${url}`, 'Press Ctrl-C to end it.');
  if (opens) openBrowser(url);
  const end = live?.begin();
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, resolve);
  });
  end?.abort();
  server.close();
  server.closeAllConnections();
}

const headers = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "frame-ancestors 'none'",
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
};

function answer(request: IncomingMessage, response: ServerResponse, path: string, html: string): void {
  const isPage = request.url === path && (request.method === 'GET' || request.method === 'HEAD');
  response.writeHead(isPage ? 200 : 404, { ...headers, 'Content-Type': `text/${isPage ? 'html' : 'plain'}; charset=utf-8` });
  response.end(request.method === 'HEAD' ? undefined : isPage ? html : 'not found\n');
}

/** Opens the address where there is a screen; the printed address is for all other places. */
function openBrowser(url: string): void {
  const opener = { darwin: ['open', url], win32: ['cmd', '/c', 'start', '', url] }[process.platform as string];
  const hasScreen = process.env['DISPLAY'] !== undefined || process.env['WAYLAND_DISPLAY'] !== undefined;
  const [command, ...args] = opener ?? (hasScreen ? ['xdg-open', url] : []);
  if (command === undefined) return;
  const child = spawn(command, args, { stdio: 'ignore', detached: true });
  child.on('error', () => undefined); // there is no such program: the address was printed
  child.unref();
}
