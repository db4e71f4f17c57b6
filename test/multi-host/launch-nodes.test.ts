import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { cliPath, fixture, start, type Finished } from '../multi-process/cli.js';
import { makeTwoHosts, whyNoHosts, type TwoHosts } from './two-hosts.js';

const node = process.execPath;
const reason = whyNoHosts();
const secret = 'f'.repeat(64);

describe.skipIf(reason !== undefined)(`tccl run --nnodes${reason === undefined ? '' : ` (skipped: ${reason})`}`, () => {
  let hosts: TwoHosts;
  beforeAll(() => void (hosts = makeTwoHosts()));
  afterAll(() => hosts.remove());

  function onHost(host: number, command: readonly string[], env: Readonly<Record<string, string>>): Promise<Finished> {
    const [ip = '', ...rest] = hosts.on[host] ?? [];
    return start(ip, [...rest, ...command], { env: { TCCL_HOSTID: `host ${host}`, ...env } }).finished;
  }

  const run = (host: number, port: number, args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    onHost(
      host,
      [node, cliPath, 'run', '--nnodes', '2', '--node-rank', String(host), '--rendezvous', `10.213.77.1:${port}`, ...args],
      { TCCL_COMM_SECRET: secret, ...env },
    );

  it.each([
    ['as many ranks on each', '2', [2, 2]],
    ['three ranks here and one there', '3,1', [3, 1]],
  ] as const)('starts %s, by hand on each', async (_, counts, [here, there]) => {
    const port = 29811 + here;
    const args = ['-n', counts, node, fixture('sum.mjs')];
    const [a, b] = await Promise.all([run(0, port, args), run(1, port, args)]);
    expect([a.stderr, b.stderr, a.code, b.code]).toEqual(['', '', 0, 0]);
    const sums = (first: number, count: number) =>
      Array.from({ length: count }, (__, i) => {
        const rank = first + i;
        return `[${rank}] ${JSON.stringify({ round: 0, rank, nRanks: 4, sums: Array(5).fill(10) })}`;
      });
    expect(a.stdout.trimEnd().split('\n').sort()).toEqual(sums(0, here));
    expect(b.stdout.trimEnd().split('\n').sort()).toEqual(sums(here, there));
  });

  it('gives ranks their number among all nodes and on their own', async () => {
    const { stdout } = await run(1, 29821, ['-n', '3,2', '--no-prefix', node, fixture('place.mjs')]);
    const places = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    const common = { launcher: 'tccl', nRanks: 5, nLocalRanks: 2, commId: '10.213.77.1:29821' };
    expect(places).toHaveLength(2);
    expect(places).toContainEqual({ ...common, rank: 3, localRank: 0 });
    expect(places).toContainEqual({ ...common, rank: 4, localRank: 1 });
  });

  it('names the hosts of ranks whose nodes disagree on their number', async () => {
    const ends = await Promise.all(
      [0, 1].map((host) => run(host, 29823, ['-n', host === 0 ? '2' : '1', node, fixture('sum.mjs')])),
    );
    for (const { code, stderr } of ends) {
      expect(code).toBe(1);
      expect(stderr).toMatch(
        /ranks 0,1 with 4 on \S+ \(10\.213\.77\.1\), rank 1 with 2 on \S+ \(10\.213\.77\.2\); all must have the same count: compare -n/,
      );
    }
  });

  it('asks for a node rank of its own where two nodes have the same', async () => {
    const places = [
      [0, '0'],
      [0, '1'],
      [1, '1'],
    ] as const;
    const args = ['-n', '1', node, fixture('sum.mjs')];
    const ends = places.map(([host, index]) => run(host, 29824, ['--nnodes', '3', '--node-rank', index, ...args]));
    for (const { stderr } of await Promise.all(ends)) {
      expect(stderr).toMatch(/rank 1 checked in 2 times .*; with --nnodes, each node needs a --node-rank of its own/);
    }
  });

  it('ends on both nodes when a rank of one fails', async () => {
    const args = ['-n', '2', node, fixture('waits-for-rank-3.mjs')];
    const [a, b] = await Promise.all([run(0, 29822, args), run(1, 29822, args)]);
    expect(b.code).toBe(7);
    expect(b.stderr).toContain('tccl run: rank 3 exited with code 7');
    expect(a.code).toBe(1);
    expect(a.stderr).toMatch(/RANK_DIED|CLOSED/);
  });

  it("runs the pods of the page's Kubernetes Job", async () => {
    const page = readFileSync(fileURLToPath(new URL('../../docs/guides/launch-hosts.md', import.meta.url)), 'utf8');
    const yaml = /```yaml\n(.*?)```/s.exec(page)?.[1] ?? '';
    const [service, job] = parseAllDocuments(yaml).map((document) => document.toJS() as unknown) as [
      { metadata: { name: string }; spec: { clusterIP: string; publishNotReadyAddresses: boolean; selector: object } },
      {
        metadata: { name: string };
        spec: {
          completionMode: string;
          completions: number;
          parallelism: number;
          template: { spec: { subdomain: string; containers: { command: string[]; env: { name: string }[] }[] } };
        };
      },
    ];
    // Pods have names in DNS before they are ready, and all run at once.
    expect(service.spec).toEqual({
      clusterIP: 'None',
      publishNotReadyAddresses: true,
      selector: { 'job-name': job.metadata.name },
    });
    expect(job.spec).toMatchObject({ completionMode: 'Indexed', completions: 2, parallelism: 2 });
    const { subdomain, containers } = job.spec.template.spec;
    expect(subdomain).toBe(service.metadata.name);
    const [container] = containers;
    expect(container?.env.map(({ name }) => name)).toEqual(['TCCL_COMM_SECRET']);

    // The image: the program of the guide, and tccl in node_modules.
    const image = mkdtempSync(join(tmpdir(), 'tccl-image-'));
    const names = hosts.on.map((command) => command[3] ?? '');
    try {
      mkdirSync(join(image, 'node_modules', '.bin'), { recursive: true });
      symlinkSync(fileURLToPath(new URL('../..', import.meta.url)), join(image, 'node_modules', 'tccl'));
      symlinkSync(cliPath, join(image, 'node_modules', '.bin', 'tccl'));
      const guide = readFileSync(fileURLToPath(new URL('../../docs/guides/launch.md', import.meta.url)), 'utf8');
      writeFileSync(join(image, 'sum.mjs'), /```js\n\/\/ sum\.mjs\n(.*?)```/s.exec(guide)?.[1] ?? '');
      // `ip netns exec` puts these files in the place of /etc/hosts.
      for (const name of names) {
        mkdirSync(`/etc/netns/${name}`, { recursive: true });
        const hostNames = names.map((_, i) => `10.213.77.${i + 1} ${job.metadata.name}-${i}.${subdomain}\n`);
        writeFileSync(`/etc/netns/${name}/hosts`, `127.0.0.1 localhost\n${hostNames.join('')}`);
      }
      const pods = names.map((_, index) =>
        onHost(index, ['sh', '-c', 'cd "$0" && exec "$@"', image, ...(container?.command ?? [])], {
          JOB_COMPLETION_INDEX: String(index),
          TCCL_COMM_SECRET: secret,
        }),
      );
      const outputs = await Promise.all(pods);
      expect(outputs.map(({ code }) => code)).toEqual([0, 0]);
      const lines = outputs.flatMap(({ stdout }) => stdout.trimEnd().split('\n')).sort();
      expect(lines).toEqual(Array.from({ length: 8 }, (_, rank) => `[${rank}] rank ${rank} of 8: 36`));
    } finally {
      for (const name of names) rmSync(`/etc/netns/${name}`, { recursive: true, force: true });
      rmSync(image, { recursive: true });
    }
  });
});
