import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { browser as command, missing } from './chromium.js';

let server: ChildProcess;
let browser: Browser;
let address = '';
beforeAll(async () => {
  if (missing !== '') return;
  server = spawn(process.execPath, ['examples/page/serve.mjs'], {
    env: { ...process.env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(server.stdout ?? server, 'data')) as [Buffer];
  address = line.toString().trim();
  browser = await chromium.launch({
    timeout: 0,
    executablePath: command?.startsWith('/') === true ? command : `/usr/bin/${command ?? ''}`,
    args: ['--no-sandbox', '--disable-gpu'],
  });
});
afterAll(async () => {
  if (missing !== '') return;
  await browser.close();
  server.kill();
});

/** The loss after training in so many workers, and the points of the chart. */
async function train(nRanks: number): Promise<{ readonly loss: number; readonly chart: readonly number[] }> {
  const page = await browser.newPage();
  page.setDefaultTimeout(0);
  await page.goto(`${address}?ranks=${nRanks}`);
  await page.waitForSelector('body[data-state]');
  const status = (await page.textContent('[role=status]')) ?? '';
  const points = (await page.getAttribute('polyline', 'points')) ?? '';
  await page.close();
  const loss = /^Epoch 200 of 200 in \d workers: loss (\S+)$/.exec(status)?.[1];
  expect(loss, status).toBeDefined();
  return { loss: Number(loss), chart: points.split(' ').map((point) => Number(point.split(',')[1])) };
}

it.skipIf(missing)(`the example trains in four workers with the loss of one, and draws it${missing}`, async () => {
  const [one, four] = [await train(1), await train(4)];
  expect(four.loss).toBeCloseTo(one.loss, 8);
  expect(four.loss).toBeLessThan(0.4);
  expect(four.chart).toHaveLength(200);
  // Heights grow downwards.
  expect(four.chart.at(-1)).toBeGreaterThan((four.chart[0] ?? 0) + 10);
});

it.skipIf(missing)(`the example says in one line that its port is taken${missing}`, () => {
  const { port } = new URL(address);
  const { status, stdout, stderr } = spawnSync(process.execPath, ['examples/page/serve.mjs'], {
    env: { ...process.env, PORT: port },
    encoding: 'utf8',
  });
  expect([status, stdout, stderr]).toEqual([
    1,
    '',
    `port ${port} cannot be used (listen EADDRINUSE: address already in use 127.0.0.1:${port}): set PORT to a free one\n`,
  ]);
});
