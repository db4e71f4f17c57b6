import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { algorithms } from '../../src/runtime/algorithms/call.js';
import { fixture, startTccl, tccl } from '../multi-process/cli.js';
import { perfettoImport, type PerfettoTrace, type PerfettoTrack } from '../multi-process/perfetto.js';

const directory = mkdtempSync(join(tmpdir(), 'tccl-feedback-'));
afterAll(() => rmSync(directory, { recursive: true }));

async function run(ranks: number, env: NodeJS.ProcessEnv) {
  const finished = await tccl(['run', '-n', String(ranks), '--no-prefix', '--', process.execPath, fixture('feedback.mjs')], {
    env,
  });
  return { ...finished, lines: finished.stdout.trim().split('\n') };
}

describe('TCCL_DEBUG', () => {
  it('logs nothing when unset, and only the version with VERSION', async () => {
    expect(await run(2, {})).toMatchObject({ code: 0, stdout: '', stderr: '' });
    expect((await run(2, { TCCL_DEBUG: 'version' })).stdout).toMatch(/^TCCL version \d+\.\d+\.\d+\n$/);
  });

  it('INFO describes the communicator on every rank, in the format of NCCL’s lines', async () => {
    const { lines, code } = await run(3, { TCCL_DEBUG: 'INFO' });
    expect(code).toBe(0);
    expect(
      lines.filter((line) =>
        /^\S+:\d+:\d+ \[[0-2]\] TCCL INFO comm 0x[0-9a-f]+ rank [0-2] nranks 3 cudaDev [0-2] busId [0-2] commId 0x[0-9a-f]{16} - Init COMPLETE$/.test(
          line,
        ),
      ),
    ).toHaveLength(3);
    expect(lines.some((line) => line.endsWith('TCCL INFO TCCL_DEBUG set by environment to INFO.'))).toBe(true);
    expect(lines.some((line) => line.endsWith('[0] TCCL INFO allReduce: direct'))).toBe(true);
    expect(lines.some((line) => line.includes('opCount'))).toBe(false);
    expect(
      lines.filter((line) =>
        / TCCL INFO comm 0x[0-9a-f]+ rank [0-2] nranks 3 cudaDev [0-2] busId [0-2] - Destroy COMPLETE$/.test(line),
      ),
    ).toHaveLength(3);
  });

  it('INFO names the communicator of each line and call, and the variables of a process once', async () => {
    const { lines } = await run(2, { TCCL_DEBUG: 'INFO', TCCL_DEBUG_SUBSYS: 'ALL', TCCL_TEST_CHILD: '1' });
    const named = lines.filter((line) => line.endsWith('is called "child"'));
    expect(named.map((line) => /comm (0x[0-9a-f]+) rank/.exec(line)?.[1]).sort()).toEqual(['0x1002', '0x2']);
    expect(lines.filter((line) => / barrier \(direct\) comm 0x(1002|2) \[nranks=2\]$/.test(line))).toHaveLength(2);
    expect(lines.filter((line) => line.includes('TCCL_DEBUG set by environment'))).toHaveLength(2);
  });

  it('WARN names unknown variables, once a process; without it only `tccl run` does', async () => {
    const text = 'TCCL_AGLO is set, but there is no such variable; did you mean TCCL_ALGO?';
    const told = await run(2, { TCCL_DEBUG: 'WARN', TCCL_AGLO: 'ring', TCCL_TEST_CHILD: '1' });
    expect(told.lines.filter((line) => line.endsWith(`TCCL WARN ${text}`))).toHaveLength(2);
    const quiet = await run(2, { TCCL_AGLO: 'ring' });
    expect(quiet).toMatchObject({ code: 0, stdout: '', stderr: `tccl run: ${text}\n` });
  });

  it('never writes control characters to a terminal', async () => {
    const { lines, stderr } = await run(1, { TCCL_DEBUG: 'WARN', 'TCCL_\u001b]0;title\u0007\nX': '1' });
    expect(lines.filter((line) => line.includes('no such variable'))).toEqual([
      expect.stringMatching(/ TCCL WARN TCCL_\\x1b\]0;title\\x07\\nX is set, but there is no such variable/),
    ]);
    expect(stderr).not.toContain('\u001b');
  });

  it('INFO gives the way of ordinary arrays to the others, and the reason', async () => {
    const { lines } = await run(2, { TCCL_DEBUG: 'INFO' });
    expect(lines.filter((line) => / rank [01] ordinary arrays: read in place by process_vm_readv$/.test(line))).toHaveLength(2);
    const { lines: refused } = await run(2, { TCCL_DEBUG: 'INFO', TCCL_CMA_DISABLE: '1' });
    expect(
      refused.filter((line) => line.endsWith('ordinary arrays: copied through shared memory (TCCL_CMA_DISABLE=1)')),
    ).toHaveLength(2);
  });

  it('INFO gives the way of summing float16, and the reason', async () => {
    const { lines } = await run(2, { TCCL_DEBUG: 'INFO', TCCL_MACHINE_CODE_DISABLE: '1' });
    expect(lines.filter((line) => line.endsWith('float16 sums: by WebAssembly (TCCL_MACHINE_CODE_DISABLE=1)'))).toHaveLength(2);
    const { lines: usual } = await run(2, { TCCL_DEBUG: 'INFO' });
    expect(
      usual.filter((line) => / rank [01] float16 sums: (by machine code|by WebAssembly \((?!TCCL).*\))$/.test(line)),
    ).toHaveLength(2);
  });

  it('INFO shows for ranks that share no memory the algorithms of as many hosts', async () => {
    const { lines } = await run(2, { TCCL_DEBUG: 'INFO', TCCL_SHM_DISABLE: '1' });
    const choices = lines.map((line) => /\[0\] TCCL INFO ((allReduce|barrier|allGather): .*)$/.exec(line)?.[1]);
    expect(new Set(choices.filter((line) => line !== undefined))).toEqual(
      new Set(['allReduce: hierarchical up to 61440 bytes, then ring', 'barrier: hierarchical', 'allGather: ring']),
    );
  });

  it('shows rings, connections and calls when their subsystems are set', async () => {
    const { lines } = await run(3, { TCCL_DEBUG: 'INFO', TCCL_DEBUG_SUBSYS: 'GRAPH,NET,COLL', TCCL_ALGO: 'ring' });
    expect(lines.filter((line) => line.endsWith('Channel 00/01 : 0 1 2'))).toHaveLength(1);
    expect(
      lines.filter((line) => / Channel 00\/0 : (0\[0\] -> 1\[1\]|1\[1\] -> 2\[2\]|2\[2\] -> 0\[0\]) via SHM$/.test(line)),
    ).toHaveLength(3);
    expect(
      lines.filter((line) =>
        /allReduce: opCount 0 allReduce of 100000 float32 \(sum, ring\) comm 0x[0-9a-f]+ \[nranks=3\]$/.test(line),
      ),
    ).toHaveLength(3);
    expect(
      lines.filter((line) =>
        /broadcast: opCount 1 broadcast of 3 int32 from rank 1 \(ring\) comm 0x[0-9a-f]+ \[nranks=3\]$/.test(line),
      ),
    ).toHaveLength(3);
    expect(lines.some((line) => line.includes('Init COMPLETE'))).toBe(false);
  });

  it('shows trees, and the network interface', async () => {
    const { lines } = await run(5, { TCCL_DEBUG: 'INFO', TCCL_ALGO: 'tree' });
    const trees = lines.flatMap((line) => /TCCL INFO (Trees .*)$/.exec(line)?.[1] ?? []).sort();
    // 0 ─ 4 ─ 2 ─ {1, 3}, and the same shifted by one: 1 ─ 0 ─ 3 ─ {2, 4}.
    expect(trees).toEqual([
      'Trees [0] -1/-1/-1->1->2 [1] 0/-1/-1->1->-1',
      'Trees [0] -1/-1/-1->3->2 [1] 2/4/-1->3->0',
      'Trees [0] 1/3/-1->2->4 [1] -1/-1/-1->2->3',
      'Trees [0] 2/-1/-1->4->0 [1] -1/-1/-1->4->3',
      'Trees [0] 4/-1/-1->0->-1 [1] 3/-1/-1->0->1',
    ]);
    expect(lines.filter((line) => / TCCL INFO Bootstrap: Using lo:127\.0\.0\.1<0>$/.test(line))).toHaveLength(5);
    writeFileSync(join(directory, 'trees.log'), lines.join('\n'));
    const read = await tccl(['log', join(directory, 'trees.log')]);
    expect(read.code, read.stdout).toBe(0);
  });

  it('WARN names a forced protocol that no call uses', async () => {
    const { lines } = await run(2, { TCCL_DEBUG: 'WARN', TCCL_PROTO: 'LL' });
    expect(
      lines.filter((line) => line.includes('TCCL WARN TCCL_PROTO=ll has no effect: it affects rings, and no call here uses one')),
    ).toHaveLength(2);
    expect((await run(2, { TCCL_DEBUG: 'WARN', TCCL_PROTO: 'LL', TCCL_ALGO: 'ring' })).stdout).not.toContain('WARN');
  });

  it.each([{}, { TCCL_SHM_DISABLE: '1' }])('shows messages, groups and windows, too (%j)', async (env) => {
    const { lines } = await run(2, { ...env, TCCL_DEBUG: 'INFO', TCCL_DEBUG_SUBSYS: 'COLL' });
    const told = lines
      .filter((line) => line.includes('[0] TCCL INFO'))
      .map((line) => line.split('TCCL INFO ')[1]?.replace(/ comm 0x1 \[nranks=2\]$/, ''))
      .filter((line) => !/direct|ring|tree|hierarchical/.test(line ?? ''));
    expect(told).toEqual([
      'send: opCount 0 send of 5 int32 to rank 1',
      'recv: opCount 1 recv of 5 int32 from rank 1',
      'group: opCount 2 group of 2 messages and 0 collectives',
      'recv: opCount 3 recv of 5 int32 from rank 1',
      'send: opCount 4 send of 5 int32 to rank 1',
      'window: opCount 3 window',
      'put: opCount 5 put of 2 int32 to rank 1 at 3, with a signal',
      'waitSignal: opCount 6 waitSignal of 1 from rank 1',
      'get: opCount 7 get of 2 int32 from rank 1 at 1',
      'window close: opCount 4 window close (window 1)',
    ]);
  });

  it('writes to a file a process', async () => {
    const { stdout, code } = await run(2, { TCCL_DEBUG: 'INFO', TCCL_DEBUG_FILE: join(directory, 'log.%h.%p.%%p.%x') });
    expect({ stdout, code }).toEqual({ stdout: '', code: 0 });
    const files = readdirSync(directory).filter((name) => name.startsWith('log.'));
    expect(files).toHaveLength(2);
    for (const file of files) expect(file).toMatch(new RegExp(`^log\\.${hostname()}\\.\\d+\\.%p\\.%x$`));
    for (const file of files) expect(readFileSync(join(directory, file), 'utf8')).toContain('Init COMPLETE');
  });

  it('ends with a message where the disk is full, and the job continues', async () => {
    const { code, stderr } = await run(2, { TCCL_DEBUG: 'INFO', TCCL_DEBUG_FILE: '/dev/full' });
    expect(code, stderr).toBe(0);
    expect(
      stderr.match(/^tccl: the log \(TCCL_DEBUG_FILE\) ends here, because \/dev\/full cannot be written any more: ENOSPC/gm),
    ).toHaveLength(2);
  });

  it.each([{ TCCL_DEBUG: 'INFO', TCCL_DEBUG_FILE: join(directory, 'many.log') }, { TCCL_TRACE: join(directory, 'many.json') }])(
    'keeps no file open for communicators that were closed, and one for all that are open (%j)',
    async (env) => {
      const { stdout, stderr, code } = await tccl(
        ['run', '-n', '2', '--no-prefix', '--', process.execPath, fixture('open-files.mjs')],
        { env },
      );
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout.trim().split('\n')).toEqual(['0', '0']);
    },
  );

  it('can be read by tccl log like a log of NCCL', async () => {
    const { stdout } = await run(3, { TCCL_DEBUG: 'INFO', TCCL_ALGO: 'ring' });
    const path = join(directory, 'job.log');
    writeFileSync(path, stdout);
    const read = await tccl(['log', path, '--json']);
    expect(read.code, read.stdout + read.stderr).toBe(0);
    const [communicator] = (JSON.parse(read.stdout) as { communicators: Record<string, unknown>[] }).communicators;
    expect(communicator).toMatchObject({ nRanks: 3, rings: [{ channel: 0, ranks: [0, 1, 2] }] });
  });

  it.each([
    [{ TCCL_DEBUG: 'INFOO' }, 'TCCL_DEBUG=INFOO is not one of NONE, VERSION, WARN, INFO, TRACE; did you mean INFO?'],
    [
      { TCCL_DEBUG: 'INFO', TCCL_DEBUG_SUBSYS: 'COL' },
      'TCCL_DEBUG_SUBSYS=COL is not a list of INIT, COLL, GRAPH, TUNING, NET, ENV, ALL, or ^ and such a list; did you mean COLL?',
    ],
    [{ TCCL_ALGO: '^ring' }, `TCCL_ALGO=^ring is not one of ${algorithms.join(', ')}; lists and ^ are not supported`],
    [{ TCCL_TRACE: '/nowhere/trace.json' }, 'the trace (TCCL_TRACE) cannot be written here'],
  ])('%j is refused', async (env, message) => {
    const { code, stderr } = await run(1, env);
    expect(code).toBe(1);
    expect(stderr).toContain(message);
  });
});

/** The trace that a job left, as Perfetto draws it; nothing in it may be a problem. */
function traceAt(path: string): PerfettoTrace {
  const trace = perfettoImport(readFileSync(path, 'utf8'));
  expect(trace.problems).toEqual([]);
  trace.tracks.forEach(({ slices }) => {
    expect(slices.every(({ name, parent }) => (parent?.category === 'collective') === name.startsWith('step '))).toBe(true);
  });
  return { ...trace, tracks: [...trace.tracks].sort((a, b) => (a.sortIndex ?? 0) - (b.sortIndex ?? 0)) };
}

const callsOf = ({ slices }: PerfettoTrack) => slices.filter(({ category }) => category === 'collective');

describe('TCCL_TRACE', () => {
  it.each(['direct', 'ring'])('has a track for each rank, a slice for each operation, and steps (%s)', async (algorithm) => {
    const path = join(directory, `trace-${algorithm}.json`);
    // So long that no rank can find all of it in one look.
    const env = { TCCL_TRACE: path, TCCL_ALGO: algorithm, TCCL_TEST_COUNT: '4000000' };
    expect((await run(3, env)).code).toBe(0);
    const { processes, tracks, asynchronous } = traceAt(path);
    expect([...processes.values()]).toEqual([hostname()]);
    expect(tracks.map(({ name }) => name)).toEqual(['rank 0', 'rank 1', 'rank 2']);
    for (const track of tracks) {
      const calls = callsOf(track);
      expect(calls.map(({ name, args }) => [name, args['number'], args['bytes'], args['algorithm']])).toEqual([
        ['allReduce', 0, 16_000_000, algorithm],
        ['broadcast', 1, 12, algorithm],
        ['barrier', 2, undefined, algorithm],
        ['window', 3, undefined, algorithm],
        ['window close', 4, undefined, algorithm],
      ]);
      expect(calls.map(({ args }) => [args['operator'], args['root']])).toEqual([
        ['sum', undefined],
        [undefined, 1],
        [undefined, undefined],
        [undefined, undefined],
        [undefined, undefined],
      ]);
      expect(calls.every(({ from, to }) => from > 0 && to !== undefined && to >= from)).toBe(true);
    }
    if (algorithm === 'ring') expect(tracks.some(({ slices }) => slices.some(({ category }) => category === 'step'))).toBe(true);
    tracks.forEach(({ tid, name: track }, rank) => {
      const operations = asynchronous.filter((one) => one.tid === tid);
      expect(operations.map(({ name }) => name)).toEqual(
        ['send', 'recv', 'group', 'recv', 'send', 'put', 'waitSignal', 'get'].map((name) => `${track}: ${name}`),
      );
      // The end adds nothing where all went well.
      expect(operations[0]!.args).toEqual({ number: 0, peer: (rank + 1) % 3, count: 5, type: 'int32', bytes: 20 });
      expect(operations.every(({ from, to }) => to !== undefined && to >= from)).toBe(true);
    });
    // The same call was under way at all ranks at some time.
    const sums = tracks.map((track) => callsOf(track)[0]!);
    expect(Math.max(...sums.map(({ from }) => from))).toBeLessThanOrEqual(Math.min(...sums.map(({ to }) => to ?? 0)));
  });

  it('shows the finished and current operations of ranks that were killed', async () => {
    const path = join(directory, 'killed.json');
    const job = startTccl(['run', '-n', '3', '--', process.execPath, fixture('waits-for-ever.mjs')], {
      env: { TCCL_TRACE: path },
    });
    // All of it is in the file before anybody ends the ranks.
    const ended = job.finished.then(({ stderr }) => {
      throw new Error(`it ended by itself: ${stderr}`);
    });
    const complete = (async () => {
      while (
        !existsSync(path) ||
        (readFileSync(path, 'utf8').match(/"name":"(allReduce".*"ph":"B"|rank \d: recv")/g) ?? []).length < 3 + 3
      )
        await new Promise((resolve) => setTimeout(resolve, 20));
    })();
    await Promise.race([complete, ended]);
    ended.catch(() => {});
    job.process.kill('SIGKILL');
    await job.finished;

    const { tracks, asynchronous } = traceAt(path);
    // Rank 0 waits in a blocking call, rank 1 in the event loop, rank 2 for a message in a blocking one.
    expect(tracks.map((track) => callsOf(track).map(({ name, to }) => [name, to !== undefined]))).toEqual([
      [
        ['allReduce', true],
        ['allReduce', false],
      ],
      [
        ['allReduce', true],
        ['allReduce', false],
      ],
      [['allReduce', true]],
    ]);
    expect(asynchronous.map(({ name, to }) => [name, to])).toEqual([['rank 2: recv', undefined]]);
  });

  it('is a file for each host, with all its communicators under one process, though their members count hosts differently', async () => {
    const path = join(directory, 'children.json');
    const { code, stderr } = await tccl(['run', '-n', '4', '--', process.execPath, fixture('two-hosts-split.mjs')], {
      env: { TCCL_TRACE: path },
    });
    expect(code, stderr).toBe(0);
    for (const [host, ranks] of [
      [0, [0, 1]],
      [1, [2, 3]],
    ] as const) {
      const { tracks } = traceAt(host === 0 ? path : join(directory, `children.${hostname()}.json`));
      expect(new Set(tracks.map(({ pid }) => pid))).toEqual(new Set([host]));
      expect(tracks.map(({ name }) => name)).toEqual([
        ...ranks.map((rank) => `rank ${rank}`),
        ...ranks.map((rank, i) => `rank ${rank}, ${i} of half`),
      ]);
    }
  });
});
