import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startFixture } from '../multi-process/fixtures/processes.js';
import type { Fixture } from '../multi-process/fixtures/processes.js';
import { makeTwoHosts, whyNoHosts } from './two-hosts.js';
import type { TwoHosts } from './two-hosts.js';
import { makeRails } from './rails.js';

const reason = whyNoHosts();
const overIPv6 = { TCCL_SOCKET_FAMILY: 'AF_INET6' };
const blocking = { TCCL_TEST_CONFIG: '{"blocking":true}' };
/** Milliseconds beyond the heartbeat that a busy machine may need until all ranks have their error. */
const NEWS_MS = 8000;

describe.skipIf(reason !== undefined)(`a host that vanishes${reason === undefined ? '' : ` (skipped: ${reason})`}`, () => {
  let hosts: TwoHosts | undefined;
  const started: Fixture[] = [];
  let nextPort = 29711;
  beforeEach(() => void (hosts = makeTwoHosts()));
  afterEach(() => {
    for (const { child } of started.splice(0)) child.kill('SIGKILL');
    hosts?.remove();
  });

  /** Two ranks on each host, found through the variables of Slurm. */
  function start(args: string[], ownEnv: Record<string, string> = {}, on = hosts!.on): Fixture[] {
    const port = nextPort++;
    return [0, 1, 2, 3].map((rank) => {
      const host = rank < 2 ? 0 : 1;
      const env = {
        SLURM_PROCID: String(rank),
        SLURM_NTASKS: '4',
        SLURM_LOCALID: String(rank % 2),
        SLURM_JOB_ID: '1',
        SLURM_STEP_ID: '0',
        TCCL_HOSTID: `host ${host}`,
        TCCL_COMM_ID: `${'TCCL_SOCKET_FAMILY' in ownEnv ? '[fd77::1]' : '10.213.77.1'}:${port}`,
        ...ownEnv,
      };
      const fixture = startFixture('vanished.mjs', args, env, on[host]);
      started.push(fixture);
      return fixture;
    });
  }

  /**
   * A rank that cannot be reached counts as dead on the other host, and as alive on its own; a rank of the other host may hear
   * the latter first.
   */
  function expectReport(rank: number, ended: Record<string, unknown> | undefined): void {
    const message = String(ended?.['message']);
    const [, about = ''] = /rank (\d) \(?.*?on \S+ .*cannot be reached/.exec(message) ?? [];
    const isOfOwnHost = Math.floor(Number(about) / 2) === Math.floor(rank / 2);
    const lives = new RegExp(`^(\\w+: )?rank ${about} lives, but another host reports: `).test(message);
    expect(ended, `rank ${rank}: ${message}`).toMatchObject({ code: lives ? 'NETWORK' : 'RANK_DIED' });
    if (isOfOwnHost) expect(lives, `rank ${rank}: ${message}`).toBe(true);
  }

  /** All ranks get an error within the heartbeat that names ranks of the other host. */
  async function expectNoticed(
    what: string,
    seconds: number,
    cut: (hosts: TwoHosts) => void,
    env: Record<string, string> = {},
    advice = /it, or the way to it, is down$/,
  ): Promise<void> {
    const ranks = start([what], { TCCL_HEARTBEAT: String(seconds), ...env });
    await Promise.all(ranks.map((rank) => rank.line((line) => 'running' in line)));
    cut(hosts!);
    const cutMs = Date.now();
    for (const [rank, { lines }] of (await Promise.all(ranks.map(({ ended }) => ended))).entries()) {
      const ended = lines.at(-1);
      expectReport(rank, ended);
      expect(ended?.['message']).toMatch(
        /rank [0-3] \(?.*on \S+ .*cannot be reached from (10\.213\.77\.|fd77::)([12]): its host (10\.213\.77\.|fd77::)(?!\2)[12] has not answered /,
      );
      expect(ended?.['message']).toMatch(advice);
      expect(Number(ended?.['atMs']) - cutMs, JSON.stringify(ended)).toBeLessThan(1000 * seconds + NEWS_MS);
    }
  }

  // impaired.test.ts has more ways to vanish.
  it.each([
    ['in small calls', 'small', {}],
    ['while a message is awaited over IPv6', 'message', overIPv6],
    ['in large calls, in place', 'large', blocking],
  ])('is detected %s when its cable is cut', (_, what, env) => expectNoticed(what, 4, (two) => two.cut(), env));

  it('is not blamed by a host whose own interface is down, or without a link', async () => {
    const ranks = start(['small'], { TCCL_HEARTBEAT: '4' });
    await Promise.all(ranks.map((rank) => rank.line((line) => 'running' in line)));
    hosts!.unplug();
    for (const [rank, { lines }] of (await Promise.all(ranks.map(({ ended }) => ended))).entries()) {
      const why = rank < 2 ? 'has no link, so its cable or switch port is off' : 'is down; its host';
      // The error is about the rank of this host that noticed first.
      expect(lines.at(-1), `rank ${rank}`).toMatchObject({ code: 'NETWORK' });
      expect(Math.floor(Number(lines.at(-1)?.['about']) / 2)).toBe(Math.floor(rank / 2));
      expect(lines.at(-1)?.['message']).toContain(
        `cannot be reached from 10.213.77.${rank < 2 ? 1 : 2}: its own interface tccl0 ${why}`,
      );
    }
  });

  it('is detected when the network drops large packets only', () =>
    expectNoticed(
      'large',
      4,
      (two) => two.dropLargePackets(),
      {},
      /the network seems to drop large packets, .*: compare the MTU/,
    ));

  it('is not noticed while its rank is stopped and nothing is on the way: all that wait name that rank, and fail once it goes on', async () => {
    const seconds = 4;
    const ranks = start(['large'], { TCCL_HEARTBEAT: String(seconds), TCCL_WARN_AFTER: '1' });
    await Promise.all(ranks.map((rank) => rank.line((line) => 'running' in line)));
    const [zero, one, two, three] = ranks as [Fixture, Fixture, Fixture, Fixture];
    two.child.kill('SIGSTOP');
    await Promise.all(
      [zero, one, three].map(async (fixture, index) =>
        expect(await fixture.warning(), `rank ${index}`).toMatch(/has waited 1 s in allReduce .* for rank 2; /),
      ),
    );
    hosts!.dropLargePackets();
    two.child.kill('SIGCONT');
    const goesOnMs = Date.now();
    for (const [rank, { lines }] of (await Promise.all(ranks.map(({ ended }) => ended))).entries()) {
      expectReport(rank, lines.at(-1));
      expect(Number(lines.at(-1)?.['atMs']) - goesOnMs).toBeLessThan(1000 * seconds + NEWS_MS);
    }
  });

  it('is distinguished from a host whose rank computes for longer behind a full window', async () => {
    const seconds = 4;
    const ranks = start(['computes', String(3 * seconds)], { TCCL_HEARTBEAT: String(seconds) });
    for (const { lines, stderr } of await Promise.all(ranks.map(({ ended }) => ended)))
      expect(lines.at(-1), stderr).toMatchObject({ code: 'none' });
  });

  it.each(['promise', 'in place'])('is not a host of which one of two cables is cut: its ranks live (%s)', async (form) => {
    const rails = makeRails(2);
    try {
      const env = {
        TCCL_SOCKET_IFNAME: 'rail',
        TCCL_HEARTBEAT: '4',
        TCCL_COMM_ID: `${rails.root}:${nextPort++}`,
        ...(form === 'promise' ? {} : blocking),
      };
      const ranks = start(['large'], env, rails.on);
      await Promise.all(ranks.map((rank) => rank.line((line) => 'running' in line)));
      rails.cut(1);
      for (const [rank, { lines }] of (await Promise.all(ranks.map(({ ended }) => ended))).entries()) {
        const ended = lines.at(-1);
        expect(ended, `rank ${rank}`).toMatchObject({ code: 'NETWORK' });
        expect(ended?.['message']).toMatch(
          /cannot be reached from 10\.213\.81\.[12]: its own interface rail1 (is down|has no link)/,
        );
      }
    } finally {
      rails.remove();
    }
  });
});
