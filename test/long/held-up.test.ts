import { describe, test } from 'vitest';
import { fixture, startTccl } from '../multi-process/cli.js';

const apart = { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' };
const hosts = { TCCL_TEST_HOSTS: '1' };
const blocking = { TCCL_TEST_CONFIG: '{"blocking":true}' };

/** Scenarios with rank 2 of 4 stopped, in which some ranks wait for one that waits itself. */
const ways = [
  { scenario: 'blocking', way: 'in one segment', env: {} },
  { scenario: 'blocking', way: 'around a ring in one segment', env: { TCCL_ALGO: 'ring' } },
  { scenario: 'blocking', way: 'along trees in one segment', env: { TCCL_ALGO: 'tree' } },
  { scenario: 'blocking', way: 'by multicast', env: { TCCL_ALGO: 'nvls' } },
  { scenario: 'promises', way: 'on engine threads', env: { TCCL_TEST_CONFIG: '{"engine":"thread"}' } },
  { scenario: 'promises', way: 'over sockets', env: apart },
  { scenario: 'blocking', way: 'over sockets, in place', env: { ...apart, ...blocking } },
  { scenario: 'promises', way: 'on two hosts', env: hosts },
  { scenario: 'blocking', way: 'on two hosts, in place', env: { ...hosts, ...blocking } },
  { scenario: 'messages', way: 'in one segment', env: {} },
  { scenario: 'messages', way: 'over sockets', env: apart },
  { scenario: 'split', way: 'in one segment', env: {} },
  { scenario: 'split', way: 'over sockets, in place', env: { ...apart, ...blocking } },
  { scenario: 'window', way: 'on two hosts', env: hosts },
  ...['signal', 'messageFirst', 'messageAfter'].flatMap((scenario) => [
    { scenario, way: 'in one segment', env: {} },
    { scenario, way: 'around a ring in one segment', env: { TCCL_ALGO: 'ring' } },
    { scenario, way: 'over sockets', env: apart },
    { scenario, way: 'over sockets, in place', env: { ...apart, ...blocking } },
    { scenario, way: 'on two hosts', env: hosts },
  ]),
];

const N_RANKS = 4;
const STOPPED = 2;

interface Line {
  readonly rank: number;
  readonly pid?: number;
  readonly code?: string;
  readonly ranks?: readonly number[];
  readonly message?: string;
}

const linesOf = (text: string): Line[] =>
  text
    .split('\n')
    .filter((line) => line.endsWith('}'))
    .map((line) => JSON.parse(line) as Line);

describe.concurrent('a rank that does not progress', { timeout: 120_000 }, () => {
  test.for(ways)(
    'is named on all ranks that wait for it, directly or indirectly: $scenario, $way',
    async ({ scenario, env }, { expect, onTestFinished }) => {
      const args = [
        'run',
        '-n',
        String(N_RANKS),
        '--no-prefix',
        '--grace',
        '20',
        '--',
        process.execPath,
        fixture('held-up.mjs'),
        scenario,
        String(STOPPED),
      ];
      const job = startTccl(args, { env: { ...env, TCCL_TIMEOUT: '6' } });
      onTestFinished(() => {
        if (job.process.exitCode === null && job.process.signalCode === null) job.process.kill('SIGKILL');
      });
      const shown = linesOf(await job.shown(new RegExp(`(.*"code".*\\s+){${String(N_RANKS - 1)}}`)));
      const pid = shown.find((line) => line.rank === STOPPED)?.pid ?? NaN;
      if (!(pid > 1)) throw new Error(`${String(pid)} is no process`);
      process.kill(pid, 'SIGCONT');
      const { stderr } = await job.finished;
      const told = shown.filter(({ code }) => code !== undefined).sort((a, b) => a.rank - b.rank);
      expect(
        told.map(({ rank, code, ranks }) => ({ rank, code, ranks })),
        stderr + told.map(({ rank, message }) => `rank ${String(rank)}: ${String(message)}`).join('\n'),
      ).toEqual([0, 1, 3].map((rank) => ({ rank, code: 'TIMEOUT', ranks: [STOPPED] })));
    },
  );
});
