import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import { perfettoImport } from '../multi-process/perfetto.js';
import { tccl } from './in-process.js';

const folder = mkdtempSync(join(tmpdir(), 'tccl-replay-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** A profile of a rank with calls as [start, end]. */
function profile(rank: number, worldSize: number, calls: readonly (readonly [number, number])[], group = '0'): string {
  const ranks = Array.from({ length: worldSize }, (_, each) => each);
  return JSON.stringify({
    distributedInfo: { rank, world_size: worldSize, nccl_version: '2.27.5' },
    traceEvents: calls.map(([ts, end]) => ({
      ...{ ph: 'X', cat: 'kernel', name: 'ncclDevKernel_AllReduce_Sum_f32_RING_LL', ts, dur: end - ts },
      args: {
        ...{ stream: 7, 'Collective name': 'allreduce', 'In msg nelems': 1 << 20, 'Out msg nelems': 1 << 20, dtype: 'Float' },
        ...{ 'Group size': worldSize, 'Process Group Name': group, 'Process Group Ranks': ranks },
      },
    })),
  });
}

const traces = join(folder, 'traces');
mkdirSync(traces);
writeFileSync(
  join(traces, 'a.json'),
  profile(0, 2, [
    [0, 130],
    [500, 630],
  ]),
);
writeFileSync(
  join(traces, 'b.json.gz'),
  gzipSync(
    profile(1, 2, [
      [1050, 1130],
      [1550, 1630],
    ]),
  ),
);

const large = join(folder, 'large.json');
writeFileSync(large, profile(0, 16, [[0, 10]]));

describe('tccl replay', () => {
  it('compares calls and steps', async () => {
    const { code, stdout, stderr } = await tccl(['replay', 'dgx-h100', traces]);
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr:
        "note: 1 communicator without sequence numbers: calls are joined by their place\nnote: the job has 2 of the cluster's 8 ranks: its first ones\n",
    });
    expect(stdout).toMatch(
      /^dgx-h100 {2}NCCL 2\.27\.5; 2 ranks, 2 calls of 1 communicator, traces of 2 ranks\nstep {3}measured 630 us, replayed/,
    );
    expect(stdout).toMatch(
      /waits {2}ranks wait 100 us in calls, all together; 100 us of it for rank 1, which comes last to 2 of 2 calls/,
    );
    expect(stdout).toMatch(/allreduce {2}0 {10}2 {2}4 MiB {6}2 {3}80\.0 us/);
  });

  it('prints call by call, and as JSON', async () => {
    const each = await tccl(['replay', 'dgx-h100', traces, '--calls']);
    expect(each.stdout.match(/4 MiB {6}1 .* rank 1 last$/gm)).toHaveLength(2);
    const { stdout } = await tccl(['replay', 'dgx-h100', traces, '--json']);
    const made = JSON.parse(stdout) as { calls: { measured: object; predicted: { timeUs: number } }[]; nccl: string };
    expect(made).toMatchObject({ format: 'tccl replay', nccl: '2.27.5', nRanks: 2, measuredUs: 630 });
    expect(made.calls[0]).toMatchObject({
      ...{ operation: 'allreduce', collective: 'AllReduce', bytes: 4 << 20, members: [0, 1] },
      measured: { transferUs: 80, lastRank: 1, waitUs: 50, ranks: { 0: [0, 130], 1: [50, 130] } },
    });
  });

  it('compares with another cluster, version or setting', async () => {
    const { code, stdout } = await tccl([
      'replay',
      'dgx-h100',
      traces,
      '--what-if',
      'dgx-a100',
      '--what-if-env',
      'NCCL_PROTO=Simple',
    ]);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /\nwhat if {2}dgx-a100, NCCL 2\.27\.5, NCCL_PROTO=Simple\nstep .* in the replay, then .*\ncalls .* predicted, then .*\n/,
    );
    expect(stdout).toMatch(/allreduce {2}0 {10}2 {2}4 MiB {6}2 .*%  Ring Simple\n$/);
    const same = await tccl(['replay', 'dgx-h100', traces, '--torch', '2.8', '--what-if-nccl', '2.30.7', '--json']);
    const made = JSON.parse(same.stdout) as { calls: object[]; nccl: string; whatIf: { title: string; calls: object[] } };
    expect([made.nccl, made.whatIf.title]).toEqual(['2.27.3', 'dgx-h100, NCCL 2.30.7']);
    expect(made.whatIf.calls).toHaveLength(made.calls.length);
    const small = await tccl(['replay', 'dgx-h100:2', large, '--what-if', 'dgx-h100']);
    expect([small.code, small.stdout]).toEqual([2, '']);
    expect(small.stderr).toMatch(/the traces are of 16 ranks; dgx-h100 has 8/);
  });

  it('writes a timeline that Perfetto reads correctly', async () => {
    const file = join(folder, 'job.json');
    const { code, stdout } = await tccl(['replay', 'dgx-h100', traces, '--perfetto', file]);
    expect([code, stdout.trimEnd().split('\n').at(-1)]).toEqual([0, `${file}: 2 calls; ui.perfetto.dev opens it`]);
    const { problems, processes, tracks } = perfettoImport(readFileSync(file, 'utf8'));
    expect(problems).toEqual([]);
    expect([...processes.values()]).toEqual(['rank 0', 'rank 1']);
    expect(tracks.map(({ name, slices }) => [name, slices.length])).toEqual([
      ['measured, stream 7', 4],
      ['replayed, stream 7', 4],
      ['measured, stream 7', 2],
      ['replayed, stream 7', 2],
    ]);
  });

  it('says which files are not read, and reads the rest', async () => {
    const other = join(folder, 'notes.txt');
    writeFileSync(other, 'hello\n');
    const { code, stderr } = await tccl(['replay', 'dgx-h100', traces, other]);
    expect(code).toBe(0);
    expect(stderr).toContain(`${other} is not read: no trace: replayed are profiles of PyTorch`);
  });

  it('reads a database where Node.js has SQLite, and else says so', async () => {
    const file = join(folder, 'report.sqlite');
    // An empty database: its header alone.
    writeFileSync(file, Buffer.concat([Buffer.from('SQLite format 3\0'), Buffer.alloc(84)]));
    const { code, stderr } = await tccl(['replay', 'dgx-h100', file]);
    expect(code).toBe(2);
    const [major = 0] = process.versions.node.split('.').map(Number);
    expect(stderr).toMatch(major < 22 ? /a database, which Node.js reads from 22.13 on, and this is 2\d\./ : /report.sqlite/);
    const piped = await tccl(['replay', 'dgx-h100', traces, file]);
    expect(piped.code).toBe(0);
  });

  const missing = join(folder, 'none.json');
  it.each([
    ['no trace', ['dgx-h100'], /missing required argument 'trace', as in: tccl replay dgx-h100:2 traces\/rank\*\.json\.gz/],
    ['a file that there is not', ['dgx-h100', missing], /none\.json: there is no such file or folder/],
    ['more ranks than the cluster', ['dgx-h100', large], /the traces are of 16 ranks; dgx-h100 has 8: name as many hosts/],
    ['an unknown machine', ['dgx-h10', traces], /did you mean dgx-h100\?/],
    ['an unknown option', ['dgx-h100', traces, '--call'], /unknown option '--call' \(Did you mean --calls\?\)/],
  ])('%s is an error of one line', async (_, args, message) => {
    const { code, stdout, stderr } = await tccl(['replay', ...args]);
    expect(stderr).toMatch(message);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(code).not.toBe(0);
    expect(stdout).toBe('');
  });
});
