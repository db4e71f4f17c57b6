import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { missing } from './chromium.js';
import { IsolatedPages, isolating } from './isolated.js';

let pages: IsolatedPages;
beforeAll(async () => {
  if (missing === '') pages = await IsolatedPages.open();
});
afterAll(() => pages.close());

/** Messages of ranks in the order of ranks, and the error that ended them. */
interface Outcome {
  readonly messages: readonly unknown[];
  readonly error?: { readonly code: string; readonly message: string; readonly rank?: number; readonly cause?: string };
}

let number = 0;
/** Runs ranks of a page on a module of this text. */
async function run(nRanks: number, module: string, options = '{}'): Promise<Outcome> {
  const path = `/rank-${++number}.js`;
  pages.files.set(path, `import { init, group } from '/dist/browser/index.js';\n${module}`);
  const page = await pages.page();
  const outcome = await page.evaluate<Outcome>(
    `(async () => {
      const { spawnRanks } = await import('/dist/browser/index.js');
      const messages = [];
      const onMessage = (message, rank) => (messages[rank] = message);
      try {
        await spawnRanks(${nRanks}, ${JSON.stringify(path)}, { onMessage, ...${options} });
        return { messages };
      } catch (error) {
        const { code, message, rank, cause } = error;
        return { messages, error: { code: code ?? error.name, message, rank, cause: cause && String(cause) } };
      }
    })()`,
  );
  expect(page.complaints).toEqual([]);
  await page.context().close();
  return outcome;
}

describe.skipIf(missing)(`ranks in a page${missing}`, () => {
  it('reduce arrays between workers, blocking and by promises', async () => {
    const { messages, error } = await run(
      4,
      `const comm = await init();
      const x = comm.alloc(Float32Array, 1000).fill(comm.rank + 1);
      await comm.allReduce(x);
      comm.allReduceSync(x);
      postMessage({ rank: comm.rank, nRanks: comm.nRanks, last: x[999], ordinary: await comm.allReduce(comm.rank) });
      await comm.close();`,
    );
    expect(error).toBeUndefined();
    expect(messages).toEqual([0, 1, 2, 3].map((rank) => ({ rank, nRanks: 4, last: 40, ordinary: 6 })));
  });

  it('refuse to wait for successors of dead ranks, which nothing starts', async () => {
    const { messages } = await run(
      1,
      `const comm = await init();
      const refused = await comm.recover([], { replace: true }).catch(({ code, message }) => ({ code, message }));
      postMessage({ refused, usable: await comm.allReduce(1) });
      await comm.close();`,
    );
    const message = expect.stringMatching(/^recover: nothing starts dead ranks again/) as string;
    expect(messages).toEqual([{ refused: { code: 'UNSUPPORTED', message }, usable: 1 }]);
  });

  it('are started with a warning of a setting that does not exist', async () => {
    const page = await pages.page();
    pages.files.set('/nothing.js', "import { init } from '/dist/browser/index.js'; await (await init()).close();");
    await page.evaluate(`import('/dist/browser/index.js').then(({ spawnRanks }) =>
      spawnRanks(2, '/nothing.js', { env: { TCCL_TIMEOT: '3', TCCL_TIMEOUT: '3', OWN: '1' } }))`);
    expect(page.complaints).toEqual([
      'tccl: spawnRanks: TCCL_TIMEOT is set, but there is no such variable; did you mean TCCL_TIMEOUT?',
    ]);
    await page.context().close();
  });

  it('refuse to grow, with and without an id', async () => {
    const { messages } = await run(
      2,
      `const comm = await init();
      const said = [];
      for (const options of [{}, { commId: 'of another page' }]) {
        said.push(await comm.grow(3, options).catch(({ code, message }) => code + ' ' + message));
      }
      postMessage([...said, await comm.allReduce(1)]);
      await comm.close();`,
    );
    const refused = 'UNSUPPORTED grow: a page starts its ranks with spawnRanks, all at once';
    expect(messages).toEqual([0, 1].map(() => [refused, refused, 2]));
  });

  it('load the algorithms over connections, nvls and windows where they are used', async () => {
    const loaded = async (env: string, more = ''): Promise<string[]> => {
      const { messages, error } = await run(
        2,
        `const comm = await init();
        const x = comm.alloc(Float32Array, 1000).fill(comm.rank + 1);
        await comm.allReduce(x);
        ${more}
        const names = performance.getEntriesByType('resource').map(({ name }) => /\\/browser\\/([a-z-]+?)(-[\\w-]{8})?\\.js/.exec(name)?.[1]);
        postMessage({ last: x[999], names });
        await comm.close();`,
        `{ env: ${env} }`,
      );
      expect(error).toBeUndefined();
      const [first] = messages as { last: number; names: string[] }[];
      expect(first?.last).toBe(3);
      return first?.names ?? [];
    };
    expect(await loaded('{}')).not.toEqual(expect.arrayContaining([expect.stringMatching(/open-network|nvls-engine|window/)]));
    expect(await loaded("{ TCCL_ALGO: 'ring' }")).toContain('open-network');
    expect(await loaded("{ TCCL_ALGO: 'nvls' }")).toContain('nvls-engine');
    const put = 'await (await comm.window(x)).close();';
    expect(await loaded('{}', put)).toContain('window');
  });

  it('exchange messages and objects, split, and make communicators of those that are left', async () => {
    const { messages, error } = await run(
      4,
      `const comm = await init({ name: 'all' });
      const { rank, nRanks } = comm;
      const x = new Float64Array(3);
      await Promise.all([comm.send(Float64Array.of(rank, 1, 2), (rank + 1) % nRanks), comm.recv(x, (rank + 3) % nRanks)]);
      const object = await comm.broadcastObject(rank === 2 ? { at: new Date(5), map: new Map([[1n, 'é']]) } : undefined, 2);
      const half = await comm.split(rank % 2);
      const sum = await half.allReduce(rank);
      await half.close();
      const left = rank === 3 ? undefined : await comm.shrink([3]);
      postMessage([x[0], object.at.getTime(), object.map.get(1n), sum, left && (await left.allReduce(1))]);
      await left?.close();
      await comm.close();`,
    );
    expect(error).toBeUndefined();
    expect(messages).toEqual(
      [0, 1, 2, 3].map((rank) => [(rank + 3) % 4, 5, 'é', rank % 2 === 0 ? 2 : 4, rank === 3 ? undefined : 3]),
    );
  });

  it.each([
    ['throws', "throw new RangeError('told to fail')", 'rank 1 of 3 failed: told to fail', 'RangeError: told to fail'],
    [
      'leaves a rejection',
      "void Promise.reject(new Error('nobody listens')); await new Promise(() => {})",
      'rank 1 of 3 failed: nobody listens',
      'Error: nobody listens',
    ],
    ['ends its worker', 'close(); await new Promise(() => {})', "rank 1 of 3's worker ended", undefined],
  ])('a rank that %s ends the calls of the others', async (_, end, message, cause) => {
    const { messages, error } = await run(
      3,
      `const comm = await init();
      if (comm.rank === 1) { ${end} }
      try {
        if (comm.rank === 0) await comm.allReduce(new Float32Array(8));
        else comm.allReduceSync(new Float32Array(8));
      } catch ({ code, rank }) {
        postMessage({ code, rank });
      }
      await comm.close();`,
      '{ graceMs: 60_000 }',
    );
    expect(error).toEqual({ code: 'RANK_DIED', message, rank: 1, ...(cause === undefined ? {} : { cause }) });
    expect(messages).toEqual([{ code: 'RANK_DIED', rank: 1 }, undefined, { code: 'RANK_DIED', rank: 1 }]);
  });

  it('serve a pool: results by rank, errors of a job, and jobs after it', async () => {
    pages.files.set(
      '/job.js',
      `import { servePool } from '/dist/browser/index.js';
      await servePool({
        sum: (comm, x) => comm.allReduce(x + comm.rank),
        square: (x) => x * x,
        fail(comm) {
          if (comm.rank === 1) throw new RangeError('told to fail');
          return comm.allReduce(1);
        },
      });`,
    );
    const page = await pages.page();
    const results = await page.evaluate(`import('/dist/browser/index.js').then(async ({ openPool }) => {
        const pool = await openPool({ ranks: 3, module: () => new Worker('/job.js', { type: 'module' }) });
        const first = await pool.run('sum', 10);
        const failed = await pool.run('fail').catch(({ code, rank, message }) => ({ code, rank, message }));
        const second = await pool.run('sum', 20);
        const unknown = await pool.run('som').catch(({ message }) => message);
        const squares = await pool.map('square', [1, 2, 3, 4]);
        await pool.close();
        return { first, failed, second, unknown, squares };
      })`);
    expect(results).toEqual({
      first: [33, 33, 33],
      failed: { code: 'JOB_FAILED', rank: 1, message: 'run: rank 1 of 3 failed in fail: told to fail' },
      second: [63, 63, 63],
      unknown: expect.stringContaining('did you mean sum') as string,
      squares: [1, 4, 9, 16],
    });
    expect(page.complaints).toEqual([]);
    await page.context().close();
  });

  it('name a module that cannot be loaded, and ranks that do not join', async () => {
    const page = await pages.page();
    const codeOf = (body: string): Promise<string> =>
      page.evaluate(`import('/dist/browser/index.js').then(async ({ spawnRanks, init }) => { ${body} }).then(
        () => 'no error', (error) => error.code + ' ' + (error.rank ?? error.ranks ?? '') + ' ' + error.message)`);
    expect(await codeOf("await spawnRanks(2, '/nowhere.js')")).toMatch(
      /^RANK_DIED [01] rank [01] of 2 failed: the module \/nowhere\.js cannot be loaded: the browser's console says why$/,
    );
    expect(await codeOf("await spawnRanks(1, () => new Worker('/nowhere.js', { type: 'module' }))")).toMatch(
      /^RANK_DIED 0 rank 0 of 1 failed: its module cannot be loaded: the browser's console says why$/,
    );
    expect(await codeOf("await spawnRanks(0, '/x.js')")).toMatch(/^ARGUMENT_RANGE {2}spawnRanks takes a number of ranks from 1/);
    expect(await codeOf('await spawnRanks(2, 7)')).toMatch(/^ARGUMENT_TYPE {2}spawnRanks: module is a URL or a function/);
    expect(await codeOf('await spawnRanks(2, () => 7)')).toMatch(/^ARGUMENT_TYPE {2}spawnRanks: the function that starts rank 0/);
    pages.files.set(
      '/late.js',
      `import { init } from '/dist/browser/index.js';
      addEventListener('message', async ({ data }) => {
        if (data === 'join') await init({ timeoutMs: 2000 }).catch(({ code, ranks }) => postMessage({ code, ranks }));
      });
      postMessage('loaded');`,
    );
    const missed = await page.evaluate(`import('/dist/browser/index.js').then(async ({ spawnRanks }) => {
        const over = new AbortController();
        return new Promise((resolve) => {
          let loaded = 0;
          const onMessage = (message) => {
            if (message !== 'loaded') resolve(message);
            else if (++loaded === 3) for (const rank of [0, 2]) ended.ranks[rank].postMessage('join');
          };
          const ended = spawnRanks(3, '/late.js', { onMessage, signal: over.signal });
          ended.catch(() => {});
        }).finally(() => over.abort());
      })`);
    expect(missed).toEqual({ code: 'RANK_MISSING', ranks: [1] });
    await page.context().close();
  });

  describe('that do not join', () => {
    /** Runs spawnRanks or openPool with a clock that advances once all modules have run. Returns its error, and the console. */
    const idle = async (call: string, module: string): Promise<readonly unknown[]> => {
      const path = `/idle-${++number}.js`;
      // A worker that holds its lock has told the page so, before it says "loaded".
      const held = "(await navigator.locks.query()).held.filter(({ name }) => name.startsWith('tccl:')).length";
      const wait = module === '' ? '' : `while (${held} < 2);`;
      pages.files.set(path, `${module} ${wait} postMessage('loaded');`);
      const page = await pages.page();
      await page.clock.install();
      const ended = page.evaluate(`import('/dist/browser/index.js').then(async ({ spawnRanks, openPool }) => {
        const over = new AbortController();
        window.stop = () => over.abort(new Error('the test is over'));
        let loaded = 0;
        let onLoaded;
        window.loaded = new Promise((resolve) => (onLoaded = resolve));
        const module = () => {
          const worker = new Worker('${path}', { type: 'module' });
          worker.addEventListener('message', ({ data }) => data === 'loaded' && ++loaded === 2 && onLoaded());
          return worker;
        };
        const options = { signal: over.signal };
        return ${call}.then(() => 'no error', ({ code, ranks, message }) => [code, ranks, message]);
      })`);
      await page.waitForFunction('window.loaded');
      await page.evaluate('window.loaded');
      await page.clock.runFor(61_000);
      await page.evaluate('window.stop()');
      const outcome = [await ended, page.complaints];
      await page.context().close();
      return outcome;
    };
    const spawn = 'spawnRanks(2, module, options)';
    const pool = 'openPool({ ranks: 2, module, ...options })';

    it('end with the ranks whose modules have not imported tccl', async () => {
      const message =
        'spawnRanks: ranks 0,1 did not import tccl/browser within 60 s (TCCL_INIT_TIMEOUT): the module of a rank imports it at its top level and calls init';
      expect(await idle(spawn, '')).toEqual([['RANK_MISSING', [0, 1], message], []]);
    });

    it('are waited for, with a warning, where their modules may still call init', async () => {
      expect(await idle(spawn, "import '/dist/browser/index.js';")).toEqual([
        [undefined, undefined, 'the test is over'],
        ['tccl: spawnRanks: no rank called init within 60 s; the promise waits until all have called init and close'],
      ]);
    });

    it('end a pool', async () => {
      const message =
        "openPool: ranks 0,1 did not call servePool within 60 s (TCCL_INIT_TIMEOUT): the module of a pool's rank calls it at its top level";
      expect(await idle(pool, "import '/dist/browser/index.js';")).toEqual([['RANK_MISSING', [0, 1], message], []]);
    });

    it('because nothing started them are told soon', async () => {
      pages.files.set(
        '/alone.js',
        `let nowMs = 0;
        performance.now = () => (nowMs += 200);
        const later = setTimeout;
        globalThis.setTimeout = (action) => later(action, 0);
        const { init, servePool } = await import('/dist/browser/index.js');
        const said = [];
        for (const join of [init, () => servePool({})]) await join().catch(({ code, message }) => said.push(code + ' ' + message));
        postMessage(said);`,
      );
      const page = await pages.page();
      const said = await page.evaluate(`new Promise((resolve) => {
        new Worker('/alone.js', { type: 'module' }).onmessage = ({ data }) => resolve(data);
      })`);
      expect(said).toEqual([
        'RANK_UNKNOWN init: no spawnRanks gave this worker a place within 5 s: start it with spawnRanks, and import tccl/browser at its top level; a worker without others calls init({ rank: 0, nRanks: 1 })',
        'RANK_UNKNOWN servePool: no openPool gave this worker a place within 5 s: start it with openPool, and import tccl/browser at its top level',
      ]);
      await page.context().close();
    });
  });

  it("in the page's own thread a communicator has one rank and no blocking calls", async () => {
    const page = await pages.page();
    const result = await page.evaluate(`import('/dist/browser/index.js').then(async ({ init }) => {
        const comm = await init();
        const sum = await comm.allReduce(7);
        let refused;
        try { comm.allReduceSync(7); } catch ({ code, message }) { refused = code + ' ' + message; }
        await comm.close();
        return [comm.nRanks, sum, refused];
      })`);
    expect(result).toEqual([
      1,
      7,
      "UNSUPPORTED allReduceSync: the page's own thread cannot wait: use the promise form, or start ranks as workers with spawnRanks",
    ]);
    await page.context().close();
  });

  it('say which headers a page needs that is not isolated', async () => {
    pages.headers = {};
    try {
      const page = await pages.page();
      const said = await page.evaluate(`import('/dist/browser/index.js').then(({ spawnRanks }) => spawnRanks(2, '/x.js')).then(
        () => 'no error', ({ code, message }) => code + ' ' + message)`);
      expect(said).toBe(
        'SHARED_MEMORY spawnRanks: this page is not cross-origin isolated, so its workers cannot share memory: serve it with the headers Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp (or credentialless); where you cannot set headers, a service worker can: see the guide "Run ranks in a page"',
      );
      await page.context().close();
    } finally {
      pages.headers = isolating;
    }
  });
});
