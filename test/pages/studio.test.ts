import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { withDeviceEdits } from '../../src/planner/plan/device-edits.js';
import { machine } from '../../src/planner/topology/catalogue/machines.js';
import { parseXml } from '../../src/planner/topology/xml/parse.js';
import { writeXml } from '../../src/planner/topology/xml/write.js';
import { RasServer } from '../commands/ras-server.js';
import { fixture, startTccl, tccl } from '../multi-process/cli.js';
import { runs } from '../runs.js';
import { lstopoXml } from '../unit/planner/evidence/print-tools.js';
import { browser as browserPath, missing } from '../browser/chromium.js';
import { eventually } from '../browser/eventually.js';

const folder = mkdtempSync(join(tmpdir(), 'tccl-studio-'));
const pageFile = join(folder, 'studio.html');
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
let browser: Browser;
let page: Page;
/** Requests to anywhere, and messages of the console, such as of a violated policy. */
let requests: string[];
let complaints: string[];

beforeAll(async () => {
  if (browserPath === undefined) return;
  await tccl(['studio', '--out', pageFile]);
  browser = await chromium.launch({
    timeout: 0,
    executablePath: browserPath.startsWith('/') ? browserPath : `/usr/bin/${browserPath}`,
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
});
afterEach(async () => {
  for (const context of browser.contexts()) await context.close();
});
afterAll(async () => {
  await browser.close();
  rmSync(folder, { recursive: true });
});

/** Opens the page from the disk and waits until it shows something. */
async function openPage(fragment = '', options: { readonly dark?: boolean; readonly width?: number } = {}): Promise<void> {
  const context = await browser.newContext({
    viewport: { width: options.width ?? 1400, height: 900 },
    colorScheme: options.dark === true ? 'dark' : 'light',
    offline: true,
  });
  // On a busy machine the limit of the test holds.
  context.setDefaultTimeout(0);
  page = await context.newPage();
  requests = [];
  complaints = [];
  page.on('request', (request) => requests.push(request.url()));
  page.on('console', (message) => complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(error.message));
  await page.goto(`${pathToFileURL(pageFile).href}${fragment}`);
  await shows();
}

/** Opens the page, and holds back the worker's message that fulfils a condition. `held` gives `release`, which passes it on. */
async function openHoldingBack(condition: string, fragment = ''): Promise<void> {
  const context = await browser.newContext({ offline: true });
  context.setDefaultTimeout(0);
  page = await context.newPage();
  await page.addInitScript(`
    const Started = Worker;
    window.Worker = class extends Started {
      set onmessage(take) {
        super.onmessage = (event) => {
          const { data } = event;
          if (${condition}) heldBack(() => take(event));
          else take(event);
        };
      }
    };
    let heldBack;
    window.held = new Promise((resolve) => (heldBack = (release) => resolve({ release })));`);
  await page.goto(`${pathToFileURL(pageFile).href}${fragment}`);
}

/** Waits until the worker rests. */
function shows(): Promise<void> {
  return page.locator('main[aria-busy="false"]').waitFor();
}

async function openFile(name: string, contents: string | Buffer): Promise<void> {
  await page.getByLabel('Open a file').setInputFiles({ name, mimeType: '', buffer: Buffer.from(contents) });
  await shows();
}

/** Drops files on the page. */
async function drop(files: readonly (readonly [name: string, contents: string])[]): Promise<void> {
  await page.evaluate(`(() => {
    const dataTransfer = new DataTransfer();
    for (const [name, contents] of ${JSON.stringify(files)}) dataTransfer.items.add(new File([contents], name));
    document.querySelector('main').dispatchEvent(new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true }));
  })()`);
}

async function ask(question: string): Promise<void> {
  await page.getByLabel('Ask a question about the plan').fill(question);
  await page.keyboard.press('Enter');
  await shows();
}

const panel = () => page.getByRole('tabpanel');
const tab = (name: string) => page.getByRole('tab', { name });
const alertText = () => page.getByRole('alert').textContent();

describe.skipIf(missing)(`the studio${missing}`, () => {
  it('begins with an example, from a disk, and asks no server for anything', async () => {
    await openPage();
    await expect(page.getByRole('heading', { level: 1 }).textContent()).resolves.toContain('2 x dgx-h100');
    for (const name of ['Cluster', 'Paths', 'Choice', 'Channels', 'Motion', 'Why', 'Compare', 'Learn', 'Machine']) {
      await tab(name).click();
      await shows();
      await shows();
      expect(await panel().textContent()).not.toBe('');
    }
    expect(requests.filter((url) => !/^(blob|data):/.test(url))).toEqual([pathToFileURL(pageFile).href]);
    expect(complaints).toEqual([]);
  });

  it('draws the example before its worker answers, as the worker draws it', async () => {
    const picture = () => panel().locator('svg').first().innerHTML();
    await openPage('#machine=dgx-h100&nodes=2');
    const planned = await picture();
    const figures = await page.locator('.figures').textContent();
    const context = await browser.newContext({ viewport: { width: 1400, height: 900 } });
    context.setDefaultTimeout(0);
    page = await context.newPage();
    await page.addInitScript('window.Worker = class { postMessage() {} }');
    await page.goto(pathToFileURL(pageFile).href);
    await shows();
    expect(await picture()).toBe(planned);
    await eventually(() => page.locator('.figures').textContent()).toBe(figures);
  });

  it('is served under an address with a token, and ends when it is interrupted', async () => {
    const served = startTccl(['studio', '--no-open', 'dgx-a100:2']);
    const line = await served.shown(/end it/);
    const url = /http:\S+/.exec(line)?.[0] ?? '';
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/[\da-f]{32}\/#machine=dgx-a100&nodes=2$/);
    const { status, headers } = await fetch(url);
    expect([status, headers.get('content-security-policy')]).toEqual([200, "frame-ancestors 'none'"]);
    expect((await fetch(new URL('/', url))).status).toBe(404);
    const context = await browser.newContext();
    context.setDefaultTimeout(0);
    page = await context.newPage();
    await page.goto(url);
    await shows();
    await eventually(() => page.getByRole('heading', { level: 1 }).textContent()).toContain('2 x dgx-a100');
    served.process.kill('SIGINT');
    expect((await served.finished).code).toBe(0);
  });

  it('takes a NIC out, says what that changes, and brings it back', async () => {
    await openPage();
    await page.locator('rect[data-subject^="NET/"]').nth(1).click();
    await page.getByRole('button', { name: /^Take out NET 1/ }).click();
    await shows();
    await tab('Compare').click();
    await shows();
    await eventually(() => panel().textContent()).toMatch(/without mlx5_1[\s\S]*7 network devices/);
    await page.getByRole('button', { name: 'Put mlx5_1 back' }).click();
    await shows();
    await eventually(() => panel().textContent()).toContain('Nothing is set yet');
    await page.getByRole('button', { name: 'Undo', exact: true }).click();
    await panel().filter({ hasText: 'without mlx5_1' }).waitFor();
  });

  it('slows a port down, adds another and other hosts, and undoes it', async () => {
    await openPage();
    const speed = () => page.locator('.figures').textContent();
    const before = await speed();
    await page.locator('rect[data-subject^="NET/"]').nth(1).click();
    await page.getByRole('button', { name: 'Half its speed' }).click();
    await shows();
    expect(await speed()).not.toBe(before);
    await page.getByRole('button', { name: 'Undo: half the speed of mlx5_1' }).waitFor();
    await page.getByRole('button', { name: 'Add another like it' }).click();
    await shows();
    await eventually(() => page.locator('rect[data-subject^="NET/"]').count()).toBe(9);
    await page.getByLabel('Other hosts beside them').fill('dgx-a100:2');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1 }).filter({ hasText: '2 x dgx-h100 + 2 x dgx-a100' }).waitFor();
    for (let steps = 0; steps < 3; steps++) {
      await page.getByRole('button', { name: 'Undo', exact: true }).click();
      await shows();
    }
    await page
      .locator('.figures')
      .filter({ hasText: before ?? '' })
      .waitFor();
    expect(await page.getByRole('button', { name: /^Undo: / }).count()).toBe(0);
  });

  it('removes the NVLink between two GPUs, and halves the lanes of a switch', async () => {
    await openPage('#machine=dgx-1v&nodes=1');
    const link = page.locator('path[data-subject="link/DEV/0-2000>DEV/0-7000"]');
    await link.first().dispatchEvent('click');
    await page.locator('.hint').filter({ hasText: 'Link from GPU 0 to GPU 3' }).waitFor();
    await page.getByRole('button', { name: 'Remove it' }).click();
    await shows();
    expect(await link.count()).toBe(0);
    await page.locator('path[data-subject="link/PCI/0-5000>CPU/0-0"]').first().dispatchEvent('click');
    await page.getByRole('button', { name: 'Half its PCIe lanes' }).click();
    await shows();
    await page.getByRole('button', { name: 'Undo: half the PCIe lanes of 0000:05:00.0' }).waitFor();
    await page.getByRole('button', { name: 'Undo: no NVLinks of gpu0+gpu3' }).click();
    await shows();
    await eventually(() => link.count()).toBeGreaterThan(0);
  });

  it('names faults of the machines on the cluster', async () => {
    await openPage('#machine=dgx-h100&nodes=2&edit=half-lanes%3Agpu3&view=cluster');
    await panel().getByRole('heading', { name: 'Faults of the cluster and its machines' }).waitFor();
    await eventually(() => panel().locator('.findings').textContent()).toMatch(/lanes|width|x8/);
  });

  it('moves through the versions of NCCL by a slider, which says what changed', async () => {
    await openPage('#machine=dgx-h100&nodes=2&nccl=2.27.7');
    const slider = page.getByRole('slider', { name: 'Version of NCCL' });
    await eventually(() => slider.getAttribute('aria-valuetext')).toBe('2.27.7');
    await slider.press('ArrowLeft');
    await shows();
    const older = await slider.getAttribute('aria-valuetext');
    expect(older).toMatch(/^2\.27\./);
    await page.getByText(/rules? changed since/i).waitFor();
    expect(page.url()).toContain(`nccl=${older ?? ''}`);
  });

  it('shows what NVLS gives, by a variable that turns it off', async () => {
    await openPage();
    await page.getByLabel('Set a variable: NAME=VALUE').fill('NCCL_NVLS_ENABLE=0');
    await page.keyboard.press('Enter');
    await shows();
    await tab('Compare').click();
    await shows();
    const calls = await page.getByRole('region', { name: 'Calls' }).textContent();
    expect(calls).toContain('AllReduce');
    expect(calls).toContain('NVLSTree');
  });

  it('names the rules behind another version of NCCL', async () => {
    await openPage();
    await page.getByLabel('Version of NCCL', { exact: true }).selectOption('2.27.7');
    await shows();
    await tab('Compare').click();
    await shows();
    await eventually(() => panel().textContent()).toMatch(/NCCL 2\.27\.7/);
    const { stdout } = await tccl(['diff', 'dgx-h100', '--nodes', '2', '--nccl', '2.30.7', '--nccl-b', '2.27.7', '--json']);
    const { effects } = JSON.parse(stdout) as { effects: readonly { title: string }[] };
    const named = await panel()
      .getByRole('heading', { name: /^Rule / })
      .allTextContents();
    expect(named.length).toBeGreaterThan(0);
    expect(effects.map(({ title }) => `Rule ${title}`)).toEqual(expect.arrayContaining(named));
  });

  it('answers questions as tccl explain does', async () => {
    await openPage();
    await page.getByLabel('Ask a question about the plan').fill('why 16 channels');
    await page.keyboard.press('Enter');
    await shows();
    const { stdout } = await tccl(['explain', 'dgx-h100', '--nodes', '2', 'why', '16', 'channels', '--json']);
    const { title } = JSON.parse(stdout) as { title: string };
    await expect(page.locator('.answer h2').textContent()).resolves.toBe(title);
    await page.getByLabel('Ask a question about the plan').fill('what if NCCL_CROSS');
    await page.locator('#questions option[value="what if NCCL_CROSS_NIC"]').waitFor({ state: 'attached' });
    await page.getByLabel('Set a variable: NAME=VALUE').fill('NCCL_CROSS_NIC=0');
    await eventually(() => page.locator('#variables option').count()).toBeGreaterThan(200);
    await page.getByLabel('Ask a question about the plan').fill('xyzzy');
    await page.keyboard.press('Enter');
    await shows();
    await expect(page.locator('.answer').textContent()).resolves.toContain('The nearest are');
  });

  it('gives up a long answer when it is cancelled, and goes on', async () => {
    await openPage('#machine=dgx-h100&nodes=16');
    await page.getByLabel('Ask a question about the plan').fill('what would help all_reduce 1G');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Cancel' }).click();
    await shows();
    expect(await page.locator('.answer').count()).toBe(0);
    await tab('Cluster').click();
    await panel().getByText('ring of channel 0').first().waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
  });

  it('a selected channel shows its ring alone; a selected GPU is selected in all views', async () => {
    await openPage();
    const loaded = () => page.locator('svg .s-load5').count();
    const all = await loaded();
    await tab('Channels').click();
    await shows();
    await page.getByRole('button', { name: 'channel 3', exact: true }).click();
    await shows();
    await panel().locator('.chip.gpu').first().click();
    await tab('Machine').click();
    await shows();
    expect(await loaded()).toBeLessThan(all);
    await eventually(() => page.locator('rect.t-gpu.chosen').count()).toBe(1);
    await tab('Paths').click();
    await shows();
    await eventually(() => page.locator('rect.t-cell.chosen').count()).toBeGreaterThan(16);
  });

  it('draws a channel through all nodes, and finds the rail that it crosses', async () => {
    await openPage('#machine=dgx-h100&nodes=3');
    await tab('Cluster').click();
    await shows();
    await shows();
    await panel().getByRole('combobox', { name: 'Channel' }).selectOption('1');
    await panel().filter({ hasText: '1 of 3 cross rails' }).waitFor();
    await eventually(() => page.locator('path.t-net title').allTextContents()).toContainEqual(
      expect.stringMatching(/^rank \d+ to rank \d+: over the network, out by NET 0 with GPU Direct RDMA, in by NET 1$/),
    );
    await panel().getByRole('combobox', { name: 'Graph' }).selectOption('tree');
    await panel().filter({ hasText: 'tree of channel 1' }).waitFor();
    await page.locator('rect.t-gpu').first().click();
    await eventually(() => page.locator('rect.t-gpu.chosen').count()).toBe(3);
  });

  it('shows slices on their way by a slider, and waits for no animation', async () => {
    await openPage('#machine=dgx-a100&nodes=2&view=motion&bytes=65536');
    await panel().filter({ hasText: 'AllReduce of 64 KiB: Tree LL' }).waitFor();
    const slider = page.getByLabel('Time since the launch');
    const dots = async (value: string) => {
      await slider.fill(value);
      return page.locator('circle.t-chunk title').allTextContents();
    };
    expect(await dots('1000')).toEqual([]);
    expect((await dots('5')).join()).toContain('from rank 7 to rank 6');
    await page.getByRole('button', { name: 'Play' }).click();
    await page.getByRole('button', { name: 'Pause' }).click();
    expect(complaints).toEqual([]);
  });

  it('puts measurements beside the belief and the prediction', async () => {
    await openPage('#machine=dgx-h100&nodes=1&view=choice');
    const table = [
      '# nThread 1 nGpus 8 minBytes 1048576 maxBytes 1048576 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validate: 1 graph: 0',
      '#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong',
      '#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)',
      '     1048576        262144     float     sum      -1    900.0    1.17    2.04      0    900.0    1.17    2.04      0',
      '',
    ].join('\n');
    await openFile('all_reduce_perf.txt', `all_reduce_perf\n# Collective test starting: all_reduce_perf\n${table}`);
    await page.getByLabel('Machine of the catalogue').fill('dgx-h100');
    await page.keyboard.press('Enter');
    await shows();
    await tab('Choice').click();
    await shows();
    await shows();
    await eventually(() => page.locator('circle.t-measured title').allTextContents()).toEqual([
      expect.stringMatching(/measured 900 us, slower than the interval of the prediction/),
    ]);
  });

  it('shows which pair of hosts is sick in a sweep', async () => {
    const hosts = ['gpu-a1', 'gpu-a2', 'gpu-a3', 'gpu-a4'];
    const pairs = hosts.flatMap((a, index) => hosts.slice(index + 1).map((b) => [a, b] as const));
    const sweep = pairs.map(([a, b]) => {
      const gbps = a === 'gpu-a2' && b === 'gpu-a4' ? 150 : 370;
      return [
        '# nThread 1 nGpus 1 minBytes 8 maxBytes 1 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0',
        ...[a, b].map(
          (host, rank) => `#  Rank  ${rank} Group  0 Pid 895 on     ${host} device  0 [0002:00:01] NVIDIA H100 80GB HBM3`,
        ),
        `  1073741824  268435456  float  sum  -1  1000.0  ${gbps}  ${gbps}  0  1001.0  ${gbps}  ${gbps}  0`,
        '# Avg bus bandwidth    : 1',
      ].join('\n');
    });
    await openPage();
    await openFile('sweep.log', sweep.join('\n'));
    await eventually(() => page.locator('.verdict').textContent()).toContain('gpu-a2 with gpu-a4');
    await eventually(() => page.locator('rect.t-frame title').allTextContents()).toEqual([
      'gpu-a2 with gpu-a4: 150 GB/s, 41 % of the median',
      'gpu-a4 with gpu-a2: 150 GB/s, 41 % of the median',
    ]);
  });

  it('shows which rank the others wait for, by the flight recordings of all', async () => {
    await openPage();
    const recording = (rank: number) => {
      const entry = (sequence: number) => ({
        process_group: ['0', 'default_pg'],
        collective_seq_id: sequence,
        profiling_name: 'nccl:all_reduce',
        input_sizes: [[1024]],
        state: sequence === 41 ? 'started' : 'completed',
        is_p2p: false,
      });
      const entries = (rank === 2 ? [39, 40] : [39, 40, 41]).map(entry);
      return JSON.stringify({ version: '2.5', pg_config: { 0: { name: '0', ranks: '[0, 1, 2, 3]' } }, entries });
    };
    await page
      .getByLabel('Open a file')
      .setInputFiles(
        [0, 1, 2, 3].map((rank) => ({ name: `rank_${rank}.json`, mimeType: '', buffer: Buffer.from(recording(rank)) })),
      );
    await shows();
    await panel().getByRole('region', { name: 'ranks 0-1, 3 wait for rank 2' }).waitFor();
    await eventually(() => page.locator('rect.t-late title').allTextContents()).toEqual([
      'rank 2: others wait for it',
      'rank 2: completed 40, all_reduce (others wait for it)',
    ]);
    await eventually(() => page.locator('rect.t-waits[data-subject="rank/1"]').count()).toBe(1);
  });

  it('replays profiles of PyTorch on the machine that is set, which can be another one', async () => {
    await openPage();
    const kernel = {
      ...{ ph: 'X', cat: 'kernel', name: 'ncclDevKernel_AllReduce_Sum_f32_RING_LL', ts: 0, dur: 130 },
      args: {
        ...{ stream: 7, 'Collective name': 'allreduce', 'In msg nelems': 1 << 20, 'Out msg nelems': 1 << 20, dtype: 'Float' },
        ...{ 'Group size': 16, 'Process Group Name': '0', 'Process Group Ranks': [...Array(16).keys()] },
      },
    };
    const profile = { distributedInfo: { rank: 0, world_size: 16, nccl_version: '2.27.5' }, traceEvents: [kernel] };
    const [name, buffer] = ['rank0.json', Buffer.from(JSON.stringify(profile))];
    const field = page.getByLabel('Machine of the catalogue');
    await field.fill('dgx-a100:1');
    await field.press('Enter');
    await shows();
    await page.getByLabel('Open a file').setInputFiles({ name, mimeType: '', buffer });
    await page.locator('.verdict').filter({ hasText: 'dgx-a100 has 8: name as many hosts' }).waitFor();
    await field.fill('dgx-h100:2');
    await field.press('Enter');
    await page
      .locator('.verdict')
      .filter({ hasText: /Replayed: step measured 130 us/ })
      .waitFor();
    await panel().getByRole('region', { name: 'Ranks of the traces' }).waitFor();
    await eventually(() =>
      panel().getByRole('region', { name: 'Calls of the traces' }).locator('td').allTextContents(),
    ).toContain('4 MiB');
  });

  it('follows a running job over its own server, and nothing else', async () => {
    const ranks = (launched: readonly number[]) => launched.map((count, rank) => ({ rank, counts: { AllReduce: count } }));
    const server = new RasServer({
      version: '2.30.7',
      // It runs for two reports; then rank 2 stays behind.
      communicators: (n) => [{ hash: '0xfa93daea854b060b', ranks: ranks(n < 2 ? [n, n, n, n] : [9, 9, 8, 9]) }],
    });
    const address = await server.listen();
    const served = startTccl(['studio', '--no-open', '--watch', address, '--every', '1s']);
    try {
      const url = /http:\S+/.exec(await served.shown(/end it/))?.[0] ?? '';
      const context = await browser.newContext();
      context.setDefaultTimeout(0);
      page = await context.newPage();
      complaints = [];
      page.on('console', (message) => complaints.push(message.text()));
      await page.goto(url);
      await page.locator('.verdict').filter({ hasText: 'rank 2' }).waitFor();
      await panel().getByRole('region', { name: 'ranks 0-1, 3 wait for rank 2' }).waitFor();
      await eventually(() => page.locator('meta[http-equiv]').getAttribute('content')).toContain("connect-src 'self'");
      await expect(page.evaluate("fetch('http://127.0.0.1:9/')")).rejects.toThrow(/Failed to fetch|violates/);
      expect((await fetch(new URL('/events', url))).status).toBe(404);
    } finally {
      served.process.kill('SIGINT');
      await served.finished;
      await server.close();
    }
  });

  it('follows a job of tccl: names the rank that holds it up, and says when it has ended', async () => {
    const job = startTccl(['run', '-n', '3', '--no-prefix', '--', process.execPath, fixture('hangs.mjs'), 'late']);
    const served = startTccl(['studio', '--no-open', '--inspect', String(job.process.pid), '--every', '1s']);
    try {
      const started = await job.shown(/(.*"pid".*\s+){3}/);
      const url = /http:\S+/.exec(await served.shown(/end it/))?.[0] ?? '';
      const context = await browser.newContext();
      context.setDefaultTimeout(0);
      page = await context.newPage();
      await page.goto(url);
      const verdict = page.locator('.verdict');
      await verdict.filter({ hasText: /^Fault: rank 1 .*; ranks 0,2 wait for it in allReduce of 4 int32/ }).waitFor();
      await panel().getByRole('region', { name: 'ranks 0, 2 wait for rank 1' }).waitFor();
      await panel()
        .getByRole('region', { name: /^Calls of the ranks of job/ })
        .waitFor();
      await eventually(() => page.locator('.findings').textContent()).toMatch(/rank 1: process \d+ on /);
      for (const [, pid] of started.matchAll(/"pid":(\d+)/g)) process.kill(Number(pid), 'SIGKILL');
      await job.finished;
      await page
        .getByRole('alert')
        .filter({ hasText: /the job has ended|no job/ })
        .waitFor();
    } finally {
      job.process.kill('SIGKILL');
      served.process.kill('SIGINT');
      await served.finished;
    }
  });

  it('walks through the stages of NCCL, and checks an exercise', async () => {
    await openPage('#machine=hgx-a100-4&nodes=2&view=learn');
    await eventually(() => panel().getByRole('heading').allTextContents()).toEqual([
      ...['Bootstrap ring', 'Peer information', 'From XML to a graph', 'Paths', 'Search of channels', 'NVLS heads'],
      ...['Merge of hosts', 'Trees', 'Connections', 'Tuning', 'Data through FIFOs', 'Exercises'],
    ]);
    const task = panel().getByRole('listitem').filter({ hasText: 'Over which transport' });
    await task.getByRole('button', { name: 'Check' }).click();
    await task.filter({ hasText: 'Give an answer first.' }).waitFor();
    for (const [answer, says] of [
      ['SHM', 'Not so.'],
      ['NET', 'Right.'],
    ] as const) {
      await task.getByRole('combobox').selectOption(answer);
      await task.getByRole('button', { name: 'Check' }).click();
      await task.filter({ hasText: says }).waitFor();
    }
    await task.getByRole('button', { name: 'Show in the plan' }).click();
    await shows();
    await expect(tab('Cluster').getAttribute('aria-selected')).resolves.toBe('true');
    await page.goBack();
    await task.filter({ hasText: 'Right.' }).waitFor();
    await eventually(() => task.getByRole('combobox').inputValue()).toBe('NET');
  });

  it('draws obstacles of the search on the machine, one after the other', async () => {
    await openPage('#machine=dgx-1v&nodes=2&view=why');
    await page.getByRole('button', { name: 'Draw the obstacles' }).click();
    await page.locator('rect.t-frame').first().waitFor();
    const first = await page.locator('.card > p').last().textContent();
    await page.getByRole('button', { name: 'Next obstacle' }).click();
    await eventually(() => page.locator('.card > p').last().textContent()).not.toBe(first);
    await eventually(() => panel().getByText('more steps like it').count()).toBeGreaterThan(0);
  });

  it('compares two machines side by side', async () => {
    await openPage('#machine=dgx-h100&nodes=2&view=changes');
    await page.getByLabel('Compare with another machine').fill('dgx-a100:2');
    await page.keyboard.press('Enter');
    await panel().filter({ hasText: 'a 2 x dgx-a100' }).waitFor();
    await eventually(() => page.locator('.sides svg').count()).toBe(4);
    await eventually(() => page.getByRole('region', { name: 'Decisions' }).textContent()).toContain('channels');
    const { stdout } = await tccl(['diff', 'dgx-a100', 'dgx-h100', '--nodes', '2', '--json']);
    const { differences } = JSON.parse(stdout) as { differences: readonly { what: string }[] };
    await eventually(() => page.getByRole('region', { name: 'Decisions' }).getByRole('row').count()).toBe(
      1 + Math.min(200, differences.length),
    );
  });

  it('plans the machine of a matrix of nvidia-smi, and says what it assumes', async () => {
    await openPage();
    const matrix = [
      '\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity',
      'GPU0\t X \tPIX\tPXB\t0-15\t0',
      'GPU1\tPIX\t X \tPXB\t0-15\t0',
      'NIC0\tPXB\tPXB\t X ',
      '',
      'NIC Legend:',
      '  NIC0: mlx5_0',
      '',
    ].join('\n');
    await openFile('topo.txt', matrix);
    await expect(page.getByRole('heading', { level: 1 }).textContent()).resolves.toContain('the machine in topo.txt');
    // The number of assumptions and the command that ends them can be seen; the page has a field for the rest.
    await eventually(() => page.locator('.assumed > p').textContent()).toMatch(
      /^\d facts are assumed\. To be certain, run on that machine tccl topo detect -o machine\.xml,.*«Hardware»/,
    );
    const facts = page.locator('.assumed li').first();
    await eventually(() => facts.textContent()).toContain('GPUs are');
    await page.getByLabel('Hardware', { exact: true }).fill('2 x L40S, 1 x 100G NIC');
    await page.keyboard.press('Enter');
    await facts.filter({ hasText: 'CPUs are' }).waitFor({ state: 'attached' });
    await eventually(() => page.locator('main').textContent()).toContain('12.5 GB/s');
  });

  it('opens the XML of lstopo, and several topologies as one cluster', async () => {
    await openPage();
    await openFile('host.xml', lstopoXml(machine('pcie-8-a6000')));
    await page.getByRole('heading', { level: 1 }).filter({ hasText: 'in host.xml' }).waitFor();
    await eventually(() => page.locator('rect.t-gpu').count()).toBe(8);
    const topology = (name: string) => ({ name: `${name}.xml`, mimeType: '', buffer: Buffer.from(writeXml(machine(name))) });
    await page.getByLabel('Open a file').setInputFiles([topology('hgx-a100-4'), topology('dgx-a100')]);
    await page.getByRole('heading', { level: 1 }).filter({ hasText: 'hgx-a100-4.xml + dgx-a100.xml' }).waitFor();
    await shows();
    await eventually(() => page.locator('.figures').textContent()).toContain('ranks12');
  });

  it('opens what is dropped: outputs of one host in several files are one machine, as for tccl plan FOLDER', async () => {
    const outputs = {
      'topo.txt': [
        '\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity',
        'GPU0\t X \tNV18\tPIX\t0-15\t0',
        'GPU1\tNV18\t X \tPXB\t0-15\t0',
        'NIC0\tPIX\tPXB\t X ',
        '',
        'NIC Legend:',
        '  NIC0: mlx5_7',
        '',
      ],
      'gpus.txt': [0, 1].map(
        (index) => `GPU ${index}: NVIDIA H100 80GB HBM3 (UUID: GPU-0000000${index}-0000-0000-0000-000000000000)`,
      ),
      'ibstat.txt': [
        "CA 'mlx5_7'",
        '\tPort 1:',
        '\t\tState: Active',
        '\t\tPhysical state: LinkUp',
        '\t\tRate: 400',
        '\t\tLink layer: InfiniBand',
        '',
      ],
    };
    const host = join(folder, 'outputs');
    mkdirSync(host, { recursive: true });
    for (const [name, lines] of Object.entries(outputs)) writeFileSync(join(host, name), `${lines.join('\n')}\n`);
    const { stdout } = await tccl(['plan', host]);
    expect(stdout).toContain('50 GB/s');
    await openPage();
    await drop(Object.entries(outputs).map(([name, lines]) => [name, `${lines.join('\n')}\n`]));
    await page.getByRole('heading', { level: 1 }).filter({ hasText: 'and 2 other files' }).waitFor();
    await shows();
    // The matrix has the GPUs, the list their model, ibstat the speed of the port.
    await eventually(() => panel().textContent()).toMatch(/2 GPUs \(sm 90\), 1 network device \(50 GB\/s\)/);
    await eventually(() => panel().textContent()).toContain('mlx5_7 50 GB/s');
    await page.reload();
    await page.getByRole('alert').filter({ hasText: 'open it, a link does not have its contents' }).waitFor();
  });

  it('opens what is dropped while the worker still plans the example', async () => {
    await openHoldingBack("data.id === 0 && data.kind === 'shown'");
    await page.evaluate(`held.then(async ({ release }) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([${JSON.stringify(writeXml(machine('hgx-a100-4')))}], 'topo.xml'));
      document.querySelector('main').dispatchEvent(new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true }));
      // Promises go on, but no file has been read yet.
      for (let turn = 0; turn < 20; turn++) await undefined;
      release();
    })`);
    await page.getByRole('heading', { level: 1 }).filter({ hasText: 'topo.xml' }).waitFor();
    await shows();
    expect(page.url()).toContain('file=topo.xml');
    await page.goBack();
    await page.getByRole('heading', { level: 1 }).filter({ hasText: 'dgx-h100' }).waitFor();
  });

  it('opens a folder that is dropped', async () => {
    const dropped = join(folder, 'dropped');
    mkdirSync(join(dropped, 'deep'), { recursive: true });
    writeFileSync(join(dropped, 'deep', 'job.log'), 'host1:10:10 [0] NCCL WARN NET/IB : Unable to open device mlx5_0\n');
    writeFileSync(join(dropped, 'topo.xml'), writeXml(machine('hgx-a100-4')));
    const dropFolder = async () => {
      const devtools = await page.context().newCDPSession(page);
      for (const type of ['dragEnter', 'dragOver', 'drop'] as const)
        await devtools.send('Input.dispatchDragEvent', {
          type,
          x: 600,
          y: 400,
          data: { items: [], files: [dropped], dragOperationsMask: 1 },
        });
    };
    const served = startTccl(['studio', '--no-open']);
    const url = /http:\S+/.exec(await served.shown(/end it/))?.[0] ?? '';
    const context = await browser.newContext();
    context.setDefaultTimeout(0);
    page = await context.newPage();
    await page.goto(url);
    await shows();
    await dropFolder();
    await page.getByRole('heading', { level: 1 }).filter({ hasText: 'dropped/topo.xml' }).waitFor();
    await shows();
    await eventually(() => page.locator('.findings').textContent()).toContain('dropped/deep/job.log:1');
    served.process.kill('SIGINT');
    await served.finished;
    // Chromium does not read a folder that is dropped on a page from a disk.
    await openPage();
    await dropFolder();
    await page.getByRole('alert').filter({ hasText: 'choose it with «Open a folder»' }).waitFor();
  });

  it('opens what is pasted outside of fields, and leaves a paste into a field alone', async () => {
    await openPage();
    const paste = (target: string, text: string) =>
      page.evaluate(`(() => {
        const clipboardData = new DataTransfer();
        clipboardData.setData('text/plain', ${JSON.stringify(text)});
        document.querySelector(${JSON.stringify(target)}).dispatchEvent(
          new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
      })()`);
    await paste('.questions input', 'what limits');
    await paste('h1', writeXml(machine('hgx-a100-4')));
    await page.getByRole('heading', { level: 1 }).filter({ hasText: 'pasted text' }).waitFor();
    await shows();
    await eventually(() => page.locator('rect.t-gpu').count()).toBe(4);
    await paste('h1', 'host1:10:10 [0] NCCL WARN NET/IB : Unable to open device mlx5_0\n');
    await page.locator('.findings').filter({ hasText: 'mlx5_0' }).waitFor();
    expect(complaints).toEqual([]);
  });

  it('opens graphs of NCCL_GRAPH_DUMP_FILE as a setting, and compares with what the search finds', async () => {
    await openPage('#machine=dgx-a100&nodes=2');
    const { stdout } = await tccl(['graph', 'dgx-a100', '--nodes', '2', '--graph-xml']);
    await openFile('graph.xml', stdout.replaceAll('speedinter="24"', 'speedinter="12"'));
    await page.locator('.chips').filter({ hasText: 'NCCL_GRAPH_FILE=graph.xml' }).waitFor();
    await tab('Compare').click();
    await page.getByRole('region', { name: 'Decisions' }).filter({ hasText: '12' }).waitFor();
    await page.getByRole('button', { name: 'Remove NCCL_GRAPH_FILE' }).click();
    await panel().filter({ hasText: 'Nothing is set yet' }).waitFor();
  });

  it('opens a folder of an incident', async () => {
    const incident = join(folder, 'incident');
    mkdirSync(join(incident, 'host1'), { recursive: true });
    writeFileSync(join(incident, 'topo.xml'), writeXml(machine('hgx-a100-4')));
    writeFileSync(
      join(incident, 'host1', 'job.log'),
      'host1:10:10 [0] NCCL INFO NCCL version 2.27.7+cuda12.8\nhost1:10:10 [0] NCCL WARN NET/IB : Unable to open device mlx5_0\n',
    );
    writeFileSync(join(incident, 'other.log'), "host9:10:10 [0] NCCL WARN Cuda failure 2 'out of memory'\n");
    await openPage();
    await page.getByLabel('Open a folder').setInputFiles(incident);
    await page.getByRole('heading', { level: 1 }).filter({ hasText: 'incident/topo.xml' }).waitFor();
    await shows();
    await expect(tab('Incident').getAttribute('aria-selected')).resolves.toBe('true');
    await eventually(() => page.locator('.findings').textContent()).toContain('incident/host1/job.log:2');
    // Files can be those of several jobs.
    const named = `${(await page.locator('.verdict').textContent()) ?? ''} ${(await page.locator('.also').textContent()) ?? ''}`;
    expect(named).toMatch(/other\.log/);
    expect(named).toMatch(/host1\/job\.log/);
  });

  it('reads a cluster file of YAML 1.1', async () => {
    await openPage();
    await openFile('old.yaml', '%YAML 1.1\n---\nmachines:\n  - { machine: dgx-a100, count: 3 }\n');
    await page.getByRole('heading', { level: 1 }).filter({ hasText: '3 x dgx-a100' }).waitFor();
  });

  it('on a phone, leads to the settings below the views and back, and shows an incident in its full size', async () => {
    await openPage('', { width: 375 });
    const focused = () => page.evaluate<string>('document.activeElement.closest("aside") === null ? "views" : "settings"');
    await page.getByRole('button', { name: 'Settings and files' }).click();
    expect(await focused()).toBe('settings');
    await page.getByRole('button', { name: 'Back to the views' }).click();
    expect(await focused()).toBe('views');
    const waiting = { ranks: [1], waiting: [0], text: 'rank 1 computes', advice: 'look at rank 1' };
    const ranks = [0, 1].map((rank) => ({ rank, host: 'gpu1', pid: 11 + rank, process: 'runs', calls: 4, waits: [] }));
    const job = {
      job: '5a',
      state: 'stuck',
      stillMs: 9000,
      causes: [waiting],
      version: '1',
      nRanks: 2,
      transport: 'sockets',
      ranks,
    };
    await openFile('inspect.json', JSON.stringify({ jobs: [job], problems: [] }, undefined, 2));
    const scales = await page.evaluate<number[]>(
      "[...document.querySelectorAll('#view svg.tccl')].map((svg) => svg.clientWidth / svg.viewBox.baseVal.width)",
    );
    expect(scales.length).toBe(2);
    expect(Math.min(...scales)).toBeGreaterThan(0.95);
  });

  it('answers why there are 4 nodes, and leads from the answer to the views', async () => {
    await openPage('#machine=dgx-a100&nodes=4');
    await ask('why 4 nodes');
    const { stdout } = await tccl(['explain', 'dgx-a100', '--nodes', '4', 'why', '4', 'nodes', '--json']);
    const { title, lines } = JSON.parse(stdout) as { title: string; lines: readonly { text: string }[] };
    await eventually(() => page.locator('.answer h2').textContent()).toBe(title);
    await eventually(() => page.locator('.answer p').allTextContents()).toEqual(lines.map(({ text }) => text));
    await ask('why does GPU 3 use NIC 3');
    await page.locator('.answer').getByRole('button', { name: 'gpu 3' }).first().click();
    await page.locator('rect.chosen').first().waitFor();
  });

  it('says what limits all-to-all, as tccl explain does', async () => {
    await openPage('#machine=dgx-h100&nodes=2');
    await ask('what limits all-to-all');
    const { stdout } = await tccl(['explain', 'dgx-h100', '--nodes', '2', 'what', 'limits', 'all-to-all', '--json']);
    const { title, lines } = JSON.parse(stdout) as { title: string; lines: readonly { text: string }[] };
    await eventually(() => page.locator('.answer h2').textContent()).toBe(title);
    expect(title).toContain('AllToAll');
    await eventually(() => page.locator('.answer p').allTextContents()).toEqual(lines.map(({ text }) => text));
    await page.locator('.answer').getByRole('button', { name: 'AllToAll' }).first().click();
    await shows();
    await eventually(() => panel().getByRole('combobox', { name: 'Times of' }).inputValue()).toBe('AllToAll');
  });

  it('finds why the second network port is idle: no ring goes over its link, and its GPU has one as near', async () => {
    // A board with two ports at one switch: the rings need one.
    const root = withDeviceEdits(machine('dgx-h100'), [{ what: 'another', device: 'mlx5_0' }]);
    await openPage();
    await openFile('host.xml', writeXml(root));
    await page.getByLabel('Machines').fill('2');
    await page.keyboard.press('Enter');
    await shows();
    const port = page.locator('path[data-subject^="link/NET/"], path[data-subject*=">NET/"]');
    const loads = await Promise.all((await port.all()).map(async (link) => (await link.getAttribute('class')) ?? ''));
    expect(loads.filter((name) => name.includes('s-load0'))).toHaveLength(1);
    const idle = port.nth(loads.findIndex((name) => name.includes('s-load0')));
    const number = /NET\/0-(\d+)/.exec((await idle.getAttribute('data-subject')) ?? '')?.[1] ?? '';
    await idle.dispatchEvent('click');
    await panel().getByText('No ring goes over the selected link.').waitFor();
    await ask(`why is NIC ${number} idle`);
    await eventually(() => page.locator('.answer').textContent()).toContain(
      `NIC ${number} is as near, but no channel of GPU 0 uses it.`,
    );
  });

  it('names the channels over a link, the path of a cell, and the reason of a band', async () => {
    await openPage('#machine=dgx-h100&nodes=2');
    await page.locator('path[data-subject^="link/NET/"], path[data-subject*=">NET/"]').first().dispatchEvent('click');
    const channel = panel().getByRole('button', { name: /^Show channel / });
    await channel.first().waitFor();
    const name = await channel.first().textContent();
    await channel.first().click();
    await shows();
    expect(new URL(page.url()).hash).toContain(`channel=${name ?? ''}`);
    await tab('Paths').click();
    await shows();
    await page.locator('text[data-subject="path/DEV/0-1b000>NET/0-4"]').click();
    await panel().locator('.card > p').filter({ hasText: 'GPU 0 to NET 4: PXN' }).waitFor();
    await eventually(() => panel().locator('.card rect.t-frame').count()).toBe(2);
    await tab('Choice').click();
    await shows();
    await page.locator('rect[data-subject^="call/AllReduce/"]').last().click();
    await shows();
    await page
      .locator('.answer h2')
      .filter({ hasText: /for AllReduce of/ })
      .waitFor();
  });

  it('shows kernels on symmetric windows beside the general choice', async () => {
    await openPage('#machine=dgx-h100&nodes=1&view=choice');
    await panel().getByLabel('Buffers in symmetric windows').selectOption('both');
    await shows();
    await panel()
      .getByRole('region', { name: /^Kernels on symmetric windows/ })
      .waitFor();
    const kernels = await page.locator('rect.f-Symmetric title').allTextContents();
    const { stdout } = await tccl(['plan', 'dgx-h100', '--windows', 'both']);
    const named = kernels.map((text) => /: (\S+),/.exec(text)?.[1] ?? '');
    expect(named.length).toBeGreaterThan(2);
    expect(named.filter((kernel) => stdout.includes(kernel)).length).toBeGreaterThan(2);
    await tab('Compare').click();
    await panel().filter({ hasText: 'in symmetric windows' }).waitFor();
  });

  it('changes one host alone, or all of them', async () => {
    await openPage('#machine=dgx-h100&nodes=2&view=cluster');
    await page.getByLabel('Selected').selectOption({ label: 'NET 1 (mlx5_1)' });
    await page.getByLabel('Changes are for').selectOption({ label: 'the first host only' });
    await page.getByRole('button', { name: /^Take out NET 1/ }).click();
    await panel()
      .getByText(/hosts have different numbers of NICs: dgx-h100 \(changed\) 7, dgx-h100 8/)
      .waitFor();
    // Names stay as they are written.
    await eventually(() => page.locator('.limit').allTextContents()).toEqual([
      expect.stringMatching(/^dgx-h100 \(changed\): [A-Z]/),
      expect.stringMatching(/^dgx-h100: [A-Z]/),
    ]);
    expect(await page.evaluate("getComputedStyle(document.querySelector('.limit'), '::first-letter').textTransform")).toBe(
      'none',
    );
    await page.getByLabel('Changes are for').selectOption({ label: 'both hosts' });
    await panel().getByText('Faults of the cluster').waitFor({ state: 'detached' });
  });

  it('takes the number of hosts from a cluster file', async () => {
    await openPage();
    await openFile('mine.yaml', 'machines: dgx-a100:3\n');
    const field = page.getByLabel('Machines', { exact: true });
    expect([await field.inputValue(), await field.isDisabled()]).toEqual(['3', true]);
    expect(new URL(page.url()).hash).toContain('nodes=3');
    await page.getByText('mine.yaml says how many.').waitFor();
  });

  it('adds an NVLink between two GPUs', async () => {
    await openPage('#machine=dgx-1v&nodes=1');
    const link = page.locator('path[data-subject="link/DEV/0-2000>DEV/0-b000"]');
    const before = await page.locator('path.t-nvlink').count();
    await page.locator('rect.t-gpu').first().click();
    await page.getByLabel('Add an NVLink to another GPU').selectOption({ label: 'GPU 7' });
    await shows();
    await page.getByRole('button', { name: 'Undo: another NVLink between gpu0+gpu7' }).waitFor();
    expect((await page.locator('path.t-nvlink').count()) + (await link.count())).toBeGreaterThan(before);
  });

  it('walks a newcomer through the page, by keyboard alone', async () => {
    await openPage();
    await page.getByRole('button', { name: 'Tour', exact: true }).press('Enter');
    const stops = [];
    for (;;) {
      const heading = page.locator('.tour h2');
      stops.push(await heading.textContent());
      expect(await page.evaluate("document.activeElement === document.querySelector('.tour h2')")).toBe(true);
      await page.locator('.toured').first().waitFor();
      const next = page.getByRole('button', { name: /^(Next|Done)$/ });
      const isLast = (await next.textContent()) === 'Done';
      await next.press('Enter');
      await shows();
      if (isLast) break;
      await heading.filter({ hasText: `${stops.length + 1} of` }).waitFor();
    }
    expect(stops).toHaveLength(7);
    for (const name of ['.tour', '.toured']) await page.locator(name).waitFor({ state: 'detached' });
  });

  it('saves every view as one picture', async () => {
    await openPage('#machine=dgx-h100&nodes=2&env=NCCL_NVLS_ENABLE%3D0');
    for (const name of ['Machine', 'Cluster', 'Paths', 'Choice', 'Channels', 'Motion', 'Why', 'Compare', 'Learn']) {
      await tab(name).click();
      await shows();
      const button = page.getByRole('button', { name: 'Save the view as SVG' });
      const [download] = await Promise.all([page.waitForEvent('download'), button.click()]);
      const { root } = parseXml(readFileSync(await download.path(), 'utf8'));
      expect(root.children.filter((child) => child.name === 'text').length, name).toBeGreaterThan(5);
    }
    const [image] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save the view as PNG' }).click(),
    ]);
    expect(readFileSync(await image.path()).length).toBeGreaterThan(50_000);
    expect(complaints).toEqual([]);
  });

  it('reads a long log to its last line, and stays usable meanwhile', async () => {
    const bytes = runs(40, 200) * 1e6;
    const line = 'host1:10:10 [0] NCCL INFO Channel 00/16 : 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n';
    const file = join(folder, 'long.log');
    writeFileSync(file, line.repeat(Math.ceil(bytes / line.length)));
    appendFileSync(file, 'host1:10:10 [0] NCCL WARN NET/IB : Unable to open device mlx5_0\n');
    await openPage();
    await page.getByLabel('Open a file').setInputFiles(file);
    await page
      .getByRole('status')
      .filter({ hasText: /MiB read/ })
      .waitFor();
    // The page answers while its worker reads.
    await page.getByLabel('Ask a question about the plan').fill('typed meanwhile');
    await eventually(() => page.locator('main').getAttribute('aria-busy')).toBe('true');
    await shows();
    await eventually(() => page.locator('.findings').textContent()).toContain('mlx5_0');
    rmSync(file);
  });

  it('saves the view with its files, and opens it again', async () => {
    await openPage();
    await openFile('mine.xml', writeXml(machine('hgx-a100-4')));
    await tab('Paths').click();
    await shows();
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Save all' }).click()]);
    const saved = readFileSync(await download.path());
    await openPage();
    await openFile('view.tccl', saved);
    await page.getByRole('heading', { level: 1 }).filter({ hasText: 'mine.xml' }).waitFor();
    await expect(tab('Paths').getAttribute('aria-selected')).resolves.toBe('true');
    await openFile('other.tccl', '{}');
    await page.getByRole('alert').filter({ hasText: 'other.tccl: is JSON, but of another program' }).waitFor();
  });

  it('a link reproduces the view', async () => {
    await openPage('#machine=gb200-nvl72&nodes=1&env=NCCL_MNNVL_ENABLE%3D0&view=matrix');
    await expect(page.getByRole('heading', { level: 1 }).textContent()).resolves.toContain('gb200-nvl72');
    await expect(tab('Paths').getAttribute('aria-selected')).resolves.toBe('true');
    await expect(page.locator('.chips').first().textContent()).resolves.toContain('NCCL_MNNVL_ENABLE=0');
    await page.reload();
    await shows();
    await expect(tab('Paths').getAttribute('aria-selected')).resolves.toBe('true');
  });

  it('opens a topology, and saves its picture as well-formed SVG', async () => {
    await openPage();
    await openFile('mine.xml', writeXml(machine('hgx-a100-4')));
    await expect(page.getByRole('heading', { level: 1 }).textContent()).resolves.toContain('mine.xml');
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save SVG' }).first().click(),
    ]);
    expect(parseXml(readFileSync(await download.path(), 'utf8')).root.name).toBe('svg');
    const [image] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save PNG' }).first().click(),
    ]);
    expect(
      readFileSync(await image.path())
        .subarray(1, 4)
        .toString(),
    ).toBe('PNG');
    expect(complaints).toEqual([]);
  });

  it('opens a log, also compressed, with the verdict of tccl diagnose', async () => {
    const log = [
      'host1:10:10 [0] NCCL INFO NCCL version 2.27.7+cuda12.8',
      'host1:10:10 [0] NCCL WARN NET/IB : Unable to open device mlx5_0',
      '',
    ].join('\n');
    writeFileSync(join(folder, 'job.log'), log);
    const { stdout } = await tccl(['diagnose', join(folder, 'job.log'), '--json']);
    const { findings } = JSON.parse(stdout) as { findings: readonly { problem: string }[] };
    expect(findings.length).toBeGreaterThan(0);
    for (const [name, contents] of [
      ['job.log', log],
      ['job.log.gz', gzipSync(log)],
    ] as const) {
      await openPage();
      await openFile(name, contents);
      await expect(tab('Incident').getAttribute('aria-selected')).resolves.toBe('true');
      await expect(page.locator('.findings').textContent()).resolves.toContain(findings[0]?.problem);
    }
  });

  it('does not run names in files', async () => {
    await openPage();
    const hostile = `<img src=x onerror="document.title='ran'">`;
    const xml = writeXml(machine('hgx-a100-4')).replaceAll(
      'mlx5_0',
      '&lt;img src=x onerror="document.title=1"&gt;'.replaceAll('"', '&quot;'),
    );
    await openFile(`${hostile.replaceAll('/', '')}.xml`, xml);
    await tab('Why').click();
    await shows();
    const log = `host:1:1 [0] NCCL WARN ${hostile}\n`;
    writeFileSync(join(folder, 'hostile.log'), log);
    await openFile('job.log', log);
    expect(await page.title()).toBe('tccl studio');
    expect(await page.locator('#studio img').count()).toBe(0);
    const { stdout } = await tccl(['studio', join(folder, 'hostile.log'), '--out', join(folder, 'sent.html')]);
    expect(stdout).toContain('sent.html');
  });

  it.each([
    ['binary.xml', Buffer.from([0, 1, 2, 3]), /binary\.xml: is no text/],
    ['cut.xml', '<system version="1">\n<cpu numaid="0"', /cut\.xml:2:16: the file ends inside <system>/],
    ['prose.txt', 'nothing of NCCL in it\n', /prose\.txt: is none of: topology .*; it begins with "nothing of NCCL in it"/],
    ['blank.log', '\n\n', /blank\.log: is none of: topology .*; it is empty/],
    ['many.yaml', 'machines: dgx-h100:9000\n', /9000 hosts are more than the 512/],
  ])('%s: says what is wrong, and keeps what was shown', async (name, contents, message) => {
    await openPage();
    await openFile(name, contents);
    expect(await alertText()).toMatch(message);
    await expect(page.getByRole('heading', { level: 1 }).textContent()).resolves.toContain('dgx-h100');
    expect(new URL(page.url()).hash).toBe('');
    const [saved] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Save all' }).click()]);
    expect(JSON.parse(readFileSync(await saved.path(), 'utf8'))).toMatchObject({ files: [] });
    // A broken XML shows the place.
    await eventually(() => page.locator('.excerpt').allTextContents()).toEqual(name === 'cut.xml' ? ['2: <cpu numaid="0" '] : []);
  });

  it('names the nearest variable and machine', async () => {
    await openPage();
    await page.getByLabel('Set a variable: NAME=VALUE').fill('NCCL_CROS_NIC=0');
    await page.keyboard.press('Enter');
    expect(await alertText()).toContain('did you mean NCCL_CROSS_NIC?');
    await page.getByLabel('Machine of the catalogue').fill('dgx-h10');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').filter({ hasText: 'did you mean dgx-h100?' }).waitFor();
  });

  it('checks a variable that is entered before the page knows the names', async () => {
    await openHoldingBack("data.kind === 'tables'");
    await shows();
    await page.getByLabel('Set a variable: NAME=VALUE').fill('NCCL_CROS_NIC=0');
    await page.keyboard.press('Enter');
    await page.evaluate('held.then(() => undefined)');
    expect(await page.getByRole('alert').count()).toBe(0);
    await page.evaluate('held.then(({ release }) => release())');
    expect(await alertText()).toContain('did you mean NCCL_CROSS_NIC?');
    expect(page.url()).not.toContain('NCCL_CROS_NIC');
  });

  it.each([
    ['Set a variable: NAME=VALUE', 'NCCL_CROS_NIC=0', 'did you mean NCCL_CROSS_NIC?'],
    ['Machines', '0', 'must be a whole number from 1'],
  ])('says what is wrong in the field %s until the user enters something else', async (name, text, message) => {
    await openHoldingBack("data.id === 0 && data.kind === 'shown'");
    await page.locator('#variables option').first().waitFor({ state: 'attached' });
    const field = page.getByLabel(name, { exact: true });
    await field.fill(text);
    await field.press('Enter');
    expect(await alertText()).toContain(message);
    // The views of what was entered before come later.
    await page.evaluate('held.then(({ release }) => release())');
    expect(await page.getByRole('alert').count()).toBe(1);
    await page.getByLabel('Machine of the catalogue').fill('dgx-a100');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').waitFor({ state: 'detached' });
  });

  it('checks a variable that is entered after Cancel of the first plan', async () => {
    await openHoldingBack('(window.first ??= this) === this', '#machine=dgx-a100');
    await page.evaluate('held.then(() => undefined)');
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByLabel('Set a variable: NAME=VALUE').fill('NCCL_CROS_NIC=0');
    await page.keyboard.press('Enter');
    expect(await alertText()).toContain('did you mean NCCL_CROSS_NIC?');
  });

  it('keeps what is typed while the page is drawn anew', async () => {
    await openHoldingBack("data.kind === 'tables'");
    await shows();
    const field = page.getByLabel('Machine of the catalogue');
    await field.fill('dgx-a100:1');
    await page.evaluate('held.then(({ release }) => release())');
    await page.locator('#machines option').first().waitFor({ state: 'attached' });
    await eventually(() => field.inputValue()).toBe('dgx-a100:1');
    await field.press('Enter');
    await page.waitForURL(/machine=dgx-a100&nodes=1/);
    await eventually(() => field.inputValue()).toBe('dgx-a100');
    await field.fill('dgx-a100:3');
    await field.press('Enter');
    await page.waitForURL(/machine=dgx-a100&nodes=3/);
    await eventually(() => field.inputValue()).toBe('dgx-a100');
  });

  it.each([false, true])('has no barriers that axe finds, dark: %s', async (dark) => {
    await openPage('#machine=dgx-h100&nodes=2&env=NCCL_NVLS_ENABLE%3D0&ask=what+limits', { dark });
    for (const name of ['Machine', 'Cluster', 'Paths', 'Choice', 'Channels', 'Motion', 'Why', 'Compare', 'Learn']) {
      await tab(name).click();
      await shows();
      await shows();
      // axe measures in the page; its own script is not under the page's policy.
      await page.evaluate(axe);
      const found = await page.evaluate<string[]>(
        "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.slice(0, 3).map(({ html }) => html).join(' ')))",
      );
      expect(found, name).toEqual([]);
    }
  });

  // After a wanted change of the page: TCCL_SCREENSHOTS=1 npx vitest run test/pages/studio.test.ts -t docs
  it.each([
    ['machine', ''],
    ['choice', '&view=choice'],
    ['compare', '&view=changes&nic-off=mlx5_1'],
  ])('the docs show %s as it is', async (name, settings) => {
    await openPage(`#machine=dgx-h100&nodes=2${settings}`, { width: 1200 });
    await panel().locator('svg').first().waitFor();
    const shot = await page.screenshot();
    const file = `docs/guides/images/studio-${name}.png`;
    if (process.env['TCCL_SCREENSHOTS'] === '1') writeFileSync(file, shot);
    // Small copies, so that fonts and edges do not count.
    const urls = [shot, readFileSync(file)].map((png) => `data:image/png;base64,${png.toString('base64')}`);
    const difference = await page.evaluate<number>(`(async () => {
      const [a, b] = await Promise.all(${JSON.stringify(urls)}.map(async (url) => {
        const image = new Image();
        image.src = url;
        await image.decode();
        const canvas = document.createElement('canvas');
        [canvas.width, canvas.height] = [image.width / 10, image.height / 10];
        const context = canvas.getContext('2d');
        context.imageSmoothingQuality = 'high';
        context.drawImage(image, 0, 0, canvas.width, canvas.height);
        return context.getImageData(0, 0, canvas.width, canvas.height).data;
      }));
      return a.length === b.length ? a.reduce((sum, value, index) => sum + Math.abs(value - b[index]), 0) / a.length : 255;
    })()`);
    expect(difference).toBeLessThan(2);
  });

  it.each([375, 768, 1280])('fits a screen of %d pixels: nothing scrolls to the side but tables', async (width) => {
    await openPage('#machine=dgx-h100&nodes=2&env=NCCL_NVLS_ENABLE%3D0', { width });
    for (const name of ['Machine', 'Cluster', 'Paths', 'Choice', 'Channels', 'Motion', 'Why', 'Compare', 'Learn']) {
      await tab(name).click();
      await shows();
      await page.locator(`#view[aria-labelledby="${(await tab(name).getAttribute('id')) ?? ''}"]`).waitFor();
      await shows();
      const [wide, hidden, least] = await page.evaluate<[number, number, number]>(`(() => {
        const frames = [...document.querySelectorAll('#view .scroll:has(svg)')];
        const scales = frames.map((frame) => frame.querySelector('svg').clientWidth / frame.querySelector('svg').viewBox.baseVal.width);
        return [
          document.documentElement.scrollWidth,
          Math.max(0, ...frames.map((frame) => frame.scrollWidth - frame.clientWidth)),
          Math.min(1, ...scales),
        ];
      })()`);
      expect([name, wide, hidden]).toEqual([name, width, 0]);
      // Texts have 11 pixels: they stay readable.
      expect(least, name).toBeGreaterThan(0.7);
    }
  });
});
