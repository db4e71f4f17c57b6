import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isThorough } from '../runs.js';
import { browser as browserPath, missing } from './chromium.js';
import { eventually } from './eventually.js';

const reason = !isThorough
  ? ' (needs: TCCL_TEST_ALL=1)'
  : existsSync('site/node_modules/vitepress')
    ? missing
    : ' (needs: npm ci --ignore-scripts --prefix site)';
const types: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };

describe.skipIf(reason !== '')(`site of the documentation${reason}`, () => {
  let server: Server;
  let browser: Browser;
  let page: Page;
  const complaints: string[] = [];

  beforeAll(async () => {
    execFileSync(process.execPath, ['site/build.mjs'], { stdio: 'pipe' });
    server = createServer((request, response) => {
      const path = join('build/docs', new URL(request.url ?? '/', 'http://site').pathname.replace(/\/$/, '/index.html'));
      if (!existsSync(path)) return void response.writeHead(404).end();
      response.writeHead(200, { 'content-type': types[extname(path)] ?? 'application/octet-stream' }).end(readFileSync(path));
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    browser = await chromium.launch({
      timeout: 0,
      executablePath: browserPath!.startsWith('/') ? browserPath! : `/usr/bin/${browserPath!}`,
      args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
    });
    page = await browser.newPage();
    page.setDefaultTimeout(0);
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('requestfailed', (request) => {
      // The site fetches pages in advance, and the browser drops those of a page that is left.
      const reason = request.failure()?.errorText;
      if (reason !== 'net::ERR_ABORTED') complaints.push(`${request.url()}: ${reason}`);
    });
  });
  afterAll(async () => {
    await browser.close();
    server.close();
  });
  const open = (path: string) => page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`);

  it('begins with the README, and shows the version', async () => {
    await open('/');
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    await eventually(() => page.locator('h1').first().textContent()).toContain('tccl');
    await eventually(() => page.locator('.VPNav').textContent()).toContain(`version ${version}`);
    expect(complaints).toEqual([]);
  });

  it('finds a page by its words', async () => {
    await open('/');
    await page.locator('.VPNavBarSearch button').click();
    await page.locator('.VPLocalSearchBox input').fill('TCCL_INIT_TIMEOUT');
    await page.locator('.VPLocalSearchBox .result').first().click();
    await page.waitForURL(/reference|guides/);
    // The address changes before the page is drawn.
    await eventually(() => page.locator('main').textContent()).toContain('TCCL_INIT_TIMEOUT');
    expect(complaints).toEqual([]);
  });

  it('changes between light and dark', async () => {
    await open('/reference/init.html');
    const isDark = () => page.evaluate<boolean>("document.documentElement.classList.contains('dark')");
    const before = await isDark();
    await page.locator('.VPNavBarAppearance button').click();
    expect(await isDark()).toBe(!before);
  });

  it.each([
    ['index', 'tccl'],
    ['planner/index', 'tccl/planner'],
    ['ddp/index', 'tccl/ddp'],
    ['browser/index', 'tccl/browser'],
  ])('has every public name of dist/%s.d.ts', (module, name) => {
    const exported = [...readFileSync(`dist/${module}.d.ts`, 'utf8').matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(
      ([, list = '']) => list.split(',').flatMap((item) => item.trim().split(/\s+/).at(-1) || []),
    );
    expect(exported.length).toBeGreaterThan(5);
    const headings = [...readFileSync(`build/docs/api/${name}.html`, 'utf8').matchAll(/<h[23] [^>]*>(.*?) ?<a /g)].map(
      ([, text = '']) =>
        text
          .replace(/<[^>]*>/g, '')
          .replace(/^.* /, '')
          .replace(/\W.*$/, ''),
    );
    expect(exported.filter((found) => !headings.includes(found))).toEqual([]);
  });

  it('names limits and errors of calls', () => {
    const html = readFileSync('build/docs/api/tccl.html', 'utf8');
    expect(html).toMatch(/Time to wait for the other ranks, milliseconds/);
  });
});
