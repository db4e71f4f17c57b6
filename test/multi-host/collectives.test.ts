import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { cliPath } from '../multi-process/cli.js';
import { startFixture } from '../multi-process/fixtures/processes.js';
import type { Fixture } from '../multi-process/fixtures/processes.js';
import { makeTwoHosts, whyNoHosts } from './two-hosts.js';
import type { TwoHosts } from './two-hosts.js';

const reason = whyNoHosts();

describe.skipIf(reason !== undefined)(`ranks on two hosts${reason === undefined ? '' : ` (skipped: ${reason})`}`, () => {
  let hosts: TwoHosts | undefined;
  const started: Fixture[] = [];
  let nextPort = 29611;
  const blocking = { TCCL_TEST_CONFIG: '{"blocking":true}' };
  beforeAll(() => void (hosts = makeTwoHosts()));
  afterEach(() => {
    for (const { child } of started.splice(0)) child.kill('SIGKILL');
  });
  afterAll(() => hosts?.remove());

  /** Four ranks, two or `here` of them on the first host, found through the variables of Slurm. */
  function start(program: string, args: string[], port: number, ownEnv: Record<string, string> = {}, here = 2): Fixture[] {
    return [0, 1, 2, 3].map((rank) => {
      const host = rank < here ? 0 : 1;
      const env = {
        SLURM_PROCID: String(rank),
        SLURM_NTASKS: '4',
        SLURM_LOCALID: String(host === 0 ? rank : rank - here),
        SLURM_JOB_ID: '1',
        SLURM_STEP_ID: '0',
        TCCL_HOSTID: `host ${host}`,
        TCCL_COMM_ID: `10.213.77.1:${port}`,
        ...ownEnv,
      };
      const fixture = startFixture(program, args, env, hosts!.on[host]);
      started.push(fixture);
      return fixture;
    });
  }

  it.each(['ring', 'tree', 'pat', 'hierarchical', 'nvlstree', undefined])(
    'match a naive reference, over shared memory within a host and sockets between: %s',
    async (algorithm) => {
      const env: Record<string, string> = algorithm === undefined ? {} : { TCCL_ALGO: algorithm };
      const ended = await Promise.all(
        start('random-collectives.mjs', ['--seed', '11', '--calls', '60', '--promises'], nextPort++, env).map(
          (rank) => rank.ended,
        ),
      );
      for (const { code, stderr } of ended) expect([code, stderr]).toEqual([0, '']);
    },
  );

  it.each(['promise', 'sync'])('compute the same with three ranks here and one there (%s)', async (form) => {
    const args = ['--seed', '17', '--calls', '40', ...(form === 'sync' ? [] : ['--promises'])];
    const env = { TCCL_ALGO: 'hierarchical', ...(form === 'sync' ? blocking : {}) };
    const ended = await Promise.all(start('random-collectives.mjs', args, nextPort++, env, 3).map((rank) => rank.ended));
    for (const { code, stderr } of ended) expect([code, stderr]).toEqual([0, '']);
  });

  it('are measured by tccl perf', async () => {
    const args = ['perf', 'all_reduce', '-b', '8', '-e', '8K', '-f', '32', '-n', '5', '-w', '2', '--json'];
    const ended = await Promise.all(start(cliPath, args, nextPort++).map((rank) => rank.ended));
    for (const { code, stderr } of ended) expect([code, stderr]).toEqual([0, '']);
    expect(ended[0]!.lines.at(-1)).toMatchObject({ summary: 'all_reduce', ranks: 4, errors: 0 });
  });

  it('compute the same in blocking calls', async () => {
    const ended = await Promise.all(
      start('random-collectives.mjs', ['--seed', '14', '--calls', '60'], nextPort++, blocking).map((rank) => rank.ended),
    );
    for (const { code, stderr } of ended) expect([code, stderr]).toEqual([0, '']);
  });

  it.each([
    { form: 'promise', config: {} },
    { form: 'sync', config: blocking },
  ])('name the rank that was killed on the other host ($form)', async ({ form, config }) => {
    const ended = await Promise.all(start('failures.mjs', ['killed', form], nextPort++, config).map((rank) => rank.ended));
    for (const [rank, { lines }] of ended.entries()) {
      if (rank !== 1) expect(lines[0]).toMatchObject({ code: 'RANK_DIED', about: 1 });
    }
  });

  it.each(
    ['killed', 'left', 'leftBeforeSplit', 'leftBeforeMessage', 'closedEarly', 'late', 'aborted', 'kind'].flatMap((ending) => [
      { ending, form: 'promise', config: {} },
      { ending, form: 'sync', config: blocking },
    ]),
  )('say on which host the rank is that an error is about ($ending, $form)', async ({ ending, form, config }) => {
    const env = { ...config, TCCL_TIMEOUT: '2', TCCL_SOCKET_IFNAME: '=tccl0' };
    const ended = await Promise.all(start('failures.mjs', [ending, form], nextPort++, env).map((rank) => rank.ended));
    for (const [rank, { lines }] of ended.entries()) {
      if (rank !== 1)
        expect(lines[0]?.['message'], `rank ${rank}`).toMatch(/ranks? (0,)?1 (is |are )?on [^ ]+ \(10\.213\.77\.1\)/);
    }
  });

  it('send and receive, in groups too, as a naive reference does, within a host and between', async () => {
    for (const program of ['random-messages.mjs', 'random-groups.mjs']) {
      const ended = await Promise.all(
        start(program, ['12', '40', 'promises'], nextPort++, { TCCL_SOCKET_IFNAME: '=tccl0' }).map((rank) => rank.ended),
      );
      for (const { code, stderr } of ended) expect([code, stderr]).toEqual([0, '']);
    }
  });

  it('send and receive in both forms', async () => {
    for (const program of ['random-messages.mjs', 'random-groups.mjs']) {
      const ended = await Promise.all(
        start(program, ['16', '30'], nextPort++, { ...blocking, TCCL_SOCKET_IFNAME: '=tccl0', TCCL_TIMEOUT: '20' }).map(
          (rank) => rank.ended,
        ),
      );
      for (const { code, stderr } of ended) expect([code, stderr]).toEqual([0, '']);
    }
  });

  it('write to windows within a host and between', async () => {
    for (const scenario of ['random', 'flush']) {
      const ended = await Promise.all(start('windows.mjs', [scenario, '13'], nextPort++).map((rank) => rank.ended));
      for (const { code, stderr } of ended) expect([code, stderr]).toEqual([0, '']);
    }
  });

  it('write to windows whose target is blocked, within a host and between', async () => {
    for (const scenario of ['passive', 'random', 'blocking']) {
      const ended = await Promise.all(
        start('windows.mjs', [scenario, '15'], nextPort++, { ...blocking, TCCL_TIMEOUT: '20' }).map((rank) => rank.ended),
      );
      for (const { code, stderr } of ended) expect([code, stderr]).toEqual([0, '']);
    }
  });

  it('get errors of a dead rank, and of messages that do not fit, on the other host', async () => {
    const killed = await Promise.all(start('windows.mjs', ['killed'], nextPort++).map((rank) => rank.ended));
    for (const [rank, { lines }] of killed.entries()) {
      if (rank !== 1) expect(lines[0]).toMatchObject({ code: 'RANK_DIED', about: 1 });
    }
    const differing = await Promise.all(
      start('message-failures.mjs', ['countBetweenHosts'], nextPort++).map((rank) => rank.ended),
    );
    for (const rank of [0, 2]) {
      expect(differing[rank]!.lines[0]).toMatchObject({ code: 'CALL_MISMATCH', ranks: [0, 2] });
      expect(differing[rank]!.lines[0]!['message']).toContain('rank 0 sent 4 float32 to rank 2, which receives 5 float32');
    }
  });
});
