import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { fixture, startTccl, tccl, type Started } from './cli.js';

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
  { scenario: 'groupMember', ranks: [1], words: /rank 1 / },
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

test('without a job it says so', async () => {
  const { code, stderr } = await tccl(['inspect', '999999999']);
  expect(code).toBe(2);
  expect(stderr).toMatch(/no job 999999999 of this user runs on this host/);
});
