import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { PeerInfo } from '../../src/runtime/bootstrap/index.js';
import { startFixture } from '../multi-process/fixtures/processes.js';
import type { Fixture } from '../multi-process/fixtures/processes.js';
import { hasIPv6, makeTwoHosts, whyNoHosts } from './two-hosts.js';
import type { TwoHosts } from './two-hosts.js';

const reason = whyNoHosts();

describe.skipIf(reason !== undefined)(`two hosts${reason === undefined ? '' : ` (skipped: ${reason})`}`, () => {
  let hosts: TwoHosts | undefined;
  const started: Fixture[] = [];
  beforeAll(() => void (hosts = makeTwoHosts()));
  afterEach(() => {
    for (const { child } of started.splice(0)) child.kill('SIGKILL');
  });
  afterAll(() => hosts?.remove());

  /** Two ranks on host a and two on host b, which meet at an address of host a. */
  function startRanks(scenario: string, commId: string, env: Record<string, string>, options: object = {}): Fixture[] {
    return [0, 1, 2, 3].map((rank) => {
      const host = rank < 2 ? 0 : 1;
      const ownEnv = { TCCL_HOSTID: `host ${host}`, TCCL_COMM_SECRET: 'our secret', ...env };
      const fixture = startFixture(
        'bootstrap-rank.mjs',
        [scenario, commId, String(rank), '4', JSON.stringify(options)],
        ownEnv,
        hosts!.on[host],
      );
      started.push(fixture);
      return fixture;
    });
  }

  async function expectWork(commId: string, env: Record<string, string>): Promise<void> {
    const outcomes = await Promise.all(startRanks('work', commId, env).map(({ ended }) => ended));
    for (const [rank, { code, stderr, lines }] of outcomes.entries()) {
      expect([code, stderr]).toEqual([0, '']);
      const localRanks = rank < 2 ? [0, 1] : [2, 3];
      expect(lines[0]).toMatchObject({
        gathered: ['part 0', 'part 1', 'part 2', 'part 3'],
        local: localRanks.map((local) => `local ${local}`),
        message: `for you from ${(rank + 2) % 4}`,
        localRanks,
      });
      expect((lines[0]!.peers as PeerInfo[]).map(({ device }) => device)).toEqual(['cpu:0', 'cpu:1', 'cpu:0', 'cpu:1']);
    }
  }

  it('the interface is the one in the subnet of the root', () => expectWork('10.213.77.1:29511', {}));

  it('the interface is the one that TCCL_SOCKET_IFNAME names', () =>
    expectWork('10.213.77.1:29512', { TCCL_SOCKET_IFNAME: '=tccl0' }));

  it('the interface is one that TCCL_SOCKET_IFNAME does not exclude', () =>
    expectWork('10.213.77.1:29513', { TCCL_SOCKET_IFNAME: '^lo,ib' }));

  it.skipIf(!hasIPv6)('IPv6', () => expectWork('[fd77::1]:29514', { TCCL_SOCKET_FAMILY: 'AF_INET6' }));

  it.skipIf(!hasIPv6)('IPv6 addresses of the link', () => expectWork(`[${hosts!.linkLocal[0]}%tccl0]:29515`, {}));

  it('an interface without a route to the others is a timeout that names addresses', async () => {
    const ranks = startRanks('fail', '10.213.77.1:29516', { TCCL_SOCKET_IFNAME: 'ib0' }, { timeoutMs: 4000 });
    for (const { lines } of await Promise.all(ranks.map(({ ended }) => ended))) {
      expect(lines[0]).toMatchObject({ name: 'TimeoutError' });
      expect(lines[0]!.message).toMatch(/10\.213\.7[78]\.\d/);
    }
  });

  it('when a host is lost, the ranks of the other get an error that names the dead ranks', async () => {
    const ranks = startRanks('wait', '10.213.77.1:29517', {}, { idle: 3 });
    await Promise.all(ranks.map((rank) => rank.line((line) => 'waiting' in line)));
    for (const rank of [2, 3]) ranks[rank]!.child.kill('SIGKILL');
    for (const { lines, code } of await Promise.all([0, 1].map((rank) => ranks[rank]!.ended))) {
      expect(code).toBe(0);
      const errors = lines.filter((line) => 'code' in line);
      expect(errors.length).toBe(3);
      for (const error of errors) {
        expect(error).toMatchObject({ name: 'RemoteError', code: 'RANK_DIED' });
        expect([2, 3]).toContain(error.rank);
      }
    }
  });
});
