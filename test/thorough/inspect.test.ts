import { mkdtempSync, readdirSync, readFileSync, rmSync, watch } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, describe, expect, test } from 'vitest';
import { fixture, start as startProgram, startTccl, tccl, type Started } from '../multi-process/cli.js';

interface Cause {
  readonly ranks: readonly number[];
  readonly waiting: readonly number[];
  readonly text: string;
}
interface Job {
  readonly state: string;
  readonly causes: readonly Cause[];
  readonly ranks: readonly {
    readonly rank: number;
    readonly calls: number;
    readonly waits: readonly { readonly text: string }[];
  }[];
}

interface Finding {
  readonly code: string;
  readonly problem: string;
}

interface Recording {
  readonly rank: number;
  readonly entries: readonly { readonly profiling_name: string; readonly state: string }[];
}

const N_RANKS = 3;

function start(scenario: string, env: Record<string, string> = {}): Started {
  return startTccl(['run', '-n', String(N_RANKS), '--no-prefix', '--', process.execPath, fixture('hangs.mjs'), scenario], {
    env,
  });
}

async function pidsOf(job: Started): Promise<number[]> {
  const text = await job.shown(new RegExp(`(.*"pid".*\\s+){${N_RANKS}}`));
  const lines = text.split('\n').filter((line) => line.includes('"pid"'));
  const shown = lines.map((line) => JSON.parse(line) as { readonly rank: number; readonly pid: number });
  return shown.sort((a, b) => a.rank - b.rank).map(({ pid }) => pid);
}

function end({ process: launcher }: Started, pids: readonly number[]): void {
  for (const pid of pids) if (pid > 1) process.kill(pid, 'SIGKILL');
  launcher.kill('SIGKILL');
}

/** The job as `tccl inspect` shows it, once it is in this state. */
async function inspected(pid: number, state: string): Promise<{ readonly job: Job; readonly code: number | null }> {
  for (;;) {
    const { stdout, code } = await tccl(['inspect', String(pid), '--json', '--stuck-after', '1s']);
    const { jobs = [] } = JSON.parse(stdout === '' ? '{}' : stdout) as { readonly jobs?: readonly Job[] };
    const [job] = jobs;
    if (job?.state === state && (state !== 'stuck' || job.causes.length > 0)) return { job, code };
    await delay(100);
  }
}

const ways = [
  { way: 'in one memory', env: {} },
  { way: 'over sockets', env: { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1', TCCL_TEST_CONFIG: '{"blocking":true}' } },
];

/** Hangs of rank 1, and the words that name the cause. */
const hangs = [
  { scenario: 'late', ranks: [1], words: /is elsewhere in its program and idle.*ranks 0,2 wait for it in allReduce of 4 int32/ },
  { scenario: 'stopped', ranks: [1], words: /is stopped by a signal.*ranks 0,2 wait for it in allReduce of 4 int32/ },
  { scenario: 'busy', ranks: [1], words: /computes outside tccl.*ranks 0,2 wait for it in barrier/ },
  {
    scenario: 'crossed',
    ranks: [0, 1, 2],
    words: /wait for each other in a circle.*call \d+ of "side".*rank 1 is in another call than most/,
  },
  { scenario: 'circle', ranks: [0, 1, 2], words: /wait for each other in a circle: rank 0 in recv of 4 int32 from rank 2/ },
  {
    scenario: 'anySource',
    ranks: [0, 1, 2],
    words: /wait for each other in a circle: rank 0 in recv of 4 int32 with tag 3 from any rank/,
  },
  { scenario: 'groupMember', ranks: [1], words: /rank 1 / },
  { scenario: 'signal', ranks: [1], words: /rank 1 .*rank 0 waits for it in waitSignal from rank 1/ },
  { scenario: 'agree', ranks: [1], words: /rank 1 .*ranks 0,2 wait for it in agree/ },
  { scenario: 'otherBranch', ranks: [0, 1], words: /rank 1 in recv of 4 int32 from rank 0.*rank 1 is in another call than most/ },
];

describe.each(ways)('a job that hangs $way', ({ env }) => {
  test.each(hangs)('$scenario: its cause is named', async ({ scenario, ranks, words }) => {
    const job = start(scenario, env);
    const pids = await pidsOf(job);
    try {
      if (scenario === 'stopped') {
        const pid = pids[1] ?? 0;
        process.kill(pid, 'SIGSTOP');
        while (!/^\d+ \(.*\) T/.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))) await delay(5);
      }
      const { job: shown, code } = await inspected(job.process.pid ?? 0, 'stuck');
      expect(code).toBe(1);
      const named = shown.causes.find((cause) => words.test(cause.text));
      expect(named?.ranks, JSON.stringify(shown.causes)).toEqual(ranks);
    } finally {
      end(job, pids);
    }
  });
});

test('ranks that are threads are read like processes: which one computes, and the last calls', async () => {
  const job = startProgram(process.execPath, [fixture('hanging-threads.mjs')]);
  try {
    await job.shown(/"pid"/);
    const { job: shown } = await inspected(job.process.pid ?? 0, 'stuck');
    expect(shown.causes).toMatchObject([{ ranks: [1], waiting: [0, 2] }]);
    expect(shown.causes[0]?.text).toMatch(/computes outside tccl.*ranks 0,2 wait for it in barrier/);
  } finally {
    job.process.kill('SIGKILL');
  }
});

test('a job that moves shows its calls', async () => {
  const job = start('slow');
  const pids = await pidsOf(job);
  try {
    const { job: shown, code } = await inspected(pids[2] ?? 0, 'moving');
    expect(code).toBe(0);
    expect(shown.ranks.map(({ rank }) => rank)).toEqual([0, 1, 2]);
    for (const { calls } of shown.ranks) expect(calls).toBeGreaterThan(5);
  } finally {
    end(job, pids);
  }
});

test.each([
  { scenario: 'dead', words: /rank 1 died/ },
  { scenario: 'otherCollective', words: /rank 1 called allGather/ },
  { scenario: 'otherCount', words: /rank 1 called allReduce of 2 int32/ },
  { scenario: 'otherOrder', words: /rank 1 called broadcast/ },
])('$scenario ends the job, and the errors name rank 1', async ({ scenario, words }) => {
  const { stdout } = await start(scenario).finished;
  expect(stdout).toMatch(words);
});

describe('the last calls of ranks', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tccl-calls-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  /** The verdict of `tccl diagnose` on the recordings in a folder. */
  const diagnosed = async (path: string): Promise<string> => {
    const { stdout } = await tccl(['diagnose', path, '--json']);
    const { findings } = JSON.parse(stdout) as { readonly findings: readonly Finding[] };
    return findings.map(({ code, problem }) => `${code}: ${problem}`).join('\n');
  };

  test.each(ways)('are written by tccl inspect --record, also of a stopped rank, $way', async ({ env }) => {
    const job = start('stopped', env);
    const pids = await pidsOf(job);
    try {
      process.kill(pids[1] ?? 0, 'SIGSTOP');
      await inspected(job.process.pid ?? 0, 'stuck');
      const path = join(folder, `stopped${Object.keys(env).length}`);
      const { code, stdout } = await tccl(['inspect', String(job.process.pid), '--record', path]);
      expect(stdout).toMatch(/the last calls of 3 ranks of 3 are in /);
      expect(code).toBe(0);
      expect(await diagnosed(path)).toMatch(/^rank-behind: rank 1 never called allReduce \(sum\)/);
    } finally {
      end(job, pids);
    }
  });

  test.each([
    { scenario: 'circle', words: /message-unmatched: rank \d waits to receive from rank \d/ },
    { scenario: 'groupMember', words: /message-unmatched: rank 2 waits to receive from rank 1 .*does not send to it/ },
    {
      scenario: 'signal',
      words: /message-unmatched: rank 0 waits to get a signal from rank 1 .*does not signal it.*called last signal to 0/,
    },
    { scenario: 'agree', words: /rank-behind: rank 1 never called agree .*group 0\.0 \(bootstrap\)/ },
  ])('show messages and other calls: $scenario', async ({ scenario, words }) => {
    const job = start(scenario);
    const pids = await pidsOf(job);
    try {
      await inspected(job.process.pid ?? 0, 'stuck');
      const path = join(folder, scenario);
      await tccl(['inspect', String(job.process.pid), '--record', path]);
      expect(await diagnosed(path)).toMatch(words);
    } finally {
      end(job, pids);
    }
  });

  test('are written after an error to the file of TCCL_RECORD', async () => {
    await start('otherCollective', { TCCL_RECORD: join(folder, 'error_%r.json') }).finished;
    const files = readdirSync(folder).filter((name) => name.startsWith('error_'));
    expect(files.sort()).toEqual(['error_0.json', 'error_1.json', 'error_2.json']);
    const recordings = files.map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Recording);
    expect(recordings.map(({ rank }) => rank)).toEqual([0, 1, 2]);
    expect(recordings.map(({ entries }) => entries.at(-1)?.profiling_name)).toEqual([
      'tccl:allReduce (sum)',
      'tccl:allGather',
      'tccl:allReduce (sum)',
    ]);
  });

  test('are written at SIGUSR2, and the job goes on', async () => {
    const written = new Promise<void>((resolve) => {
      const names = new Set<string | null>();
      const watcher = watch(folder, (_, name) => {
        if (/^signal_\d\.json$/.test(name ?? '') && names.add(name).size === N_RANKS) {
          watcher.close();
          resolve();
        }
      });
    });
    const job = start('late', { TCCL_RECORD: join(folder, 'signal_%r.json') });
    const pids = await pidsOf(job);
    try {
      await inspected(job.process.pid ?? 0, 'stuck');
      job.process.kill('SIGUSR2');
      await written;
      for (const name of ['signal_0.json', 'signal_1.json', 'signal_2.json']) {
        const { rank, entries } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as Recording;
        expect(entries.filter(({ state }) => state === 'started')).toHaveLength(rank === 1 ? 0 : 1);
      }
      expect((await inspected(job.process.pid ?? 0, 'stuck')).code).toBe(1);
    } finally {
      end(job, pids);
    }
  });

  test('need a file for each rank', async () => {
    const { stdout, stderr } = await start('late', { TCCL_RECORD: 'calls.json' }).finished;
    expect(stdout + stderr).toMatch(/TCCL_RECORD.*a file name with %r, which becomes the rank/);
  });
});

test('without a job it says so', async () => {
  const { code, stderr } = await tccl(['inspect', '999999999']);
  expect(code).toBe(2);
  expect(stderr).toMatch(/no job 999999999 of this user runs on this host/);
});
