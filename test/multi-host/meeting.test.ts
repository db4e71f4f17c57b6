import { execFileSync } from 'node:child_process';
import { hostname } from 'node:os';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { cliPath, fixture, start, type Finished, type Started } from '../multi-process/cli.js';
import { filter, whyNoFirewall } from './firewall.js';
import { makeRoutedHosts } from './routed-hosts.js';
import { makeTwoHosts, whyNoHosts, type TwoHosts } from './two-hosts.js';

const node = process.execPath;
const reason = whyNoHosts();
const noFirewall = reason ?? whyNoFirewall();
/** Notices after a second, in place of five, and the end soon after. */
const impatient = { TCCL_WARN_AFTER: '1', TCCL_INIT_TIMEOUT: '4' };
const UNTIL = String.raw`, and waits 4 s in all \(TCCL_INIT_TIMEOUT\)`;
const self = (rank: number, address: string): string => String.raw`rank ${rank} on ${hostname()} \(${address}\)`;

/** Runs `tccl run --nnodes 2` on a host, with a rank unless told otherwise. */
function runOn(
  host: readonly string[],
  nodeRank: number,
  rendezvous: string,
  flags: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Started {
  const [ip = '', ...rest] = host;
  const run = ['run', '--nnodes', '2', '--node-rank', String(nodeRank), '--rendezvous', rendezvous, '-n', '1', ...flags];
  return start(ip, [...rest, node, cliPath, ...run, '--no-prefix', node, fixture('meets.mjs')], {
    env: { TCCL_HOSTID: host.at(-1) ?? '', ...env },
  });
}

describe.skipIf(reason !== undefined)(`hosts that meet${reason === undefined ? '' : ` (skipped: ${reason})`}`, () => {
  let hosts: TwoHosts;
  let port = 29_950;
  beforeAll(() => void (hosts = makeTwoHosts()));
  afterAll(() => hosts.remove());

  const at = (): string => `10.213.77.1:${port++}`;

  describe('two jobs at one address', () => {
    /** Starts both jobs, rank 1 of the second before that of the first, once rank 0 of the first listens. */
    async function cross(
      flags: (job: string) => readonly string[],
      env: (job: string) => Record<string, string>,
    ): Promise<Finished[]> {
      const meeting = at();
      const run = (job: string, host: 0 | 1): Started =>
        runOn(hosts.on[host], host, meeting, flags(job), { TEST_NAME: job, ...env(job) });
      const first = run('a', 0);
      await listening(hosts.on[0], meeting);
      const [second, other] = [run('b', 0), run('b', 1)];
      // The second job's rank 0 has found the port in use.
      await said(second, /another job meets/);
      const last = run('a', 1);
      return Promise.all([first, last, second, other].map(({ finished }) => finished));
    }

    it.each([
      ['ids', (job: string) => ['--job-id', job], () => ({})],
      ['secrets', () => [], (job: string) => ({ TCCL_COMM_SECRET: `secret of ${job}` })],
      ['jobs of Slurm', () => [], (job: string) => ({ SLURM_JOB_ID: job === 'a' ? '7' : '8' })],
    ])('take turns with %s of their own', async (_, flags, env) => {
      const [first, last, second, other] = await cross(flags, env);
      // On a busy machine, ranks also say what they wait for.
      const quiet = (end?: Finished): string => end?.stderr.replace(/^.* has waited .*\n/gm, '') ?? '';
      for (const end of [first, last])
        expect({ ...end, stderr: quiet(end) }).toMatchObject({ code: 0, stdout: 'a,a\n', stderr: '' });
      for (const end of [second, other]) expect(end).toMatchObject({ code: 0, stdout: 'b,b\n' });
      expect(quiet(second)).toMatch(
        /^tccl: another job meets at 10\.213\.77\.1:\d+: rank 0 waits until its ranks have met, for up to 60 s\n$/,
      );
    });

    it('without: each warns, and the one that comes later ends with one line', async () => {
      const meeting = at();
      const first = runOn(hosts.on[0], 0, meeting, [], { TEST_NAME: 'a' });
      await listening(hosts.on[0], meeting);
      const second = await runOn(hosts.on[0], 0, meeting, [], { TEST_NAME: 'b' }).finished;
      const warning = new RegExp(
        `^tccl: the ranks meet at ${meeting} without an id of their job or a secret: .*--job-id, TCCL_JOB_ID.*\n$`,
      );
      expect(second.stderr).toMatch(warning);
      expect(second.stdout).toMatch(
        /^NETWORK another job meets at 10\.213\.77\.1:\d+, or rank 0 of this one was started twice: .*\n$/,
      );
      const last = runOn(hosts.on[1], 1, meeting, [], { TEST_NAME: 'a' });
      expect(await last.finished).toMatchObject({ stdout: 'a,a\n', stderr: '' });
      const end = await first.finished;
      expect(end).toMatchObject({ stdout: 'a,a\n' });
      expect(end.stderr).toMatch(warning);
    });
  });

  it('a rank that was killed before all had come is replaced by its new process', async () => {
    const meeting = at();
    const common = { TCCL_NRANKS: '3', TCCL_COMM_ID: meeting, TCCL_COMM_SECRET: 'secret' };
    const rank = (number: number, host: 0 | 1): Started => {
      const [ip = '', ...rest] = hosts.on[host];
      const env = {
        ...common,
        TCCL_RANK: String(number),
        TCCL_HOSTID: `host ${host}`,
        TEST_NAME: String(number),
        // The only line of rank 0: on a busy machine, rank 1 comes within this time too.
        TCCL_WARN_AFTER: '3',
      };
      return start(ip, [...rest, node, fixture('meets.mjs')], { env });
    };
    const killed = rank(1, 1);
    const first = rank(0, 0);
    await said(first, /for rank 2 of 3 \(2 checked in: 0,1\)/);
    killed.process.kill('SIGKILL');
    await killed.finished;
    const others = [rank(1, 1), rank(2, 1)];
    for (const { finished } of [first, ...others]) expect(await finished).toMatchObject({ code: 0, stdout: '0,1,2\n' });
  });
});

describe.skipIf(noFirewall !== undefined)(
  `hosts that cannot meet${noFirewall === undefined ? '' : ` (skipped: ${noFirewall})`}`,
  () => {
    let hosts: TwoHosts;
    let port = 29_970;
    let undo: (() => void) | undefined;
    beforeAll(() => void (hosts = makeTwoHosts()));
    afterEach(() => {
      undo?.();
      undo = undefined;
    });
    afterAll(() => hosts.remove());

    /** A rank on each host: what each of them says while it waits, and its error. */
    async function meet(
      envOf: (host: 0 | 1) => Record<string, string> = () => ({}),
      on = hosts.on,
      root = '10.213.77.1',
      nodeRankOf = (host: 0 | 1): number => host,
    ): Promise<{ readonly meeting: string; readonly ends: readonly [a: Finished, b: Finished] }> {
      const meeting = `${root}:${port++}`;
      const run = (host: 0 | 1): Promise<Finished> =>
        runOn(on[host], nodeRankOf(host), meeting, ['--job-id', 'ours'], { ...impatient, ...envOf(host) }).finished;
      return { meeting, ends: await Promise.all([run(0), run(1)]) };
    }

    it.each([
      ['drop', 'no answer'],
      ['reject', String.raw`connect ECONNREFUSED \S+`],
    ])('because a firewall %ss: both say after a while what they wait for, and from where', async (verdict, why) => {
      undo = filter(hosts.on[0], 'input', `iifname tccl0 tcp dport 29000-29999 ${verdict}`);
      const { meeting, ends } = await meet();
      const [a, b] = ends;
      expect(a.stderr).toMatch(
        new RegExp(
          `^tccl: init has waited 1 s at the root, ${meeting} on ${hostname()}, for rank 1 of 2 \\(1 checked in: 0\\)${UNTIL}\n$`,
        ),
      );
      expect(a.stdout).toMatch(/^RANK_MISSING rank 1 of 2 did not join in time/);
      expect(b.stderr).toMatch(
        new RegExp(
          `^tccl: ${self(1, '10.213.77.2')} has waited 1 s in init for the root at ${meeting}, in the process of rank 0 \\(${why}\\)${UNTIL}: does rank 0 run on that host, .*\n$`,
        ),
      );
      expect(b.stdout).toMatch(new RegExp(`^TIMEOUT rank 1 found no root at ${meeting}, .*\\(${why}\\)`));
    });

    it('because one has no way to the network of the root: it says so, and how to choose another', async () => {
      const end = await runOn(hosts.on[1], 1, `10.99.1.1:${port++}`, ['--job-id', 'ours'], impatient).finished;
      for (const text of [end.stderr, end.stdout])
        expect(text).toMatch(
          new RegExp(`\\(connect ENETUNREACH .*[:;] no interface of ${hostname()} leads there: .* TCCL_SOCKET_IFNAME\n`),
        );
    });

    it('because one does not let connections in: the other says which, and both name it', async () => {
      undo = filter(hosts.on[1], 'input', 'iifname tccl0 ct state new drop');
      const { ends } = await meet();
      const there = String.raw`10\.213\.77\.2:\d+`;
      expect(ends[0].stderr).toMatch(
        new RegExp(
          `^tccl: ${self(0, '10.213.77.1')} has waited 1 s in init to reach rank 1, which has checked in, at ${there} \\(no answer\\)${UNTIL}: does a firewall keep their hosts apart\\?\n$`,
        ),
      );
      expect(ends[1].stderr).toMatch(
        new RegExp(
          `^tccl: ${self(1, '10.213.77.2')} has waited 1 s in init for rank 0, which has checked in, to connect at ${there}${UNTIL}: `,
        ),
      );
      for (const { stdout } of ends)
        expect(stdout).toMatch(
          new RegExp(`^RANK_MISSING rank 1 checked in, but could not be reached at ${there} \\(.*\\) by rank 0 in time; `),
        );
    });

    it('because addresses are translated between them: both addresses are compared', async () => {
      const routed = makeRoutedHosts({ translates: true });
      try {
        const { ends } = await meet(() => ({}), routed.on, routed.root);
        const hint = String.raw`its check-in came from 10\.213\.90\.254, not from 10\.213\.91\.1: are addresses translated between the hosts \(NAT\)`;
        expect(ends[0].stderr).toMatch(
          new RegExp(`to reach rank 1, which has checked in, at 10\\.213\\.91\\.1:\\d+ \\(.*\\)${UNTIL}: ${hint}`),
        );
        for (const { stdout } of ends) expect(stdout).toMatch(new RegExp(`^RANK_MISSING rank 1 checked in, but .*; ${hint}`));
      } finally {
        routed.remove();
      }
    });

    it('because large packets are lost between them: the error says so, in init too', async () => {
      const routed = makeRoutedHosts({ mtu: 576 });
      try {
        const { ends } = await meet(() => ({ TCCL_HEARTBEAT: '3', TCCL_INIT_TIMEOUT: '60' }), routed.on, routed.root);
        for (const { stdout } of ends)
          expect(stdout).toMatch(
            /^(RANK_DIED|NETWORK) .* has not answered data sent \d+ times .*: .*, so the network seems to drop large packets, .*: compare the MTU/,
          );
      } finally {
        routed.remove();
      }
    });

    it.each([
      ['another secret', 'a rank with another TCCL_COMM_SECRET', (host: 0 | 1) => ({ TCCL_COMM_SECRET: `of host ${host}` })],
      ['another id', 'a rank of another job', (host: 0 | 1) => ({ TCCL_JOB_ID: `job ${host}` })],
    ])('because of %s: both say so', async (_, refused, envOf) => {
      const meeting = `10.213.77.1:${port++}`;
      const run = (host: 0 | 1): Promise<Finished> =>
        runOn(hosts.on[host], host, meeting, [], { ...impatient, TCCL_WARN_AFTER: '3', ...envOf(host) }).finished;
      const [a, b] = await Promise.all([run(0), run(1)]);
      expect(a.stderr).toMatch(
        new RegExp(`for rank 1 of 2 \\(1 checked in: 0\\)${UNTIL}; it refused ${refused} from 10\\.213\\.77\\.2\n$`),
      );
      expect(a.stdout).toMatch(new RegExp(`^RANK_MISSING .*; it refused ${refused} from 10\\.213\\.77\\.2; `));
      for (const text of [b.stderr, b.stdout]) expect(text).toMatch(/another (TCCL_COMM_SECRET|job)/);
    });

    it('because both are started as the second: each says that it finds no rank 0', async () => {
      const { ends } = await meet(
        () => ({}),
        hosts.on,
        '10.213.77.1',
        () => 1,
      );
      for (const [host, { stderr, stdout }] of ends.entries()) {
        expect(stderr).toMatch(
          /has waited 1 s in init for the root at \S+, in the process of rank 0 \(connect ECONNREFUSED \S+\).*: (does|that) /,
        );
        expect(stderr).toMatch(
          host === 0
            ? /that is an address of this host, \S+: was rank 0 started here \(node rank 0\)/
            : /does rank 0 run on that host/,
        );
        expect(stdout).toMatch(/^TIMEOUT rank 1 found no root/);
      }
    });
  },
);

/** Resolves once a process on a host listens at an address. */
async function listening(host: readonly string[], meeting: string): Promise<void> {
  const [ip = '', ...rest] = host;
  while (
    !execFileSync(ip, [...rest, 'ss', '-Hltn'])
      .toString()
      .includes(meeting)
  )
    await new Promise((resolve) => setTimeout(resolve, 20));
}

/** Resolves once a process has written such a line to standard error. */
function said({ process: child, finished }: Started, pattern: RegExp): Promise<void> {
  let text = '';
  return new Promise((resolve, reject) => {
    child.stderr?.on('data', (chunk: string) => {
      text += chunk;
      if (pattern.test(text)) resolve();
    });
    void finished.then(() => reject(new Error(`ended without writing ${String(pattern)}: ${text}`)));
  });
}
