import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StandingRanks, type CaseEnd } from './standing-ranks.js';
import { makeTwoHosts, whyNoHosts, type TwoHosts } from './two-hosts.js';

const reason = whyNoHosts();
const INIT_MS = 3000;
/** Milliseconds beyond the time limit of init that a busy machine may need. */
const NEWS_MS = 8000;
const config = { TCCL_TEST_CONFIG: JSON.stringify({ timeoutMs: INIT_MS }) };
/** Two communicators of no rounds. */
const meeting = { atOnce: 0 };

describe.skipIf(reason !== undefined)(`init on two hosts${reason === undefined ? '' : ` (skipped: ${reason})`}`, () => {
  let hosts: TwoHosts;
  let ranks: StandingRanks;
  beforeAll(() => {
    hosts = makeTwoHosts();
    ranks = new StandingRanks(hosts.on, '10.213.77.1', 29911);
  });
  afterAll(() => {
    ranks.stop();
    hosts.remove();
  });

  /** The errors of all ranks: one line each, within the time limit. */
  async function refusals(envOf: (host: number) => Record<string, string>): Promise<(CaseEnd & { message: string })[]> {
    const startMs = Date.now();
    const ended = await Promise.all(ranks.begin(meeting, (host) => ({ ...config, ...envOf(host) })).ended);
    return ended.map((outcome) => {
      const { message = '', atMs = Infinity } = outcome;
      expect(outcome.code).not.toBe('none');
      expect(message).not.toContain('\n');
      expect(atMs - startMs).toBeLessThan(INIT_MS + NEWS_MS);
      return { ...outcome, message };
    });
  }

  it('names the name that does not resolve', async () => {
    for (const { code, message } of await refusals(() => ({ TCCL_COMM_ID: 'no.such.host.invalid:29500' }))) {
      expect(code).toBe('NETWORK');
      expect(message).toMatch(/no\.such\.host\.invalid.*TCCL_COMM_ID/);
    }
  });

  it('names the port that another program uses', async () => {
    const [ip = '', ...rest] = hosts.on[0];
    const script = "require('net').createServer().listen(29999, '10.213.77.1', () => console.log('on'))";
    const other = spawn(ip, [...rest, process.execPath, '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
    try {
      await once(other.stdout, 'data');
      const [first, ...others] = await refusals(() => ({ TCCL_COMM_ID: '10.213.77.1:29999' }));
      expect(first).toMatchObject({ code: 'NETWORK' });
      expect(first?.message).toMatch(/10\.213\.77\.1:29999: the port is in use, .*set TCCL_COMM_ID/);
      for (const { message } of others)
        expect(message).toMatch(/rank \d found no root at 10\.213\.77\.1:29999, in the process of rank 0/);
    } finally {
      other.kill('SIGKILL');
    }
  });

  it('names the address that is not of the host of rank 0', async () => {
    const [first, ...others] = await refusals(() => ({ TCCL_COMM_ID: '10.213.77.2:29500' }));
    expect(first).toMatchObject({ code: 'NETWORK' });
    expect(first?.message).toMatch(/10\.213\.77\.2:29500: the address is not one of this host.*TCCL_COMM_ID/);
    for (const { message } of others) expect(message).toMatch(/found no root at 10\.213\.77\.2:29500, in the process of rank 0/);
  });

  it('names the interface that does not exist, and the ranks that lack it', async () => {
    const [a, b, ...others] = await refusals((host) => ({ TCCL_SOCKET_IFNAME: host === 1 ? 'eth9' : '' }));
    for (const missing of [a, b]) {
      expect(missing).toMatchObject({ code: 'RANK_MISSING', ranks: [2, 3] });
      expect(missing?.message).toMatch(/^ranks 2,3 of 4 did not join .*can they reach the root at 10\.213\.77\.1:\d+ on .+\?$/);
    }
    for (const { code, message } of others) {
      expect(code).toBe('ENVIRONMENT');
      expect(message).toMatch(/no network interface matches TCCL_SOCKET_IFNAME=eth9; there are: .*tccl0 \(10\.213\.77\.2/);
    }
  });

  it('names the blocked connection', async () => {
    execFileSync('ip', ['-n', hosts.on[1][3] ?? '', 'route', 'add', 'prohibit', '10.213.77.1/32']);
    try {
      const [a, b, ...others] = await refusals(() => ({}));
      for (const missing of [a, b]) expect(missing).toMatchObject({ code: 'RANK_MISSING', ranks: [2, 3] });
      for (const { message } of others)
        expect(message).toMatch(/found no root at 10\.213\.77\.1:\d+.* \(.*E(ACCES|HOSTUNREACH|PERM).*\)/);
    } finally {
      execFileSync('ip', ['-n', hosts.on[1][3] ?? '', 'route', 'del', 'prohibit', '10.213.77.1/32']);
    }
  });

  it('succeeds after all of these', async () => {
    for (const outcome of await Promise.all(ranks.begin(meeting).ended)) expect(outcome).toMatchObject({ code: 'none' });
  });
});
