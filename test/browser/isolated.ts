import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium, type Page } from 'playwright-core';
import { browser as browserPath } from './chromium.js';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const types: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.wasm': 'application/wasm',
};
/** Headers with which a page is isolated. */
export const isolating = { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' };

/** A browser, and a server of pages that are isolated from other origins, so that their workers share memory. */
export class IsolatedPages {
  readonly #server: Server;
  readonly #browser: Browser;
  /** Texts by path, before files of the repository. */
  readonly files = new Map<string, string>([['/', '<!doctype html><title>ranks</title><link rel="icon" href="data:,">']]);
  /** Folders by the beginning of a path. */
  readonly folders = new Map<string, string>([['/dist/', join(repository, 'dist')]]);
  /** Headers of all answers. */
  headers: Readonly<Record<string, string>> = isolating;

  private constructor(server: Server, browser: Browser) {
    this.#server = server;
    this.#browser = browser;
    server.on('request', ({ url = '/' }, response) => {
      const path = url.replace(/\?.*/, '');
      const found = this.#find(path === '/' || !path.endsWith('/') ? path : `${path}index.html`);
      const type = types[extname(path)] ?? 'text/html';
      response.writeHead(found === undefined ? 404 : 200, { ...this.headers, 'Content-Type': type });
      response.end(found);
    });
  }

  /** @param ofGpu flags for the GPU */
  static async open(ofGpu: readonly string[] = ['--disable-gpu']): Promise<IsolatedPages> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const browser = await chromium.launch({
      timeout: 0,
      executablePath: browserPath?.startsWith('/') === true ? browserPath : `/usr/bin/${browserPath ?? ''}`,
      args: ['--no-sandbox', ...ofGpu, '--disable-background-networking', '--disable-component-update', '--disable-sync'],
    });
    return new IsolatedPages(server, browser);
  }

  /** Opens a page of the server, and collects what its console says. */
  async page(path = '/'): Promise<Page & { readonly complaints: string[] }> {
    const { port } = this.#server.address() as AddressInfo;
    const context = await this.#browser.newContext();
    context.setDefaultTimeout(0);
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.goto(`http://127.0.0.1:${port}${path}`);
    return Object.assign(page, { complaints });
  }

  async close(): Promise<void> {
    await this.#browser.close();
    this.#server.close();
  }

  #find(path: string): string | Buffer | undefined {
    const text = this.files.get(path);
    if (text !== undefined) return text;
    for (const [start, folder] of this.folders) {
      const file = join(folder, path.slice(start.length));
      if (path.startsWith(start) && existsSync(file) && statSync(file).isFile()) return readFileSync(file);
    }
    return undefined;
  }
}
