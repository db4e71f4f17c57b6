import { execFileSync } from 'node:child_process';
import { openSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { cliPath, fixture, start, type Started } from '../multi-process/cli.js';
import { makeSshHosts, whyNoSshHosts, type SshHosts } from './ssh-hosts.js';

interface Job {
  readonly state: string;
  readonly causes: readonly { readonly ranks: readonly number[]; readonly text: string; readonly advice: string }[];
  readonly hosts: readonly string[];
  readonly ranks: readonly { readonly rank: number; readonly host: string; readonly pid: number }[];
}

interface Report {
  readonly jobs: readonly Job[];
  readonly problems: readonly string[];
}

const reason = whyNoSshHosts();
const N_RANKS = 3;

describe.skipIf(reason !== undefined)(`tccl inspect of two hosts${reason === undefined ? '' : ` (skipped: ${reason})`}`, () => {
  let hosts: SshHosts;
  beforeEach(async () => void (hosts = await makeSshHosts(true)));
  afterEach(() => hosts.remove());

  /** Runs a command on a host as its users do. */
  function on(host: 'a' | 'b', command: string): Started {
    const [ip = '', ...rest] = hosts.on[host === 'a' ? 0 : 1];
    return start(ip, [...rest, ...hosts.ssh.split(' '), host, command]);
  }

  const tccl = (words: string): string => `TCCL_SSH=${JSON.stringify(hosts.ssh)} ${process.execPath} ${cliPath} ${words}`;

  /** A job with rank 0 on host a, ranks 1 and 2 on host b, once all ranks have come to their hang. */
  async function hanging(scenario: string, env = ''): Promise<Started> {
    const command = `run --ssh ${JSON.stringify(hosts.ssh)} --hosts a:1,b:2 --no-prefix ${env} ${process.execPath} ${fixture('hangs.mjs')} ${scenario}`;
    const job = on('a', tccl(command));
    await job.shown(new RegExp(`(.*"pid".*\\s+){${N_RANKS}}`));
    return job;
  }

  /** Output of `tccl inspect` on host a, once `isSaid` accepts it. */
  async function inspected(
    isSaid: (job: Job, report: Report) => boolean,
    stuckAfter = '1s',
  ): Promise<Report & { readonly job: Job }> {
    for (;;) {
      const { stdout } = await on('a', tccl(`inspect --json --stuck-after ${stuckAfter}`)).finished;
      const report = JSON.parse(stdout === '' ? '{"jobs":[],"problems":[]}' : stdout) as Report;
      const [job] = report.jobs;
      if (job !== undefined && isSaid(job, report)) return { ...report, job };
      await delay(100);
    }
  }

  const isStuck = ({ state, causes }: Job): boolean => state === 'stuck' && causes.length > 0;

  test.each([
    { scenario: 'late', ranks: [1], words: /^rank 1 \(process \d+ on b\) is elsewhere in its program and idle.*ranks 0,2 wait/ },
    { scenario: 'circle', ranks: [0, 1, 2], words: /wait for each other in a circle/ },
    {
      scenario: 'otherBranch',
      ranks: [0, 1],
      words: /rank 1 in recv of 4 int32 from rank 0.*rank 1 is in another call than most/,
    },
  ])('$scenario: its cause is named', async ({ scenario, ranks, words }) => {
    await hanging(scenario);
    const { job, problems } = await inspected(isStuck);
    expect(problems).toEqual([]);
    expect(job.hosts).toEqual(['a', 'b']);
    expect(job.ranks.map(({ rank, host }) => `${rank} ${host}`)).toEqual(['0 a', '1 b', '2 b']);
    const named = job.causes.find(({ text }) => words.test(text));
    expect(named?.ranks, JSON.stringify(job.causes)).toEqual(ranks);
  });

  test('stopped: the rank of the other host is named, and its last calls are read', async () => {
    await hanging('stopped');
    await inspected(({ ranks }) => ranks.length === N_RANKS);
    const { job: before } = await inspected(isStuck);
    const pid = before.ranks.find(({ rank }) => rank === 1)?.pid ?? 0;
    await on('b', `kill -STOP ${pid}`).finished;
    const { job } = await inspected(({ causes }) => causes.some(({ text }) => text.includes('stopped')));
    expect(job.causes.map(({ ranks, text }) => `${ranks.join()}: ${text}`).join()).toMatch(
      /^1: rank 1 \(process \d+ on b\) is stopped by a signal.*ranks 0,2 wait for it in allReduce of 4 int32/,
    );
    const folder = join(hosts.directory, 'calls');
    const { stdout } = await on('a', tccl(`inspect --record ${folder}`)).finished;
    expect(stdout).toMatch(/the last calls of 3 ranks of 3 are in/);
    const recordings = readdirSync(folder).map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as object);
    expect(recordings).toMatchObject([
      { rank: 0, hostname: 'a' },
      { rank: 1, hostname: 'b' },
      { rank: 2, hostname: 'b' },
    ]);
  });

  test('a slow network: the data that still move are named, and the network', async () => {
    for (const [ip = '', ...rest] of hosts.on)
      execFileSync(ip, [
        ...rest,
        'tc',
        'qdisc',
        'add',
        'dev',
        'tccl0',
        'root',
        'tbf',
        'rate',
        '16mbit',
        'burst',
        '32k',
        'latency',
        '1s',
      ]);
    await hanging('slow');
    const { job } = await inspected(({ state, causes }) => state === 'moving' && causes.length > 0, '20s');
    const [cause] = job.causes;
    expect(cause?.text).toMatch(/^data move, but slowly: .*allReduce of 1048576 float64/);
    expect(cause?.advice).toMatch(/the program is not at fault: look at the network between the hosts/);
  });

  test('a lost host: its ranks and the way to it are named', async () => {
    await hanging('slow', '-x TCCL_HEARTBEAT=0 -x TCCL_TIMEOUT=0');
    hosts.cut();
    const { job, problems } = await inspected(isStuck);
    expect(problems.join()).toMatch(
      /^b did not answer: .*; run `tccl inspect --here > b.json` there, and give the file here: --report b.json$/,
    );
    const [cause] = job.causes;
    expect(cause?.text).toMatch(/^rank [12] \(on b\) is on a host that did not answer; rank 0 waits for it in allReduce/);
    expect(cause?.advice).toMatch(/look whether b lives and can be reached/);
    // As its message says, from a console of that host.
    const file = join(hosts.directory, 'b.json');
    execFileSync('nsenter', ['--target', String(hosts.init(1)), '--all', process.execPath, cliPath, 'inspect', '--here'], {
      stdio: ['ignore', openSync(file, 'w'), 'inherit'],
    });
    const { stdout } = await on('a', tccl(`inspect --json --stuck-after 1s --report ${file}`)).finished;
    const complete = JSON.parse(stdout) as Report;
    expect(complete.problems).toEqual([]);
    expect(complete.jobs[0]?.causes[0]?.text).toMatch(/^ranks 0-2: all are in allReduce .*, and none comes out/);
  });
});
