import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeRelayedHosts, whyNoRelay, type RelayedHosts, type Way } from './relayed-hosts.js';
import { StandingRanks } from './standing-ranks.js';

const reason = whyNoRelay();
const HEARTBEAT_S = 4;
/** Milliseconds beyond a deadline that a busy machine may need until all ranks have their error. */
const NEWS_MS = 8000;
const drops = /other connections with it live, so the network seems to drop large packets, .*: compare the MTU/;
const blocking = { TCCL_TEST_CONFIG: '{"blocking":true}' };

describe.skipIf(reason !== undefined)(`two hosts on a bad network${reason === undefined ? '' : ` (skipped: ${reason})`}`, () => {
  let hosts: RelayedHosts;
  let ranks: StandingRanks;
  beforeAll(async () => {
    hosts = await makeRelayedHosts();
    ranks = new StandingRanks(hosts.on, hosts.root, 29811, { TCCL_HEARTBEAT: String(HEARTBEAT_S) });
  });
  afterAll(() => {
    ranks.stop();
    hosts.remove();
  });

  async function expectRight(what: object, env: Record<string, string> = {}): Promise<void> {
    for (const outcome of await Promise.all(ranks.begin(what, () => env).ended)) expect(outcome).toMatchObject({ code: 'none' });
  }

  const collectives = { program: 'random-collectives.mjs', args: ['--seed', '21', '--calls', '12', '--promises'] };
  const inPlace = { program: 'random-collectives.mjs', args: ['--seed', '22', '--calls', '12'] };
  const messages = { program: 'random-messages.mjs', args: ['23', '6', 'promises'] };
  const windows = { program: 'windows.mjs', args: ['random', '24'] };

  it.each<{ readonly network: string; readonly ways: readonly [Way, Way]; readonly loses?: boolean }>([
    { network: 'delays packets by 1 ms', ways: [{ delayMs: 1 }, { delayMs: 1 }] },
    { network: 'loses one packet in a hundred', ways: [{ loss: 0.01 }, { loss: 0.01 }], loses: true },
    {
      network: 'delivers packets late, twice and in another order',
      ways: [
        { reorder: 0.1, duplicate: 0.02, delayMs: 0.2 },
        { reorder: 0.1, duplicate: 0.02 },
      ],
    },
    { network: 'is ten times as fast in one direction', ways: [{ mbitPerS: 40, queueBytes: 64 * 1024 }, { mbitPerS: 400 }] },
  ])('compute and send right where it $network', async ({ ways, loses = false }) => {
    const before = await hosts.set(...ways);
    await expectRight(collectives);
    await expectRight(inPlace, blocking);
    await expectRight(messages);
    await expectRight(windows);
    await expectRight({ atOnce: 6 });
    const after = await hosts.set({}, {});
    for (const way of [0, 1]) {
      expect(after[way]!.passed - before[way]!.passed).toBeGreaterThan(100);
      if (loses) expect(after[way]!.lost).toBeGreaterThan(before[way]!.lost);
    }
  });

  it.each(['ring', 'tree', 'hierarchical', 'pat'])(
    'compute the right results by %s with delay, loss and reordering',
    async (algorithm) => {
      const way = { delayMs: 0.5, loss: 0.005, reorder: 0.02 };
      await hosts.set(way, way);
      await expectRight(collectives, { TCCL_ALGO: algorithm });
    },
  );

  it('continue after an outage that is shorter than the heartbeat', async () => {
    await hosts.set({}, {});
    const { began, ended } = ranks.begin({ exchange: 'small' });
    await began;
    await hosts.set({ down: true }, { down: true });
    const soon = await Promise.race([...ended, new Promise((resolve) => setTimeout(resolve, 1000, 'no end'))]);
    expect(soon).toBe('no end');
    const { passed } = (await hosts.set({}, {}))[0]!;
    while ((await hosts.set({}, {}))[0]!.passed < passed + 100);
    await hosts.set({ down: true }, { down: true });
    for (const outcome of await Promise.all(ended)) expect(outcome).toMatchObject({ code: 'RANK_DIED' });
  });

  it.each([
    ['drops large packets', 'large', { dropAbove: 576 }, {}, {}, drops],
    ['drops large packets, in place', 'large', { dropAbove: 576 }, {}, blocking, drops],
    ['drops all but the smallest packets', 'small', { dropAbove: 60 }, {}, {}, drops],
    ['is cut', 'large', { down: true }, { down: true }, {}, /it, or the way to it, is down$/],
    ['is cut, in small calls in place', 'small', { down: true }, { down: true }, blocking, /it, or the way to it, is down$/],
    ['is cut, and a message is awaited', 'message', { down: true }, { down: true }, {}, /it, or the way to it, is down$/],
    [
      'carries packets in one direction only',
      'small',
      { down: true },
      {},
      {},
      // A rank whose own host heard that it was given up says on which host it is.
      /it, or the way to it, is down(; rank [0-3] is on .*)?$|in one direction: /,
    ],
  ] as const)('report within the heartbeat that the network %s', async (_, exchange, fromA, fromB, env, advice) => {
    await hosts.set({}, {});
    const { began, ended } = ranks.begin({ exchange }, () => env);
    await began;
    await hosts.set(fromA, fromB);
    const cutMs = Date.now();
    let nAdvised = 0;
    for (const [rank, outcome] of (await Promise.all(ended)).entries()) {
      // On the host of the rank that cannot be reached, that rank lives; the other host's ranks may hear that first.
      const isAlive = / lives, but another host reports: /.test(outcome.message ?? '');
      expect(outcome, `rank ${rank}`).toMatchObject({ code: isAlive ? 'NETWORK' : 'RANK_DIED' });
      if (Math.floor((outcome.about ?? -1) / 2) === Math.floor(rank / 2)) expect(isAlive, `rank ${rank}`).toBe(true);
      expect(outcome.atMs! - cutMs).toBeLessThan(1000 * HEARTBEAT_S + NEWS_MS);
      // The host that detects it first ends its ranks, which the other one may see before its own heartbeat ends. The reason is
      // lost on the way there.
      const losesWords = 'dropAbove' in fromA ? fromA.dropAbove === 60 : !('down' in fromB);
      if (losesWords && /cannot be reached/.exec(outcome.message ?? '') === null) continue;
      // Both ends, so that the line is true on the rank in question too.
      expect(outcome.message).toMatch(
        /rank [0-3].* cannot be reached from 10\.213\.82\.([12]): its host 10\.213\.82\.(?!\1)[12] has not answered /,
      );
      expect(outcome.message).toMatch(advice);
      nAdvised++;
    }
    expect(nAdvised).toBeGreaterThan(1);
  });

  it('name the hanging rank where a host answers but its ranks do not', async () => {
    await hosts.set({}, {});
    const { began, ended } = ranks.begin({ exchange: 'small' }, () => ({ TCCL_TIMEOUT: '3' }));
    await began;
    const hung = ranks.fixtures.slice(2).map(({ child }) => child);
    for (const child of hung) child.kill('SIGSTOP');
    for (const outcome of await Promise.all(ended.slice(0, 2))) {
      expect(outcome).toMatchObject({ code: 'TIMEOUT' });
      expect(outcome.message).toMatch(/rank 2|rank 3|ranks 2 and 3/);
    }
    for (const child of hung) child.kill('SIGCONT');
    for (const { code } of await Promise.all(ended)) expect(code).not.toBe('none');
  });
});
