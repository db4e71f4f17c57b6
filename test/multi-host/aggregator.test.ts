import { spawn, type ChildProcess } from 'node:child_process';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { cliPath } from '../multi-process/cli.js';
import { startFixture, type Fixture } from '../multi-process/fixtures/processes.js';
import { makeStarHosts, type StarHosts } from './star-hosts.js';
import { whyNoHosts } from './two-hosts.js';

const reason = whyNoHosts();
/** Hosts with ranks; the next one has the aggregator. */
const HOSTS = 3;
const AGGREGATOR = HOSTS;

describe.skipIf(reason !== undefined)(
  `all-reduces by an aggregator${reason === undefined ? '' : ` (skipped: ${reason})`}`,
  () => {
    let hosts: StarHosts | undefined;
    let nextPort = 29711;
    const started: Fixture[] = [];
    const aggregators: ChildProcess[] = [];
    beforeAll(() => void (hosts = makeStarHosts(HOSTS + 1, 2)));
    afterEach(() => {
      for (const { child } of started.splice(0)) child.kill('SIGKILL');
      for (const child of aggregators.splice(0)) child.kill('SIGKILL');
    });
    afterAll(() => hosts?.remove());

    /** Starts an aggregator that listens on a rail. Resolves to its id. */
    async function startAggregator(args: readonly string[] = [], env: Readonly<Record<string, string>> = {}): Promise<string> {
      const [command = '', ...prefix] = hosts!.on[AGGREGATOR]!;
      const child = spawn(command, [...prefix, process.execPath, cliPath, 'aggregator', ...args], {
        env: { ...process.env, ...env },
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      aggregators.push(child);
      return new Promise((resolve, reject) => {
        child.stdout.once('data', (text: Buffer) => resolve(text.toString().trim()));
        child.once('close', (code) => reject(new Error(`the aggregator ended with ${code}`)));
      });
    }

    /** Starts `perHost` ranks on each host. */
    function start(program: string, args: readonly string[], env: Readonly<Record<string, string>>, perHost = 2): Fixture[] {
      const port = nextPort++;
      const nRanks = perHost * HOSTS;
      return Array.from({ length: nRanks }, (_, rank) => {
        const host = Math.floor(rank / perHost);
        const own = {
          SLURM_PROCID: String(rank),
          SLURM_NTASKS: String(nRanks),
          SLURM_LOCALID: String(rank % perHost),
          SLURM_JOB_ID: '1',
          SLURM_STEP_ID: '0',
          TCCL_HOSTID: `host ${host}`,
          TCCL_COMM_ID: `10.213.100.1:${port}`,
        };
        const fixture = startFixture(program, args, { ...own, ...env }, hosts!.on[host]);
        started.push(fixture);
        return fixture;
      });
    }

    it.each([
      { algorithm: 'collnet', nAggregators: 1, config: '{}' },
      { algorithm: 'collnetchain', nAggregators: 1, config: '{}' },
      { algorithm: 'collnet', nAggregators: 2, config: '{"blocking":true}' },
      { algorithm: 'collnetchain', nAggregators: 2, config: '{"blocking":true,"engine":"thread"}' },
    ])('match a naive reference: $algorithm, $nAggregators aggregators, $config', async ({ algorithm, nAggregators, config }) => {
      const ids = await Promise.all(Array.from({ length: nAggregators }, () => startAggregator()));
      const env = { TCCL_ALGO: algorithm, TCCL_AGGREGATOR: ids.join(), TCCL_TEST_CONFIG: config };
      const args = ['--seed', '31', '--calls', '30', '--kinds', 'allReduce', ...(config === '{}' ? ['--promises'] : [])];
      const ended = await Promise.all(start('random-collectives.mjs', args, env).map((rank) => rank.ended));
      for (const { code, stderr } of ended) expect([code, stderr]).toEqual([0, '']);
    });

    it.each(['collnet', 'collnetchain'])('send and receive the data of each host once: %s', async (algorithm) => {
      const bytes = 8 * 2 ** 20;
      const id = await startAggregator([], { TCCL_SOCKET_IFNAME: '=rail0' });
      const before = [0, 1, 2].map((host) => hosts!.counters(host));
      const env = { TCCL_ALGO: algorithm, TCCL_AGGREGATOR: id, TCCL_SOCKET_IFNAME: '=rail0' };
      const ended = await Promise.all(start('aggregated.mjs', ['sums', String(bytes), '3'], env).map((rank) => rank.ended));
      for (const { code, stderr } of ended) expect([code, stderr]).toEqual([0, '']);
      expect(new Set(ended.map(({ lines }) => lines[0]?.['hash'])).size).toBe(1);
      for (const { lines } of ended) expect(lines[0]).toMatchObject({ wrong: 0 });
      for (const host of [0, 1, 2]) {
        const { sent, received } = hosts!.counters(host);
        for (const crossed of [sent - before[host]!.sent, received - before[host]!.received]) {
          expect(crossed).toBeGreaterThan(3 * bytes);
          expect(crossed).toBeLessThan(3 * bytes * 1.12); // headers, acknowledgements, credits, and the ranks' meeting
        }
      }
    });

    it('load each rail with the share of its aggregator', async () => {
      const bytes = 8 * 2 ** 20;
      const ids = [
        await startAggregator([], { TCCL_SOCKET_IFNAME: '=rail0' }),
        await startAggregator([], { TCCL_SOCKET_IFNAME: '=rail1' }),
      ];
      const before = [0, 1].map((rail) => hosts!.counters(1, rail));
      const env = { TCCL_AGGREGATOR: ids.join(), TCCL_SOCKET_IFNAME: '=rail0,rail1' };
      const ended = await Promise.all(start('aggregated.mjs', ['sums', String(bytes), '2'], env).map((rank) => rank.ended));
      for (const { code, stderr } of ended) expect([code, stderr]).toEqual([0, '']);
      expect(ended[0]!.lines[0]!['text']).toMatch(
        /takes collnet .*aggregators add what .* at 10\.213\.100\.4:\d+, .* at 10\.213\.101\.4:\d+/,
      );
      for (const rail of [0, 1]) {
        const crossed = hosts!.counters(1, rail).sent - before[rail]!.sent;
        expect(crossed).toBeGreaterThan(bytes);
        expect(crossed).toBeLessThan(bytes * 1.12);
      }
    });

    it('take a known address with a common secret, and refuse another one', async () => {
      const port = nextPort++;
      const at = `10.213.100.4:${port}`;
      expect(await startAggregator(['--listen', at], { TCCL_COMM_SECRET: 'right' })).toBe(at);
      const ranks = (secret: string) =>
        Promise.all(
          start('aggregated.mjs', ['sums', '4000'], { TCCL_AGGREGATOR: at, TCCL_COMM_SECRET: secret }, 1).map(
            (rank) => rank.ended,
          ),
        );
      for (const { code, stderr } of await ranks('right')) expect([code, stderr]).toEqual([0, '']);
      for (const { lines, code } of await ranks('wrong')) {
        expect(code).toBe(3);
        expect(lines[0]!['message']).toContain('the aggregator of TCCL_AGGREGATOR');
      }
    });

    it.each(['{}', '{"blocking":true}'])('end with one error that names the aggregator when it dies (%s)', async (config) => {
      const id = await startAggregator();
      const ranks = start('aggregated.mjs', ['endless'], { TCCL_AGGREGATOR: id, TCCL_TEST_CONFIG: config });
      await Promise.all(ranks.map((rank) => rank.line((line) => line['started'] === true)));
      aggregators[0]!.kill('SIGKILL');
      for (const { lines, code } of await Promise.all(ranks.map((rank) => rank.ended))) {
        expect(code).toBe(3);
        expect(lines.at(-1)).toMatchObject({ code: 'NETWORK', name: 'SystemError' });
        expect(lines.at(-1)!['message']).toMatch(
          /^allReduce: the aggregator at 10\.213\.10[01]\.4:\d+ ended while the ranks used it; start it again/,
        );
      }
    });

    it.each(['{}', '{"blocking":true}', '{"engine":"thread"}'])(
      'name it in warnings and errors where a signal has stopped it (%s)',
      async (config) => {
        const id = await startAggregator();
        const env = { TCCL_AGGREGATOR: id, TCCL_TEST_CONFIG: config, TCCL_TIMEOUT: '3', TCCL_WARN_AFTER: '1' };
        const ranks = start('aggregated.mjs', ['endless'], env);
        await Promise.all(ranks.map((rank) => rank.line((line) => line['started'] === true)));
        aggregators[0]!.kill('SIGSTOP');
        for (const { lines, code, stderr } of await Promise.all(ranks.map((rank) => rank.ended))) {
          expect([code, lines.at(-1)!['code']]).toEqual([3, 'TIMEOUT']);
          expect(lines.at(-1)!['message']).toMatch(/^allReduce: .* for the aggregator at 10\.213\.10[01]\.4:\d+/);
          expect(lines.at(-1)!['ranks']).toEqual([]);
          expect(stderr).toMatch(/has waited .* for the aggregator at 10\.213\.10[01]\.4:\d+/);
        }
      },
    );

    it('say that it was stopped', async () => {
      const id = await startAggregator();
      const ranks = start('aggregated.mjs', ['endless'], { TCCL_AGGREGATOR: id }, 1);
      await Promise.all(ranks.map((rank) => rank.line((line) => line['started'] === true)));
      aggregators[0]!.kill('SIGTERM');
      for (const { lines } of await Promise.all(ranks.map((rank) => rank.ended)))
        expect(lines.at(-1)!['message']).toMatch(/^allReduce: the aggregator at 10\.213\.10[01]\.4:\d+ was stopped \(SIGTERM\)/);
    });

    it('name the rank that the others wait for, and ranks with another call', async () => {
      const id = await startAggregator();
      const ends = async (scenario: string) => {
        const ranks = start('aggregated.mjs', [scenario], { TCCL_AGGREGATOR: id, TCCL_TIMEOUT: '3' });
        const others = ranks.filter((_, rank) => scenario !== 'late' || rank !== 3);
        return Promise.all(others.map((rank) => rank.ended));
      };
      for (const { lines } of await ends('late')) {
        expect(lines.at(-1)).toMatchObject({ code: 'TIMEOUT' });
        expect(lines.at(-1)!['message']).toMatch(/rank 3\b/);
      }
      for (const { lines } of await ends('other')) expect(lines.at(-1)).toMatchObject({ code: 'CALL_MISMATCH' });
    });

    it('say what is missing where no aggregator is given', async () => {
      const ended = await Promise.all(
        start('aggregated.mjs', ['sums', '4000'], { TCCL_ALGO: 'collnet' }, 1).map((rank) => rank.ended),
      );
      for (const { lines } of ended) {
        expect(lines[0]).toMatchObject({ code: 'UNSUPPORTED' });
        expect(lines[0]!['message']).toContain('needs an aggregator: start the ranks with tccl run --collnet');
      }
    });
  },
);
