import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { missing } from '../browser/chromium.js';
import { IsolatedPages } from '../browser/isolated.js';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const bundlers = join(repository, 'test/bundles/node_modules');
const guide = readFileSync(join(repository, 'docs/guides/browser.md'), 'utf8');
/** A file of the guide. */
const fileOf = (name: string): string => new RegExp(`\`\`\`js ${name}\\n(.*?)\`\`\``, 's').exec(guide)?.[1] ?? '';

const project = mkdtempSync(join(tmpdir(), 'tccl-pages-'));
let pages: IsolatedPages;
beforeAll(async () => {
  if (missing === '') pages = await IsolatedPages.open();
  mkdirSync(join(project, 'node_modules'));
  writeFileSync(join(project, 'package.json'), JSON.stringify({ type: 'module' }));
  const links = {
    tccl: repository,
    vite: join(repository, 'node_modules/vite'),
    webpack: join(bundlers, 'webpack'),
    esbuild: join(bundlers, 'esbuild'),
  };
  for (const [name, target] of Object.entries(links)) symlinkSync(target, join(project, 'node_modules', name));
  for (const name of ['rank.js', 'main.js', 'job.js', 'pool.js']) writeFileSync(join(project, name), fileOf(name));
  writeFileSync(
    join(project, 'index.html'),
    '<!doctype html><title>ranks</title><link rel="icon" href="data:,"><script type="module" src="./main.js"></script><script type="module" src="./pool.js"></script>',
  );
});
afterAll(async () => {
  await pages.close();
  rmSync(project, { recursive: true });
});

/** Programs that build the guide's modules into the folder `out`, as the guide says. */
const builds: Record<string, { readonly needs: string; readonly script: string }> = {
  Vite: {
    needs: join(repository, 'node_modules/vite'),
    script: `
      import { build } from 'vite';
      await build({ logLevel: 'error', worker: { format: 'es' }, build: { outDir: 'out', target: 'esnext' } });`,
  },
  webpack: {
    needs: join(bundlers, 'webpack'),
    script: `
      import webpack from 'webpack';
      await new Promise((resolve, reject) => webpack({
        mode: 'production', entry: { main: './main.js', pool: './pool.js' }, experiments: { topLevelAwait: true },
        output: { path: process.cwd() + '/out', filename: '[name].js' }, performance: { hints: false },
      }, (error, stats) => (error ?? stats.hasErrors() ? reject(error ?? new Error(stats.toString('errors-only'))) : resolve())));`,
  },
  esbuild: {
    needs: join(bundlers, 'esbuild'),
    script: `
      import { build } from 'esbuild';
      await build({ entryPoints: ['main.js', 'rank.js', 'pool.js', 'job.js'], bundle: true, format: 'esm', outdir: 'out',
        target: 'esnext', logLevel: 'error' });`,
  },
};

const outputs = [...[0, 1, 2, 3].map((rank) => `rank ${rank} of 4: 6 6 6 6`), '[5050, 5050, 5050]'];

async function outputOf(path: string): Promise<readonly string[]> {
  const page = await pages.page(path);
  while (page.complaints.length < outputs.length) await page.waitForEvent('console');
  await page.context().close();
  return page.complaints.toSorted();
}

for (const [name, { needs, script }] of Object.entries(builds)) {
  const reason = missing === '' && !existsSync(needs) ? ' (needs: npm ci --ignore-scripts --prefix test/bundles)' : missing;
  it.skipIf(reason)(`the guide's page runs in a bundle of ${name}${reason}`, async () => {
    rmSync(join(project, 'out'), { recursive: true, force: true });
    writeFileSync(join(project, 'build.mjs'), script);
    const { status, stdout, stderr } = spawnSync(process.execPath, ['build.mjs'], { cwd: project, encoding: 'utf8' });
    expect({ status }, stdout + stderr).toEqual({ status: 0 });
    if (!existsSync(join(project, 'out/index.html')))
      writeFileSync(join(project, 'out/index.html'), readFileSync(join(project, 'index.html'), 'utf8'));
    pages.folders.set('/', join(project, 'out'));
    pages.files.delete('/');
    expect(await outputOf('/index.html')).toEqual(outputs.toSorted());
  });
}

it.skipIf(missing)(`the guide's page runs as plain modules${missing}`, async () => {
  const plain = (name: string) => fileOf(name).replace("'tccl/browser'", "'./node_modules/tccl/dist/browser/index.js'");
  for (const name of ['rank.js', 'main.js', 'job.js', 'pool.js']) pages.files.set(`/plain/${name}`, plain(name));
  pages.files.set('/plain/index.html', readFileSync(join(project, 'index.html'), 'utf8'));
  pages.folders.set('/plain/node_modules/tccl/dist/', join(repository, 'dist'));
  expect(await outputOf('/plain/index.html')).toEqual(outputs.toSorted());
});

it.skipIf(missing)(`the guide's service worker isolates a page whose server sets no headers${missing}`, async () => {
  const isolating = pages.headers;
  pages.headers = {};
  const module = "import { spawnRanks } from '/dist/browser/index.js';";
  pages.files.set('/plain/isolate.js', fileOf('isolate.js'));
  pages.files.set('/plain/register.js', fileOf('register.js'));
  pages.files.set('/plain/rank.js', fileOf('rank.js').replace("'tccl/browser'", "'/dist/browser/index.js'"));
  pages.files.set(
    '/plain/main.js',
    `import './register.js'; ${module} await spawnRanks(2, './rank.js', { onMessage: (text) => console.log(text) });`,
  );
  pages.files.set(
    '/plain/isolated.html',
    '<!doctype html><title>ranks</title><link rel="icon" href="data:,"><script type="module" src="./main.js"></script>',
  );
  try {
    const page = await pages.page('/plain/isolated.html');
    while (page.complaints.length < 2) await page.waitForEvent('console');
    expect(page.complaints.toSorted()).toEqual(['rank 0 of 2: 1 1 1 1', 'rank 1 of 2: 1 1 1 1']);
    await page.context().close();
  } finally {
    pages.headers = isolating;
  }
});
