import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { fixture, startTccl, type Started } from '../multi-process/cli.js';

/** Time limit of a rank that waits for another: much longer than rank 1 takes once it may continue, on a busy machine. */
const TIMEOUT_SECONDS = 6;
/** Longer than that. */
const STOPPED_MS = 1000 * (TIMEOUT_SECONDS + 1);
const N_RANKS = 3;

const apart = { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' };
const ways = [
  { scenario: 'blocking', way: 'in one segment', env: {} },
  { scenario: 'blocking', way: 'around a ring in one segment', env: { TCCL_ALGO: 'ring' } },
  { scenario: 'blocking', way: 'over sockets', env: { ...apart, TCCL_TEST_CONFIG: '{"blocking":true}' } },
  { scenario: 'blockingMessage', way: 'in one segment', env: {} },
  { scenario: 'promises', way: 'in one segment', env: {} },
  { scenario: 'promises', way: 'on engine threads', env: { TCCL_TEST_CONFIG: '{"engine":"thread"}' } },
  { scenario: 'promises', way: 'over sockets', env: apart },
];

/** Scenarios, in each of which other code reads the clock. */
const alone = ways.filter(
  ({ scenario, way }) => scenario === 'blockingMessage' || way === 'over sockets' || way === 'on engine threads',
);

interface Line {
  readonly rank: number;
  readonly pid?: number;
  readonly name?: string;
  readonly code?: string;
  readonly right?: boolean;
}

const linesOf = (text: string): Line[] =>
  text
    .split('\n')
    .filter((line) => line.endsWith('}'))
    .map((line) => JSON.parse(line) as Line);
const outcomesOf = (text: string): Line[] =>
  linesOf(text)
    .filter(({ code }) => code !== undefined)
    .sort((a, b) => a.rank - b.rank);

/** The ranks' processes, as soon as all but rank 1 wait, or are about to. */
async function pidsOf(job: Started): Promise<number[]> {
  const shown = linesOf(await job.shown(new RegExp(`(.*"pid".*\\s+){${String(N_RANKS)}}`)));
  return Array.from({ length: N_RANKS }, (_, rank) => shown.find((line) => line.rank === rank)?.pid ?? NaN);
}

/** Sends a signal to processes that this test has started. */
function signal(name: NodeJS.Signals, pids: readonly number[]): void {
  for (const pid of pids) {
    if (!(pid > 1)) throw new Error(`${String(pid)} is no process`);
    process.kill(pid, name);
  }
}

const startProgram = (program: string, argument: string, env: Record<string, string> = {}): Started =>
  startTccl(['run', '-n', String(N_RANKS), '--no-prefix', '--grace', '20', '--', process.execPath, fixture(program), argument], {
    env,
  });

const start = (scenario: string, env: Record<string, string>): Started =>
  startProgram('stopped.mjs', scenario, { ...env, TCCL_TIMEOUT: String(TIMEOUT_SECONDS) });

/** Ends processes of a failed test; no rank outlives its launcher. */
function end({ process: launcher }: Started): void {
  if (launcher.exitCode === null && launcher.signalCode === null) launcher.kill('SIGKILL');
}

const isStopped = (pid: number): boolean => /^\d+ \(.*\) T/.test(readFileSync(`/proc/${String(pid)}/stat`, 'latin1'));

/** The kernel stops each thread at its next return to user mode. */
async function stop(pids: readonly number[]): Promise<void> {
  signal('SIGSTOP', pids);
  while (!pids.every(isStopped)) await delay(5);
}

describe.concurrent('a job that was stopped for longer than init() waits', () => {
  const startLate = (): Started => startProgram('late-init.mjs', String(1000 * TIMEOUT_SECONDS));

  test('continues normally', async ({ expect, onTestFinished }) => {
    const job = startLate();
    onTestFinished(() => end(job));
    const pids = await pidsOf(job);
    await delay(500); // so that all but rank 1 wait
    await stop(pids);
    await delay(STOPPED_MS); // there is nothing to wait for
    signal('SIGCONT', pids);
    await delay(500); // so that they look at the clock before rank 1 comes
    signal('SIGUSR2', pids.slice(1, 2));
    const { stdout, stderr, code } = await job.finished;
    expect(outcomesOf(stdout), stderr).toEqual([0, 1, 2].map((rank) => ({ rank, code: 'none', right: true })));
    expect(code).toBe(0);
  });

  test('is distinguished from a single stopped rank', async ({ expect, onTestFinished }) => {
    const job = startLate();
    onTestFinished(() => end(job));
    const pids = await pidsOf(job);
    await stop(pids.slice(1, 2));
    const shown = outcomesOf(await job.shown(/(.*"code".*\s+){2}/));
    signal('SIGKILL', pids.slice(1, 2));
    const { stderr } = await job.finished;
    expect(shown, stderr).toEqual([0, 2].map((rank) => ({ rank, name: 'TimeoutError', code: 'RANK_MISSING' })));
  });
});

describe.concurrent('a job that was stopped for longer than TCCL_TIMEOUT', () => {
  test.for(ways)('continues normally: $scenario, $way', async ({ scenario, env }, { expect, onTestFinished }) => {
    const job = start(scenario, env);
    onTestFinished(() => end(job));
    const pids = await pidsOf(job);
    await delay(500); // so that all but rank 1 look at the clock and wait
    await stop(pids);
    await delay(STOPPED_MS); // there is nothing to wait for
    signal('SIGCONT', pids);
    await delay(500); // so that they look at the clock before rank 1 comes
    signal('SIGUSR2', pids.slice(1, 2));
    const { stdout, stderr, code } = await job.finished;
    expect(outcomesOf(stdout), stderr).toEqual([0, 1, 2].map((rank) => ({ rank, code: 'none', right: true })));
    expect(code).toBe(0);
  });

  test.for(alone)(
    'is distinguished from a single stopped rank: $scenario, $way',
    async ({ scenario, env }, { expect, onTestFinished }) => {
      const job = start(scenario, env);
      onTestFinished(() => end(job));
      const pids = await pidsOf(job);
      await stop(pids.slice(1, 2));
      const shown = outcomesOf(await job.shown(/(.*"code".*\s+){2}/));
      signal('SIGCONT', pids.slice(1, 2));
      signal('SIGUSR2', pids.slice(1, 2));
      const { stderr } = await job.finished;
      expect(
        shown.map(({ rank }) => rank),
        stderr,
      ).toEqual([0, 2]);
      // The rank that detects it first reports it to the other.
      expect(
        shown.map(({ name }) => name),
        stderr,
      ).toContain('TimeoutError');
      for (const { code } of shown) expect(code, stderr).toBe('TIMEOUT');
    },
  );
});
