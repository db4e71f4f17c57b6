import { describe, test } from 'vitest';
import { fixture, startTccl } from '../multi-process/cli.js';
import { runRanks } from '../multi-process/ranks.js';

/** Reports of others are valid for a quarter of the first: long enough on a busy machine. */
const limits = { TCCL_WARN_AFTER: '8', TCCL_TIMEOUT: '10' };
const apart = { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' };
const blocking = { TCCL_TEST_CONFIG: '{"blocking":true}' };
const threads = { TCCL_TEST_CONFIG: '{"engine":"thread"}' };
const CIRCLE = ': the ranks wait for each other in a circle';

const call = (algorithm: string): string => `allReduce of 1000 float32 (sum, ${algorithm}), call 3`;
const mixed = (algorithm: string): string[] => [
  `${call(algorithm)}, for rank 2, waiting in recv of 1 int32 from rank 0`,
  `${call(algorithm)}, for rank 2, waiting in recv of 1 int32 from rank 0`,
  `recv of 1 int32 from rank 0, for rank 0, waiting in ${call(algorithm)}${CIRCLE}`,
];
const elsewhere = (algorithm: string, last: string): string[] => [
  `${call(algorithm)}, for rank 2, last call broadcast of 1 int32 from rank 0 (${last}`,
  `${call(algorithm)}, for rank 2, last call broadcast of 1 int32 from rank 0 (${last}`,
  'recv of 1 int32 from rank 0, for rank 0',
];
const outOfBand = (name: string): string[] => [
  `${name}, for rank 2, waiting in recv of 1 int32 from rank 0`,
  `${name}, for rank 2, waiting in recv of 1 int32 from rank 0`,
  `recv of 1 int32 from rank 0, for rank 0, waiting in ${name}`,
];
const circle = (name: string, preposition: string, length: number, step: number): string[] =>
  [0, 1, 2].map((rank) => {
    const text = (one: number): string =>
      `${name} of ${String(length)} int32 ${preposition} rank ${String((one + step + 3) % 3)}`;
    const peer = (rank + step + 3) % 3;
    return `${text(rank)}, for rank ${String(peer)}, waiting in ${text(peer)}${CIRCLE}`;
  });

/** The wait of each of three ranks, and the awaited rank. */
const ways = [
  { scenario: 'mixed', way: 'in one segment', env: {}, waits: mixed('direct') },
  { scenario: 'mixedInPlace', way: 'in one segment', env: {}, waits: mixed('direct') },
  { scenario: 'mixed', way: 'over sockets', env: apart, waits: mixed('hierarchical') },
  { scenario: 'mixed', way: 'on engine threads', env: threads, waits: mixed('direct') },
  { scenario: 'mixedInPlace', way: 'over sockets, in place', env: { ...apart, ...blocking }, waits: mixed('hierarchical') },
  { scenario: 'elsewhere', way: 'in one segment', env: {}, waits: elsewhere('direct', 'direct)') },
  { scenario: 'elsewhere', way: 'over sockets', env: apart, waits: elsewhere('hierarchical', 'tree), call 2') },
  { scenario: 'elsewhere', way: 'on engine threads', env: threads, waits: elsewhere('direct', 'direct)') },
  {
    scenario: 'elsewhere',
    way: 'over sockets, in place',
    env: { ...apart, ...blocking },
    waits: elsewhere('hierarchical', 'tree), call 2'),
  },
  ...[
    { way: 'in one segment', env: {} },
    { way: 'over sockets', env: apart },
  ].flatMap((where) => [
    { scenario: 'splitAside', ...where, waits: outOfBand('split, call 3') },
    { scenario: 'shrinkAside', ...where, waits: outOfBand('shrink') },
  ]),
  {
    scenario: 'split',
    way: 'in one segment',
    env: {},
    waits: ['split, call 3, for rank 2', 'split, call 3, for rank 2', 'recv of 1 int32 from rank 0, for rank 0'],
  },
  { scenario: 'receives', way: 'in one segment', env: {}, waits: circle('recv', 'from', 1, -1) },
  { scenario: 'receives', way: 'over sockets', env: apart, waits: circle('recv', 'from', 1, -1) },
  { scenario: 'sends', way: 'in one segment', env: {}, waits: circle('send', 'to', 500_000, 1) },
  { scenario: 'sends', way: 'over sockets', env: apart, waits: circle('send', 'to', 500_000, 1) },
];

describe.concurrent('a rank that waits for long', { timeout: 120_000 }, () => {
  test.for(ways)(
    'warns once with its call, the awaited ranks and their activity, as its TIMEOUT does: $scenario, $way',
    async ({ scenario, env, waits }, { expect }) => {
      const { records, stderr } = await runRanks(waits.length, 'long-waits.mjs', [scenario], {
        env: { ...env, ...limits },
        flags: ['--grace', '20'],
      });
      const warnings = stderr
        .split('\n')
        .filter((line) => line.includes('has waited'))
        .sort();
      // On a busy machine, reports of a circle may have expired on some of its ranks.
      const said = waits.map((text) => text.replace(CIRCLE, ''));
      expect(
        warnings.map((line, rank) =>
          line.slice(0, `tccl: rank ${String(rank)} has waited 8 s in `.length + (said[rank]?.length ?? 0)),
        ),
      ).toEqual(said.map((text, rank) => `tccl: rank ${String(rank)} has waited 8 s in ${text}`));
      if (waits.some((text) => text.endsWith(CIRCLE))) expect(stderr + JSON.stringify(records)).toContain(CIRCLE);
      // A rank outside of the others' call may get CLOSED when they close the communicator that it waits in.
      const isElsewhere = scenario === 'elsewhere' || scenario === 'split' || scenario === 'shrinkAside';
      const told = records.filter(({ rank }) => !isElsewhere || rank !== 2);
      const starts = [
        ...said.map((text, rank) => `TIMEOUT: rank ${String(rank)} waited 10 s in ${text}`),
        'RANK_MISSING: rank 2 did not call shrink in time',
        // The last rank's message timed out first: the others continue without that rank.
        ...(scenario === 'shrinkAside' ? ['DONE: without rank 2'] : []),
      ];
      const others = told.filter(
        // The message of a timeout begins with the call of the rank that it ended.
        ({ code, message }) =>
          !starts.some((start) => `${String(code)}: ${String(message).replace(/^\w+: (?=rank)/, '')}`.startsWith(start)),
      );
      expect([told.length, others]).toEqual([isElsewhere ? 2 : 3, []]);
      const inTime = records.filter(({ code, message }) => code === 'TIMEOUT' && String(message).includes(' s in '));
      for (const { message, ranks } of inTime) {
        // In a circle, the rank that waits for a message is at fault: the others make the same call.
        if (scenario.startsWith('mixed') || scenario === 'splitAside') expect(ranks, String(message)).toEqual([2]);
        for (const rank of ranks as number[]) expect(String(message)).toMatch(new RegExp(`ranks? [0-9,]*${rank}`));
      }
    },
  );

  test('names the stopped rank', async ({ expect, onTestFinished }) => {
    const args = [
      'run',
      '-n',
      '3',
      '--no-prefix',
      '--grace',
      '20',
      '--',
      process.execPath,
      fixture('held-up.mjs'),
      'messages',
      '2',
    ];
    const job = startTccl(args, { env: limits });
    onTestFinished(() => void job.process.kill('SIGKILL'));
    const shown = await job.shown(/(.*"code".*\s+){2}/);
    const pid = Number(/"rank":2,"pid":(\d+)/.exec(shown)?.[1]);
    if (!(pid > 1)) throw new Error(`${String(pid)} is no process`);
    process.kill(pid, 'SIGCONT');
    const warnings = (await job.finished).stderr.split('\n').filter((line) => /rank [01] has waited/.test(line));
    expect(warnings).toHaveLength(2);
    for (const line of warnings)
      expect(line).toMatch(
        /^tccl: rank [01] has waited 8 s in (send|recv) of 1 int32 (to|from) rank [012], for rank 2, no call yet$/,
      );
  });

  test.for([
    { way: 'in one segment', env: {} },
    { way: 'over sockets', env: apart },
    { way: 'over sockets, in place', env: { ...apart, ...blocking } },
    { way: 'on engine threads', env: threads },
  ])('warns through onWarning, with the name of the communicator: $way', async ({ env }, { expect }) => {
    const { stderr, records } = await runRanks(2, 'long-waits.mjs', ['told'], {
      env: { ...env, ...limits },
      flags: ['--grace', '20'],
    });
    expect(stderr).not.toContain('has waited');
    const heard = records.flatMap((record) => record['heard'] ?? []).sort();
    expect(heard).toEqual([
      expect.stringMatching(/^rank 0 has waited 8 s in allReduce of 1 int32 .*for rank 1.*\(communicator "mine"\)$/),
      expect.stringMatching(/^rank 1 has waited 8 s in recv of 1 int32 .*for rank 0.*\(communicator "mine"\)$/),
    ]);
  });

  test('does not warn with TCCL_WARN_AFTER=0', async ({ expect }) => {
    const { stderr, records } = await runRanks(3, 'long-waits.mjs', ['mixed'], {
      env: { TCCL_WARN_AFTER: '0', TCCL_TIMEOUT: '2' },
      flags: ['--grace', '20'],
    });
    expect(stderr).not.toContain('has waited');
    expect(records.map(({ code }) => code)).toEqual(['TIMEOUT', 'TIMEOUT', 'TIMEOUT']);
  });

  test('warns also without a timeout', async ({ expect, onTestFinished }) => {
    const job = startTccl(['run', '-n', '3', '--no-prefix', '--', process.execPath, fixture('long-waits.mjs'), 'mixed'], {
      env: { TCCL_WARN_AFTER: '1', TCCL_TIMEOUT: '0' },
    });
    onTestFinished(() => void job.process.kill('SIGKILL'));
    let heard = '';
    await new Promise<void>((resolve) =>
      job.process.stderr?.on('data', (text: string) => {
        heard += text;
        if (heard.includes('rank 0 has waited 1 s')) resolve();
      }),
    );
    job.process.kill('SIGTERM');
    expect((await job.finished).stderr).toContain('rank 0 has waited 1 s in allReduce');
  });
});
