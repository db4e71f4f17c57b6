import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { tccl } from './in-process.js';
import { type Manners, RasServer, type ServedCommunicator } from './ras-server.js';
import { shownSoFar, watch } from './watching.js';

const folder = mkdtempSync(join(tmpdir(), 'tccl-watch-'));
afterAll(() => rmSync(folder, { recursive: true }));

const servers: RasServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

async function served(...manners: Manners[]): Promise<{ readonly server: RasServer; readonly address: string }> {
  const server = new RasServer(...manners);
  servers.push(server);
  return { server, address: await server.listen() };
}

/** A port that was free a moment ago. */
async function freePort(): Promise<number> {
  const probe = new RasServer({ version: '', communicators: () => [] });
  const address = await probe.listen();
  await probe.close();
  return Number(address.split(':')[1]);
}

/** Ranks of one communicator, by how many all-reduces each has launched. */
const communicator = (launched: readonly number[], hash = '0xfa93daea854b060b'): ServedCommunicator => ({
  hash,
  ranks: launched.map((count, rank) => ({ rank, counts: { AllReduce: count } })),
});
const eight = (count: number, late?: number) => Array.from({ length: 8 }, (_, rank) => (rank === late ? count - 1 : count));
const job = (version: string, communicators: Manners['communicators']): Manners => ({ version, communicators });
describe('tccl watch', () => {
  it.each(['2.28.7', '2.28.9', '2.29.2', '2.30.7', '2.32.3'])(
    'says of NCCL %s which rank lags, and where it runs',
    async (version) => {
      const { server, address } = await served(job(version, () => [communicator(eight(640, 5))]));
      const { code, stdout } = await watch([address]);
      expect(stdout).toContain('rank 5 (10.0.0.1, pid 4005, GPU 5) has launched 639 AllReduce');
      expect(stdout).toContain(`NCCL ${version}`);
      expect(code).toBe(1);
      expect(
        server.received.filter(
          (command) => !/^(CLIENT PROTOCOL 2|SET FORMAT json|TIMEOUT 5|VERBOSE STATUS|MONITOR lifecycle,trace)$/.test(command),
        ),
      ).toEqual([]);
    },
  );

  it.each(['2.24.3', '2.26.2', '2.28.3'])('reads the text of NCCL %s', async (version) => {
    const { address } = await served(job(version, () => [communicator(eight(640, 5))]));
    const { code, stdout } = await watch([address]);
    expect(stdout).toContain('rank 5 (10.0.0.1, pid 4005, GPU 5) has launched 639 AllReduce');
    expect(code).toBe(1);
  });

  it.each(['2.26.2', '2.28.9', '2.30.7'])('puts the pieces of a report together (NCCL %s)', async (version) => {
    for (const pieces of [7, 1000]) {
      const { address } = await served({ ...job(version, () => [communicator(eight(640, 5))]), pieces });
      const { code, stdout } = await watch([address]);
      expect(stdout).toContain('rank 5 (10.0.0.1, pid 4005, GPU 5) has launched 639 AllReduce');
      expect(code).toBe(1);
    }
  });

  it('names the ranks behind where they are most, which RAS does not list', async () => {
    const counts = eight(640).map((count, rank) => (rank === 2 ? count + 1 : count));
    for (const version of ['2.26.2', '2.30.7']) {
      const { address } = await served(job(version, () => [communicator(counts)]));
      const { stdout } = await watch([address], { json: true });
      const last = JSON.parse(stdout.trim().split('\n').at(-1)!) as { state: string; late: { rank: number }[] };
      expect(last.state).toBe('stuck');
      expect(last.late.map(({ rank }) => rank)).toEqual([0, 1, 3, 4, 5, 6, 7]);
    }
  });

  it('calls a job healthy whose numbers move, also where they differ at the moment', async () => {
    const { address } = await served(job('2.30.7', (n) => [communicator(eight(640 + n, 5))]));
    const { code, stdout } = await watch([address]);
    expect(stdout).toContain('healthy');
    expect(code).toBe(0);
  });

  it('says that all have launched the same and none launches another', async () => {
    const { address } = await served(job('2.30.7', () => [communicator(eight(640))]));
    const { code, stdout } = await watch([address]);
    expect(stdout).toMatch(/stuck .*all ranks have launched the same operations/);
    expect(stdout).toContain('py-spy dump --pid 4000');
    expect(code).toBe(1);
  });

  it('suspects ranks that stay behind while other communicators move', async () => {
    const { address } = await served(job('2.30.7', (n) => [communicator(eight(640, 5)), communicator(eight(70 + n), '0xb')]));
    const { code, stdout } = await watch([address]);
    expect(stdout).toMatch(/suspect.*rank 5 .*; other communicators move/);
    expect(code).toBe(3);
  });

  it('is undecided after one report, and for text without numbers', async () => {
    const { address } = await served(job('2.30.7', () => [communicator(eight(640))]));
    expect((await watch([address], { samples: 1 })).code).toBe(3);
    const old = await served(job('2.26.2', () => [communicator(eight(640))]));
    const { code, stdout } = await watch([old.address]);
    expect(stdout).toContain('NCCL 2.26.2 gives no numbers');
    expect(code).toBe(3);
  });

  it('names dead processes, in the JSON of 2.28.9 too, which lacks commas', async () => {
    const ranks = communicator(eight(640).slice(0, 6));
    const missing = [6, 7].map((rank) => ({ rank, dead: true }));
    for (const version of ['2.28.9', '2.30.7']) {
      const { address } = await served(job(version, () => [{ ...ranks, missing }]));
      const { code, stdout } = await watch([address]);
      expect(stdout).toMatch(/dead: .*ranks 6-7/);
      expect(code).toBe(1);
    }
  });

  it('tells jobs at one port apart', async () => {
    const { address } = await served(
      job('2.30.7', (n) => [communicator(eight(640 + n), '0xa')]),
      job('2.30.7', () => [communicator(eight(70, 3), '0xb')]),
    );
    const { code, stdout } = await watch([address], { samples: 4 });
    expect(stdout).toMatch(/job 1 .*: healthy/);
    expect(stdout).toMatch(/job 2 .*rank 3 /);
    expect(code).toBe(1);
  });

  it('asks the next host where one does not answer, and ends with the job', async () => {
    const first = await served(job('2.30.7', (n) => [communicator(eight(640 + n))]));
    const watching = watch(['127.0.0.1:1', first.address], { samples: Infinity });
    await first.server.reported(2);
    await first.server.close();
    const { code, stdout } = await watching;
    expect(stdout).toContain('nothing listens at 127.0.0.1:1');
    expect(stdout).toContain('healthy');
    expect(stdout).toContain('the job has ended');
    expect(code).toBe(0);
  });

  it('says what else answers there, and what to do where nothing does', async () => {
    const other = await served({ ...job('2.30.7', () => []), garbage: 'HTTP/1.1 400 Bad Request\r\n\r\n' });
    const cases: [string[], RegExp][] = [
      [[other.address], /answers, but not as NCCL's RAS does: 'HTTP\/1\.1 400 Bad Request'/],
      [['127.0.0.1:1'], /nothing listens at 127\.0\.0\.1:1: .*NCCL_RAS_ENABLE=0.*container/],
      [['no-such-host.invalid'], /the name no-such-host\.invalid does not resolve/],
      [['a:b:c:d:z'], /is no address/],
      [['--command', 'echo no report'], /`echo no report` prints is no report of RAS: 'no report'/],
      [['--command', 'echo lost >&2; exit 3'], /gave no report: lost \(exit code 3\)/],
      [['x', '--command', 'ncclras'], /needs \{host\}/],
    ];
    for (const [args, words] of cases) {
      const { code, stderr } = await tccl(['watch', ...args, '--samples', '1']);
      expect(stderr).toMatch(words);
      expect(stderr.trim().split('\n')).toHaveLength(1);
      expect(code).toBe(2);
    }
    const cut = await served({ ...job('2.30.7', () => [communicator(eight(640))]), cutAt: 700 });
    expect((await tccl(['watch', cut.address, '--samples', '1'])).stderr).toContain(
      'the report is cut or damaged (700 characters)',
    );
  });

  it('takes reports from a command for each host', async () => {
    const { address } = await served(job('2.30.7', () => [communicator(eight(640, 5))]));
    const [, port] = address.split(':');
    const ask = `node -e "const s=require('net').connect(${port},process.argv[1],()=>s.write('SET FORMAT json\\nVERBOSE STATUS\\n'));s.pipe(process.stdout)" {host} | tail -n +2`;
    const { code, stdout } = await watch(['127.0.0.1'], { command: ask });
    expect(stdout).toContain('rank 5 (10.0.0.1, pid 4005, GPU 5)');
    expect(code).toBe(1);
  });

  it('records reports, which tccl diagnose reads as a witness', async () => {
    const [stuck, well] = [join(folder, 'stuck.jsonl'), join(folder, 'well.jsonl')];
    const hung = await served(job('2.28.9', () => [communicator(eight(640, 5))]));
    await watch([hung.address], { record: stuck });
    expect(readFileSync(stuck, 'utf8').trim().split('\n')).toHaveLength(2);
    const verdict = await tccl(['diagnose', stuck]);
    expect(verdict.stdout).toMatch(/Verdict: rank 5 .*lags behind/);
    expect(verdict.code).toBe(1);
    // Numbers that differ while they move are no fault.
    const moving = await served(job('2.30.7', (n) => [communicator(eight(640 + n, 5))]));
    await watch([moving.address], { record: well });
    const quiet = await tccl(['diagnose', well]);
    expect(quiet.stdout).not.toContain('lags behind');
    expect(quiet.code).toBe(3);
  });

  it.each([
    [
      'none has finished it',
      [638, 638],
      /stuck .*all ranks have launched AllReduce 640 .* none has finished it .* \(1048576 bytes\) took 300 µs/,
      1,
    ],
    ['one has not', [639, 638], /stuck .*rank 1 has not finished AllReduce 640 .* which rank 0 has/, 1],
    ['all have', [639, 639], /suspect .*all launched operations have finished .* in the program/, 3],
  ])('tells by NCCL Inspector where a job stands: %s', async (_, finished, words, exitCode) => {
    const records = join(mkdtempSync(join(folder, 'inspector-')), 'rank.log');
    const record = (rank: number, sequence: number) =>
      `${JSON.stringify({
        header: { id: '0xfa93daea854b060b', rank, n_ranks: 2, nnodes: 1 },
        metadata: { inspector_output_format_version: 'v4.0', hostname: 'node1', pid: 4000 + rank },
        coll_perf: { coll: 'AllReduce', coll_sn: sequence, coll_msg_size_bytes: 1_048_576, coll_exec_time_us: 300 },
      })}\n`;
    // The last line is still being written.
    writeFileSync(
      records,
      `${finished.flatMap((last, rank) => [record(rank, last - 1), record(rank, last)]).join('')}{"header":`,
    );
    const { address } = await served(job('2.30.7', () => [communicator([640, 640])]));
    const { code, stdout } = await watch([address], { inspector: dirname(records) });
    expect(stdout).toMatch(words);
    expect(code).toBe(exitCode);
  });

  it.each([
    [
      'all have launched it',
      eight(640),
      /none has finished it.*; AllReduce of 1 MiB, as the last one that finished: expected (\d\d\.\d) us, running for/,
    ],
    [
      'one rank has not',
      eight(640, 5),
      /rank 5 .* has launched 639 AllReduce.*; AllReduce of 1 MiB, .*: expected (\d\d\.\d) us, running for/,
    ],
  ])('says with --cluster how long an operation should take: %s', async (_, launched, words) => {
    const records = mkdtempSync(join(folder, 'sizes-'));
    const record = (rank: number) => ({
      header: { id: '0xfa93daea854b060b', rank, n_ranks: 8, nnodes: 1 },
      metadata: { inspector_output_format_version: 'v4.0', hostname: 'node1', pid: 4000 + rank },
      coll_perf: { coll: 'AllReduce', coll_sn: 638, coll_msg_size_bytes: 1_048_576, coll_exec_time_us: 30 },
    });
    writeFileSync(
      join(records, 'ranks.log'),
      eight(0)
        .map((_rank, rank) => `${JSON.stringify(record(rank))}\n`)
        .join(''),
    );
    const { address } = await served(job('2.30.7', () => [communicator(launched)]));
    const { stdout } = await watch([address], { inspector: records, cluster: 'dgx-h100' });
    const [, us] = words.exec(stdout) ?? [];
    const { stdout: asked } = await tccl(['explain', 'dgx-h100', '--json', 'how long does allreduce take at 1M']);
    expect(us, stdout).toBeDefined();
    expect(asked).toContain(`${us} us`);
    // Of other communicators nothing is known.
    const other = await watch([address], { inspector: records, cluster: 'dgx-h100', nodes: '2' });
    expect(other.stdout).not.toContain('expected');
    expect((await watch([address], { cluster: 'dgx-h100' })).stdout).toContain('--cluster needs --inspector');
  });

  it('follows a log that grows', async () => {
    const log = join(folder, 'job.log');
    const watching = watch([], { follow: [log], samples: Infinity, untilStuck: 60_000 });
    const hasSaid = (words: string) => expect(shownSoFar()).toContain(words);
    await vi.waitFor(() => hasSaid('nothing that can be read so far'));
    writeFileSync(log, 'node1:812:812 [0] NCCL INFO NCCL version 2.27.5+cuda12.9\n');
    await vi.waitFor(() => hasSaid('undecided: '));
    writeFileSync(log, 'node1:812:900 [0] transport/net_ib.cc:120 NCCL WARN NET/IB : mlx5_3:1 Got async event : port error\n', {
      flag: 'a',
    });
    const { code, stdout } = await watching;
    expect(stdout).toMatch(/job\.log: fault: a NIC reported an event of its own: port error/);
    expect(code).toBe(1);
  });

  it('reads flight recordings as they appear in a folder', async () => {
    const traces = mkdtempSync(join(folder, 'traces-'));
    const watching = watch([], { follow: [traces], samples: Infinity, untilStuck: 60_000, json: true });
    for (const name of ['nccl_trace_rank_0', 'nccl_trace_rank_1']) cpSync(join('test/logs/flight', name), join(traces, name));
    const { code, stdout } = await watching;
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { outcome?: string; findings: { code: string }[] });
    expect(lines.at(-1)?.outcome).toBe('fault');
    expect(lines.at(-1)?.findings[0]?.code).toMatch(/rank-behind|calls-differ|rank-absent|collective-stuck/);
    expect(code).toBe(1);
  });

  it('ends with what the followed files say, and refuses the standard input', async () => {
    expect(await watch([], { follow: [join(folder, 'not-yet.log')] })).toMatchObject({
      code: 3,
      stdout: expect.stringContaining('not-yet.log: nothing that can be read so far') as string,
    });
    expect((await watch([], { follow: ['-'] })).stdout).toContain('the standard input (-) can be read once');
  });

  it('keeps nothing of a report after it', async () => {
    const warnings = vi.spyOn(process, 'emitWarning');
    const { address } = await served(job('2.30.7', (n) => [communicator(eight(640 + n))]));
    await watch([address], { samples: 15 });
    expect(warnings.mock.calls.flat().map(String).join()).not.toContain('MaxListeners');
    warnings.mockRestore();
  });

  it('prints events of NCCL 2.29.2 and newer', async () => {
    const events = ['PEER_DEAD: Process 812 on node 10.0.0.7 managing GPU 3'];
    const { address } = await served({ ...job('2.29.2', (n) => [communicator(eight(640 + n))]), events });
    const { stdout } = await watch([address], { samples: 5 });
    expect(stdout).toContain(`${address}: ${events[0]}`);
    const before = await served({ ...job('2.28.9', (n) => [communicator(eight(640 + n))]), events });
    expect((await watch([before.address], { samples: 5 })).stdout).not.toContain('PEER_DEAD');
    expect(before.server.received).not.toContain('MONITOR lifecycle,trace');
  });

  it('serves metrics that Prometheus reads', async () => {
    const { server, address } = await served(job('2.30.7', () => [communicator(eight(640, 5))]));
    const port = await freePort();
    const watching = watch([address], { samples: Infinity, prometheus: `127.0.0.1:${port}` });
    await server.reported(3);
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    await server.close();
    await watching;
    expect(text).toContain('tccl_watch_job_state{job="1",state="stuck"} 1');
    expect(text).toContain(
      'tccl_watch_rank_behind{job="1",communicator="0xfa93daea854b060b",rank="5",host="10.0.0.1",pid="4005",gpu="5"} 1',
    );
    expect(text).toContain(`tccl_watch_source_up{source="${address}"} 1`);
    expect((await watch([address], { prometheus: 'nowhere' })).stdout).toBe('--prometheus nowhere: expected :PORT or HOST:PORT');
  });

  it('reads a report of 4,096 ranks', async () => {
    const warnings = vi.spyOn(process, 'emitWarning');
    const { address } = await served(
      job('2.30.7', () => [communicator(Array.from({ length: 4096 }, (_, rank) => (rank === 77 ? 1 : 2)))]),
    );
    const { stdout } = await watch([address]);
    expect(stdout).toContain('rank 77 (10.0.0.10, pid 4077, GPU 5) has launched 1 AllReduce');
    expect(warnings).not.toHaveBeenCalled();
    warnings.mockRestore();
  });
});
