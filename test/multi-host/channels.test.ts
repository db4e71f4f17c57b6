import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { ringLines, treesLine } from '../../src/planner/graph/merge/print.js';
import { plan, type Plan } from '../../src/planner/plan/plan.js';
import { parseXml } from '../../src/planner/topology/xml/parse.js';
import { tccl } from '../multi-process/cli.js';
import { startFixture, type Fixture, type Outcome } from '../multi-process/fixtures/processes.js';
import { madeNvLinkPair, madeTopology } from '../unit/runtime/channels/made-topology.js';
import { makeRails, type Rails } from './rails.js';
import { whyNoHosts } from './two-hosts.js';

const reason = whyNoHosts();
const SIZES = ['1', '1000', '300000'];

/** The part of `tccl plan --topology --json` that names who sends by which NIC. */
interface PlannedJson {
  readonly hosts: readonly (readonly number[])[];
  readonly rings: readonly {
    readonly order: readonly number[];
    readonly nics: readonly { readonly name: string }[];
    readonly relays?: Readonly<Record<number, number>>;
  }[];
  readonly trees: readonly { readonly up: readonly number[] }[];
}

describe.skipIf(reason !== undefined)(`channels of two hosts${reason === undefined ? '' : ` (skipped: ${reason})`}`, () => {
  const folder = mkdtempSync(join(tmpdir(), 'tccl-channels-'));
  const started: Fixture[] = [];
  let rails: Rails | undefined;
  let nextPort = 29711;
  let nextJob = 0;
  afterEach(() => {
    for (const { child } of started.splice(0)) child.kill('SIGKILL');
    rails?.remove();
    rails = undefined;
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  interface Job {
    readonly ended: readonly Outcome[];
    /** The log's lines of all ranks, without what precedes `TCCL INFO`. */
    readonly log: readonly string[];
    /** The plan from the dumped topologies. */
    readonly planned: () => Plan;
    readonly graphs: () => readonly string[];
    /** Lines on channels in the log of the first communicator, and those that `tccl plan --topology` makes of the dumps. */
    readonly loggedLines: () => ReadonlySet<string>;
    readonly plannedLines: (...dumps: ('topo' | 'graph')[]) => Promise<ReadonlySet<string>>;
  }

  /** @param hostOfRank the host of each rank */
  async function run(
    hostOfRank: readonly number[],
    env: Record<string, string>,
    envOfHost: Record<string, string>[] = [],
  ): Promise<Job> {
    const job = join(folder, String(nextJob++));
    const port = nextPort++;
    const fixtures = hostOfRank.map((host, rank) => {
      const fixture = startFixture(
        'channels.mjs',
        [env['CALLS'] ?? 'all', ...SIZES],
        {
          TCCL_RANK: String(rank),
          TCCL_NRANKS: String(hostOfRank.length),
          TCCL_HOSTID: `host ${host}`,
          TCCL_COMM_ID: `${rails!.root}:${port}`,
          TCCL_JOB_ID: job,
          TCCL_ALGO: 'ring',
          TCCL_DEBUG: 'INFO',
          TCCL_DEBUG_FILE: `${job}.${rank}.log`,
          TCCL_TOPO_DUMP_FILE: `${job}.topo.${host}.%h.xml`,
          TCCL_GRAPH_DUMP_FILE: `${job}.graph.${host}.%h.xml`,
          ...env,
          ...envOfHost[host],
        },
        rails!.on[host],
      );
      started.push(fixture);
      return fixture;
    });
    const ended = await Promise.all(fixtures.map((fixture) => fixture.ended));
    const hosts = [...new Set(hostOfRank)];
    const dumpFiles = (what: string): string[] => hosts.map((host) => `${job}.${what}.${host}.${hostname()}.xml`);
    const dumps = (what: string): string[] => dumpFiles(what).map((file) => readFileSync(file, 'utf8'));
    const logs = hostOfRank.map((_, rank) => {
      const file = `${job}.${rank}.log`;
      const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
      return lines.map((line) => line.replace(/^.*TCCL INFO /, ''));
    });
    return {
      ended,
      log: logs.flat(),
      loggedLines: () => {
        const ofFirst = logs.flatMap((log) => log.slice(0, 1 + log.findIndex((line) => line.includes('Init COMPLETE'))));
        return new Set(ofFirst.filter((line) => /^(Pattern|Channel|Trees| *\d+ : )/.test(line)));
      },
      plannedLines: async (...kinds) => {
        const { stdout, stderr, code } = await tccl(['plan', '--topology', ...kinds.flatMap(dumpFiles)]);
        expect([stderr, code]).toEqual(['', 0]);
        return new Set(stdout.trimEnd().split('\n'));
      },
      planned: () => plan({ hosts: dumps('topo').map((text) => ({ machine: parseXml(text).root, count: 1 })) }),
      graphs: () => dumps('graph'),
    };
  }

  /** The rings of the first communicator in a log. */
  const loggedRings = (log: readonly string[], count: number): string[] =>
    log.filter((line) => /^Channel \d+\/\d+ : /.test(line)).slice(0, count);

  it("with one NIC are the planner's, and use it", async () => {
    rails = makeRails(1);
    const job = await run([0, 0, 1, 1], {});
    for (const { code, stderr } of job.ended) expect([code, stderr]).toEqual([0, '']);
    const planned = job.planned();
    expect(loggedRings(job.log, planned.nChannels)).toEqual(ringLines(planned, { whole: true }));
    for (let rank = 0; rank < 4; rank++) expect(job.log).toContain(treesLine(planned, rank, { whole: true }));
    expect(await job.plannedLines('topo')).toEqual(job.loggedLines());
    expect(job.ended[0]!.lines[0]!['explained']).toMatch(/its rings are planned .*: 0 1 2 3 over rail0/);
    expect(job.graphs()[0]).toMatch(/<graphs version="1">\n {2}<graph id="0" pattern="4"/);
  });

  it.each([
    { form: 'inline', config: {} },
    { form: 'blocking', config: { blocking: true } },
    { form: 'thread', config: { engine: 'thread' } },
  ])('with two NICs use both, each for about half of the data ($form)', async ({ config }) => {
    rails = makeRails(2);
    const job = await run([0, 0, 1, 1], { TCCL_SOCKET_IFNAME: 'rail', TCCL_TEST_CONFIG: JSON.stringify(config) });
    for (const { code, stderr } of job.ended) expect([code, stderr]).toEqual([0, '']);
    const planned = job.planned();
    expect(loggedRings(job.log, planned.nChannels)).toEqual(ringLines(planned, { whole: true }));
    const { explained, sent } = job.ended[0]!.lines[0]! as { explained: string; sent: Record<string, number> };
    expect(explained).toMatch(/ over rail0; .* over rail1/);
    expect(sent['rail1']! / sent['rail0']!).toBeGreaterThan(0.8);
    expect(sent['rail1']! / sent['rail0']!).toBeLessThan(1.25);
    expect(await job.plannedLines('topo', 'graph')).toEqual(job.loggedLines());
  });

  it.each([
    { form: 'inline', config: {} },
    { form: 'blocking', config: { blocking: true } },
    { form: 'thread', config: { engine: 'thread' } },
  ])('with two NICs lend both to messages and windows ($form)', async ({ config }) => {
    rails = makeRails(2);
    for (const calls of ['messages', 'windows']) {
      const job = await run([0, 0, 1, 1], { TCCL_SOCKET_IFNAME: 'rail', CALLS: calls, TCCL_TEST_CONFIG: JSON.stringify(config) });
      for (const { code, stderr } of job.ended) expect([code, stderr]).toEqual([0, '']);
      const { sent } = job.ended[0]!.lines[0]! as { sent: Record<string, number> };
      expect(sent['rail0']! + sent['rail1']!, calls).toBeGreaterThan(4_000_000);
      expect(sent['rail1']! / sent['rail0']!, calls).toBeGreaterThan(0.8);
      expect(sent['rail1']! / sent['rail0']!, calls).toBeLessThan(1.25);
    }
  });

  it.each([
    { calls: 'allReduce', hostOfRank: [0, 0, 0, 1], form: 'inline', config: {} },
    { calls: 'allReduce', hostOfRank: [0, 1], form: 'thread', config: { engine: 'thread' } },
    { calls: 'allToAll', hostOfRank: [0, 1], form: 'inline', config: {} },
    { calls: 'allToAll', hostOfRank: [0, 1], form: 'two sockets each', config: {}, env: { TCCL_NSOCKS_PER_CONNECTION: '2' } },
    { calls: 'allToAll', hostOfRank: [0, 0, 0, 1], form: 'blocking', config: { blocking: true } },
    { calls: 'allToAll', hostOfRank: [0, 0, 0, 1], form: 'thread', config: { engine: 'thread' } },
    { calls: 'allToAll', hostOfRank: [0, 0, 1, 1], form: 'inline', config: {} },
  ])(
    'with two NICs use both evenly for $calls of ranks on hosts $hostOfRank ($form)',
    async ({ calls, hostOfRank, config, env = {} }) => {
      rails = makeRails(2);
      const always = { TCCL_SOCKET_IFNAME: 'rail', TCCL_ALGO: '', TCCL_TEST_CONFIG: JSON.stringify(config) };
      const job = await run(hostOfRank, { ...always, CALLS: calls, ...env });
      for (const { code, stderr } of job.ended) expect([code, stderr]).toEqual([0, '']);
      const { sent } = job.ended.at(-1)!.lines[0]! as { sent: Record<string, number> };
      expect(sent['rail0']! + sent['rail1']!).toBeGreaterThan(2_000_000);
      expect(sent['rail1']! / sent['rail0']!).toBeGreaterThan(0.8);
      expect(sent['rail1']! / sent['rail0']!).toBeLessThan(1.25);
    },
  );

  it('leave out an interface that leads elsewhere, unless its whole name is given', async () => {
    rails = makeRails(2, { cutFrom: 1 });
    const matched = await run([0, 1], { TCCL_SOCKET_IFNAME: 'rail', CALLS: 'allReduce' });
    for (const { code, stderr } of matched.ended) expect([code, stderr]).toEqual([0, '']);
    expect(matched.ended[0]!.lines[0]!['explained']).toMatch(/takes ring \(Simple, 1 channel\).*: 0 1 over rail0$/);
    const given = await run([0, 0, 1], { TCCL_SOCKET_IFNAME: '=rail0,rail1', CALLS: 'allReduce' });
    for (const { code, lines } of given.ended) {
      expect([code, lines[0]!['code']]).toEqual([3, 'NETWORK']);
      expect(lines[0]!['message']).toMatch(
        /^init: rank \d on \S+ \([\d.]+\) cannot reach rank \d on \S+ \([\d.]+\) for data at .*ENETUNREACH.* that the interface to that network is up/,
      );
    }
  });

  it('leave out an interface of the same subnet that is not connected, and the log gives the reason', async () => {
    rails = makeRails(3, { apartFrom: 2 });
    const job = await run([0, 0, 1], { CALLS: 'allReduce', TCCL_SOCKET_IFNAME: 'rail' });
    for (const { code, stderr } of job.ended) expect([code, stderr]).toEqual([0, '']);
    expect(job.ended[0]!.lines[0]!['explained']).toMatch(/ over rail0.* over rail1/);
    expect(job.ended[0]!.lines[0]!['explained']).not.toContain('rail2');
    const lines = job.log.filter((line) => line.startsWith('NET/Socket : '));
    expect(lines).toContain('NET/Socket : Using [0]rail0:10.213.80.1<0> [1]rail1:10.213.81.1<0>');
    expect(lines).toContain('NET/Socket : Using [0]rail0:10.213.80.2<0> [1]rail1:10.213.81.2<0>');
    expect(lines).toContainEqual(
      expect.stringMatching(/^NET\/Socket : lo \(127\.0\.0\.1.*\) is not used: TCCL_SOCKET_IFNAME=rail$/),
    );
    expect(lines).toContain('NET/Socket : end2 is not used (no address)');
    for (const host of [1, 2]) {
      const [own, other] = [`10\\.213\\.82\\.${host}`, `10\\.213\\.82\\.${3 - host}:\\d+`];
      const line = `^NET/Socket : rail2 \\(${own}\\) is not used: it does not reach ${hostname()}: .*${other}`;
      expect(lines).toContainEqual(expect.stringMatching(new RegExp(line)));
    }
  });

  it('leave out an interface whose network has failed, after shrink()', async () => {
    rails = makeRails(2);
    const env = { CALLS: 'shrink', TCCL_SOCKET_IFNAME: 'rail', TCCL_HEARTBEAT: '2', TCCL_ALGO: '' };
    const job = run([0, 1], env);
    await Promise.all(started.map((fixture) => fixture.line(({ ready }) => ready === true)));
    rails.cut(1);
    for (const { code, lines, stderr } of (await job).ended) {
      expect([code, stderr]).toEqual([0, '']);
      expect(lines.at(-1)).toMatchObject({ nRanks: 2, sum: 3 });
      expect(lines.at(-1)!['explained']).toMatch(/over rail0$/);
    }
  });

  it.each([
    { form: 'inline', config: {} },
    { form: 'thread', config: { engine: 'thread' } },
  ])('end all ranks with the error of the rank whose dial gets no answer ($form)', async ({ config }) => {
    rails = makeRails(2);
    rails.silence(1);
    const job = await run([0, 1], {
      TCCL_SOCKET_IFNAME: '=rail0,rail1',
      TCCL_HEARTBEAT: '2',
      TCCL_TEST_CONFIG: JSON.stringify(config),
    });
    for (const { code, lines } of job.ended) {
      expect([code, lines[0]!['code']]).toEqual([3, 'NETWORK']);
      expect(lines[0]!['message']).toMatch(
        /^init: rank 1 on \S+ \(10\.213\.81\.2\) cannot reach rank 0 on \S+ \([\d.]+\) for data at 10\.213\.81\.1:\d+: no answer within 2 s .*firewall/,
      );
    }
  });

  it.each(['tree', 'hierarchical'])('lend their NICs to the algorithm %s', async (algorithm) => {
    rails = makeRails(2);
    const job = await run([0, 0, 1, 1], { TCCL_SOCKET_IFNAME: 'rail', TCCL_ALGO: algorithm, CALLS: 'allReduce' });
    for (const { code, stderr } of job.ended) expect([code, stderr]).toEqual([0, '']);
    const sent = job.ended.map(({ lines }) => lines[0]!['sent'] as Record<string, number>);
    for (const rail of ['rail0', 'rail1']) expect(Math.max(...sent.map((bytes) => bytes[rail]!))).toBeGreaterThan(1_000_000);
  });

  it('keep to a rail where hosts have different names for their interfaces', async () => {
    rails = makeRails(2, { swapped: true });
    const job = await run([0, 1], { TCCL_SOCKET_IFNAME: 'rail' });
    for (const { code, stderr } of job.ended) expect([code, stderr]).toEqual([0, '']);
    // Rails are subnets: the ring that leaves host a by rail0 enters host b by the interface named rail1.
    expect(job.log.filter((line) => /^Channel \d+\/0 : /.test(line))).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^Channel 00\/0 : 0\[0\] -> 1\[0\] via NET\/Socket\/0 \(rail0\)/),
        expect.stringMatching(/^Channel 00\/0 : 1\[0\] -> 0\[0\] via NET\/Socket\/0 \(rail1\)/),
      ]),
    );
  });

  it.each([
    ['in blocks', [0, 0, 0, 0, 1, 1, 1, 1]],
    ['dealt in turn', [0, 1, 0, 1, 0, 1, 0, 1]],
  ])('follow topology files of hosts with uneven NUMA nodes, ranks %s', async (_, hostOfRank) => {
    rails = makeRails(2);
    const files = [
      madeTopology([{ devs: [0, 2], nics: { rail0: 25_000 } }, { devs: [1, 3], nics: { rail1: 25_000 } }]), // prettier-ignore
      madeTopology([{ devs: [0, 1, 3], nics: { rail0: 25_000, rail1: 25_000 } }, { devs: [2] }]), // prettier-ignore
    ].map((text, host) => {
      const file = join(folder, `given${host}.xml`);
      writeFileSync(file, text);
      return { TCCL_TOPO_FILE: file };
    });
    const job = await run(hostOfRank, { TCCL_SOCKET_IFNAME: 'rail' }, files);
    for (const { code, stderr } of job.ended) expect([code, stderr]).toEqual([0, '']);
    const planned = job.planned();
    // Not rank order, and the planner numbers ranks host by host.
    expect(ringLines(planned)[0]).toMatch(/ : 0 2 1 3 4 5 7 6$/);
    const rankOf = [0, 1].flatMap((host) => hostOfRank.flatMap((own, rank) => (own === host ? [rank] : [])));
    const expected = ringLines(planned, { whole: true }).map((line) =>
      line.replace(/(?<= : .*)\d+/g, (rank) => String(rankOf[Number(rank)])),
    );
    expect(loggedRings(job.log, planned.nChannels)).toEqual(expected);
    expect(await job.plannedLines('topo')).toEqual(job.loggedLines());
  });

  /** The share of the bytes between hosts that each rank sends from each NIC: all edges of the planned channels carry as much. */
  function sharesOf({ hosts, rings, trees }: PlannedJson, algorithm: string): Map<string, number> {
    const hostOf = (rank: number): number => hosts.findIndex((ranks) => ranks.includes(rank));
    const edges =
      algorithm === 'ring'
        ? rings.flatMap(({ order, nics, relays = {} }) =>
            order.map((from, place) => ({
              from,
              to: order[(place + 1) % order.length]!,
              through: relays[from] ?? from,
              nic: nics[from]!.name,
            })),
          )
        : trees.flatMap(({ up }, tree) =>
            up.flatMap((above, rank) => {
              const nicOf = (from: number): string => rings[tree % rings.length]!.nics[from]!.name;
              const edge = (from: number, to: number) => ({ from, to, through: from, nic: nicOf(from) });
              return above < 0 ? [] : [edge(rank, above), edge(above, rank)];
            }),
          );
    const between = edges.filter(({ from, to }) => hostOf(from) !== hostOf(to));
    const shares = new Map<string, number>();
    for (const { through, nic } of between) {
      const key = `${through} ${nic}`;
      shares.set(key, (shares.get(key) ?? 0) + 1 / between.length);
    }
    return shares;
  }

  it.each([
    { algorithm: 'ring', form: 'inline', config: {} },
    { algorithm: 'ring', form: 'blocking', config: { blocking: true } },
    { algorithm: 'ring', form: 'thread', config: { engine: 'thread' } },
    { algorithm: 'tree', form: 'inline', config: {} },
  ])('send by the ranks and NICs that the plan names, as PXN: $algorithm ($form)', async ({ algorithm, config }) => {
    rails = makeRails(2);
    const file = join(folder, 'pxn.xml');
    writeFileSync(file, madeNvLinkPair());
    const env = { TCCL_TOPO_FILE: file, TCCL_TEST_SOCKETS: '1', TCCL_TEST_CONFIG: JSON.stringify(config) };
    const always = { TCCL_SOCKET_IFNAME: 'rail', TCCL_ALGO: algorithm, CALLS: 'allReduce' };
    const job = await run([0, 0, 1, 1], { ...always, ...env });
    for (const { code, stderr } of job.ended) expect([code, stderr]).toEqual([0, '']);
    const { stdout } = await tccl(['plan', '--topology', file, file]);
    const lines = stdout.split('\n').filter((line) => line.includes('via NET'));
    expect(lines).toContain('Channel 00/0 : 1[1] -> 2[0] via NET/Socket/0(0) (rail0)');
    for (const line of lines) expect(job.log).toContain(line);

    const told = job.ended.map(({ lines }) => lines[0]! as { sent: Record<string, number>; own: Record<string, number> });
    const planned = JSON.parse((await tccl(['plan', '--topology', file, file, '--json'])).stdout) as PlannedJson;
    const shares = sharesOf(planned, algorithm);
    expect([...shares.values()].reduce((sum, share) => sum + share, 0)).toBeCloseTo(1);
    const byRank = told.map(({ own }, rank) => [0, 1].map((rail) => own[`10.213.8${rail}.${rank < 2 ? 1 : 2}`] ?? 0));
    const total = byRank.flat().reduce((sum, bytes) => sum + bytes, 0);
    byRank.forEach((bytes, rank) => {
      for (const rail of [0, 1]) {
        const measured = bytes[rail]! / total;
        expect(Math.abs(measured - (shares.get(`${rank} rail${rail}`) ?? 0)), `rank ${rank}, rail${rail}`).toBeLessThan(0.05);
      }
    });
    // The interfaces of a host carry what its ranks' shares add up to.
    const { sent } = told[0]!;
    const ofHost = (rail: number): number => (shares.get(`0 rail${rail}`) ?? 0) + (shares.get(`1 rail${rail}`) ?? 0);
    const rail0 = ofHost(0) / (ofHost(0) + ofHost(1));
    expect(Math.abs(sent['rail0']! / (sent['rail0']! + sent['rail1']!) - rail0)).toBeLessThan(0.05);
    // What leaves by a rail arrives by the same: the two rails of the namespaces are apart.
    const { stdout: answer } = await tccl(['explain', file, '--nodes', '2', 'which', 'rails', 'are', 'crossed']);
    expect(answer).toMatch(/^no rail is crossed/);
  });

  it('are refused on every rank where a topology file is wrong', async () => {
    rails = makeRails(1);
    const file = join(folder, 'wrong.xml');
    writeFileSync(file, madeTopology([{ devs: [0], nics: { rail0: 25_000 } }]));
    const job = await run([0, 0, 1, 1], {}, [{}, { TCCL_TOPO_FILE: file }]);
    for (const [rank, { code, lines }] of job.ended.entries()) {
      expect(code).toBe(3);
      expect(lines[0]!['message']).toMatch(/has no <gpu dev="1">, which stands for the rank with device cpu:1: add it/);
      if (rank !== 2) expect(lines[0]!['message']).toContain(`rank 2: ${file}`);
      else expect(lines[0]).toMatchObject({ code: 'CONTENT', file });
    }
  });
});
