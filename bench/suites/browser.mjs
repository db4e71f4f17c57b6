/**
 * Ranks as workers of a page in headless Chromium beside ranks as threads of Node.js, in turn: the same all-reduces in place, on
 * arrays in shared memory, by the blocking API, many calls in a sample.
 *
 * @module
 */
import { execFileSync } from 'node:child_process';
import { createReadStream } from 'node:fs';
import { createServer } from 'node:http';
import { chromium } from 'playwright-core';
import { formatSize } from '../../dist/perf/sizes.js';
import { spawnRanks } from '../../dist/index.js';
import { messageOf } from '../lib/suite.mjs';
import { formatUs, table, verdict } from '../lib/table.mjs';
import { browserTarget } from '../lib/targets.mjs';

/** @typedef {import('../lib/suite.mjs').Context} Context */
/** @typedef {{ bytes: number, least: number, median: number }[]} Times */

export const title = 'workers of a page beside threads of Node.js';

const repository = new URL('../../', import.meta.url);

/** @param {Context} context */
export async function run({ options, record, progress, note }) {
  const { sizes, seconds, rounds } = options;
  let page;
  try {
    page = await openPage();
  } catch (error) {
    note(`browser: ${messageOf(error)}`);
    return;
  }
  for (let round = 0; round < rounds; round++)
    for (const ranks of options.ranks)
      for (const [where, measure] of /** @type {const} */ ([
        ['page', page.measure],
        ['node', inThreads],
      ])) {
        progress(`round ${round + 1}/${rounds}, ${ranks} ranks in ${where}`);
        for (const line of await measure(ranks, sizes, seconds)) record({ browser: where, ranks, ...line });
      }
  await page.close();
}

/** @param {number} ranks @param {readonly number[]} sizes @param {number} seconds @returns {Promise<Times>} */
async function inThreads(ranks, sizes, seconds) {
  /** @type {Times} */
  let found = [];
  await spawnRanks(ranks, new URL('../ranks/page-thread.mjs', import.meta.url), {
    workerData: { sizes, seconds },
    onMessage: (message) => (found = /** @type {Times} */ (message)),
  });
  return found;
}

/** A page that is isolated from other origins, so that its workers share memory. */
async function openPage() {
  const executablePath = execFileSync('sh', ['-c', 'command -v chromium chromium-browser google-chrome | head -1'], {
    encoding: 'utf8',
  }).trim();
  const server = createServer(({ url = '/' }, response) => {
    const path = url.replace(/\?.*/, '');
    response.writeHead(200, {
      'Content-Type': path === '/' ? 'text/html' : 'text/javascript',
      'Cross-Origin-Opener-Policy': 'same-origin',
      'Cross-Origin-Embedder-Policy': 'require-corp',
    });
    if (path === '/') response.end('<!doctype html><title>bench</title><link rel="icon" href="data:,">');
    else
      createReadStream(new URL(`.${path}`, repository))
        .on('error', () => response.destroy())
        .pipe(response);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  const address = /** @type {import('node:net').AddressInfo} */ (server.address());
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
  const page = await browser.newPage();
  page.setDefaultTimeout(0);
  await page.goto(`http://127.0.0.1:${address.port}/`);
  return {
    /** @param {number} ranks @param {readonly number[]} sizes @param {number} seconds @returns {Promise<Times>} */
    measure: (ranks, sizes, seconds) => {
      const rank = `/bench/ranks/page-worker.mjs?sizes=${JSON.stringify(sizes)}&seconds=${seconds}`;
      return page.evaluate(`(async () => {
        const { spawnRanks } = await import('/dist/browser/index.js');
        let found = [];
        await spawnRanks(${ranks}, ${JSON.stringify(rank)}, { onMessage: (message) => (found = message) });
        return found;
      })()`);
    },
    close: async () => {
      await browser.close();
      server.close();
    },
  };
}

export function report(/** @type {readonly Record<string, any>[]} */ records) {
  const measured = records.filter(({ browser }) => browser !== undefined);
  const keys = [...new Set(measured.map(({ ranks, bytes }) => `${ranks} ${bytes}`))];
  const rows = keys.map((key) => {
    const [ranks, bytes] = key.split(' ').map(Number);
    const lowest = (/** @type {string} */ where, /** @type {'least' | 'median'} */ what) =>
      Math.min(
        ...measured
          .filter((line) => line['browser'] === where && line['ranks'] === ranks && line['bytes'] === bytes)
          .map((line) => Number(line[what])),
      );
    const [page, node] = [lowest('page', 'median'), lowest('node', 'median')];
    const isTarget = ranks === 2;
    return [
      `${ranks} × ${formatSize(bytes ?? 0)}`,
      formatUs(page),
      formatUs(lowest('page', 'least')),
      formatUs(node),
      formatUs(lowest('node', 'least')),
      (bytes ?? 0) < browserTarget.fromBytes
        ? `${verdict(page, isTarget ? browserTarget.smallUs : undefined)} µs`
        : verdict(page / node, isTarget ? browserTarget.ratio : undefined),
    ];
  });
  return rows.length === 0
    ? ''
    : table(['ranks × size', 'page, µs', 'least', 'threads of Node, µs', 'least', 'page over Node'], rows);
}
