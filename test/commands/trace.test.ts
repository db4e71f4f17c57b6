import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { tccl } from './in-process.js';
import { perfettoImport } from '../multi-process/perfetto.js';

const folder = mkdtempSync(join(tmpdir(), 'tccl-trace-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});
/** Executes GOAL by the grammar of txt2bin.re: a message is received after it is sent, all after what they require. */
function readGoal(text: string) {
  const [head = '', ...sections] = text.split(/^rank \d+ \{\n/m);
  expect(head).toBe(`num_ranks ${sections.length}\n\n`);
  const messages = { send: new Map<string, number[]>(), recv: new Map<string, number[]>() };
  const waiting = new Map<string, { readonly after: string[]; readonly channel: string | undefined; readonly isRecv: boolean }>();
  let bytes = 0;
  sections.forEach((section, rank) => {
    for (const line of section.trimEnd().replace(/\}$/, '').trimEnd().split('\n')) {
      const [, label = '', verb, size, way, other, tag, cpu] =
        /^(l\d+): (?:(send|recv) (\d+)b (to|from) (\d+) tag (\d+) cpu (\d+)|calc \d+)$/.exec(line) ?? [];
      const [, later, earlier] = /^(l\d+) requires (l\d+)$/.exec(line) ?? [];
      if (later !== undefined) {
        expect(waiting.has(`${rank} ${earlier ?? ''}`)).toBe(true);
        waiting.get(`${rank} ${later}`)?.after.push(`${rank} ${earlier ?? ''}`);
        continue;
      }
      expect(label === '' ? line : '').toBe('');
      const isRecv = verb === 'recv';
      const channel =
        verb === undefined ? undefined : `${isRecv ? `${other ?? ''} ${rank}` : `${rank} ${other ?? ''}`} ${tag ?? ''}`;
      waiting.set(`${rank} ${label}`, { after: [], channel, isRecv });
      if (channel === undefined || (verb !== 'send' && verb !== 'recv')) continue;
      expect([way, Number(cpu) < 256, Number(size) > 0]).toEqual([isRecv ? 'from' : 'to', true, true]);
      const all = messages[verb];
      all.set(channel, [...(all.get(channel) ?? []), Number(size)]);
      if (isRecv) bytes += Number(size);
    }
  });
  const inFlight = new Map<string, number>();
  for (let moved = true; moved;) {
    moved = false;
    for (const [label, { after, channel, isRecv }] of waiting) {
      if (after.some((other) => waiting.has(other))) continue;
      const ready = channel === undefined ? 0 : (inFlight.get(channel) ?? 0);
      if (isRecv && ready === 0) continue;
      if (channel !== undefined) inFlight.set(channel, ready + (isRecv ? -1 : 1));
      waiting.delete(label);
      moved = true;
    }
  }
  const sorted = (all: ReadonlyMap<string, number[]>) => [...all].sort(([a], [b]) => (a < b ? -1 : 1));
  return { sent: sorted(messages.send), received: sorted(messages.recv), unfinished: [...waiting.keys()], bytes };
}

const call = ['--collective', 'all_gather', '--size', '1M'];

describe('tccl trace', () => {
  it('prints the time of a call and its parts', async () => {
    const { code, stdout, stderr } = await tccl(['trace', 'dgx-h100', ...call]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(
      /^dgx-h100 {2}AllGather of 1 MiB by Ring LL on 24 channels\ntime {3}\S+ us, in eight .*NCCL believes \S+ us\nspent {2}\d+ % .*\n$/,
    );
  });

  it('writes a timeline that Perfetto reads correctly', async () => {
    const file = join(folder, 'trace.json');
    const { code, stdout } = await tccl(['trace', 'dgx-h100:2', ...call, '-o', file, '--ranks', '0-1,9']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/trace\.json: \d+ slices, \d+ links; ui\.perfetto\.dev opens it\n$/);
    const { problems, processes, tracks, counters } = perfettoImport(readFileSync(file, 'utf8'));
    expect(problems).toEqual([]);
    expect([...processes.values()]).toEqual(expect.arrayContaining(['rank 00', 'rank 01', 'rank 09', 'links of node 0']));
    expect(tracks.every(({ slices }) => slices.length > 0)).toBe(true);
    expect([...counters].some((name) => name.includes('GPU 0 > NVSwitch'))).toBe(true);
  });

  it('prints the moves of a rank', async () => {
    const { code, stdout } = await tccl(['trace', 'dgx-h100', ...call, '--schedule', '--ranks', '3']);
    expect(code).toBe(0);
    const [head = '', ...lines] = stdout.trimEnd().split('\n');
    expect(head.trim()).toMatch(/^rank +channel +worker +move +receive from +input +send to +output +bytes$/);
    expect(lines.every((line) => line.trim().startsWith('3 '))).toBe(true);
    const written = lines
      .map((line) => /(\d+) to \d+ +(\d+)$/.exec(line))
      .reduce((sum, match) => sum + Number(match?.[2] ?? 0), 0);
    expect(written).toBe(2 ** 20);
  });

  it.each([
    ['a ring', 'dgx-h100:2', 'all_gather', ['--env', 'NCCL_PROTO=Simple']],
    ['flags of LL', 'dgx-a100', 'all_reduce', ['--env', 'NCCL_PROTO=LL', '--env', 'NCCL_ALGO=Ring']],
    ['trees', 'dgx-h100:2', 'all_reduce', ['--env', 'NCCL_ALGO=Tree']],
    ['NVLink SHARP', 'dgx-h100', 'all_reduce', ['--env', 'NCCL_ALGO=NVLS']],
    ['messages of pairs', 'dgx-h100', 'alltoall', []],
  ])('writes %s in GOAL: every message arrives', async (_, cluster, collective, options) => {
    const file = join(folder, 'call.goal');
    const { code, stderr } = await tccl([
      'trace',
      cluster,
      '--collective',
      collective,
      '--size',
      '1M',
      '--goal',
      file,
      ...options,
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const goal = readGoal(readFileSync(file, 'utf8'));
    expect(goal.sent).toEqual(goal.received);
    expect(goal.unfinished).toEqual([]);
    if (collective === 'all_gather') expect(goal.bytes).toBe(15 * 2 ** 20);
    // 2 x 7/8 of the data for each of 8 ranks, twice with LL.
    if (cluster === 'dgx-a100') expect(goal.bytes).toBe(2 * 2 * 7 * 2 ** 20);
  });

  it.each([
    ['a ring', 'dgx-h100:2', 'all_gather', 15 * 2 ** 20],
    ['messages of pairs', 'dgx-h100', 'alltoall', 7 * 2 ** 20],
  ])('writes %s as Chakra, which tccl replay reads: every message arrives', async (_, cluster, collective, bytes) => {
    const prefix = join(folder, collective);
    const options = ['--collective', collective, '--size', '1M', '--chakra', prefix, '--env', 'NCCL_PROTO=Simple'];
    const { code, stderr } = await tccl(['trace', cluster, ...options]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const files = readdirSync(folder).filter((name) => name.startsWith(`${collective}.`));
    expect(files).toHaveLength(cluster === 'dgx-h100' ? 8 : 16);
    const { stdout } = await tccl(['replay', cluster, ...files.map((name) => join(folder, name)), '--json']);
    const { calls } = JSON.parse(stdout) as { calls: { operation: string; size: number; bytes: number }[] };
    expect(calls.every(({ operation, size }) => operation === 'send' && size === 2)).toBe(true);
    expect(calls.reduce((sum, call) => sum + call.bytes, 0)).toBe(bytes);
  });

  it('has no GOAL of a network that reduces', async () => {
    const collnet = ['--collnet', '--env', 'NCCL_ALGO=CollNetChain', '--goal', join(folder, 'x.goal')];
    const { code, stderr } = await tccl(['trace', 'dgx-h100:2', '--collective', 'all_reduce', '--size', '1M', ...collnet]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/files of messages have no network that reduces/);
  });

  it.each([
    ['a collective that there is not', ['dgx-h100', '--collective', 'all_reduces', '--size', '1M'], /did you mean all_reduce\?/],
    ['no size', ['dgx-h100', '--collective', 'all_reduce'], /required option '--size/],
    ['a size of nothing', ['dgx-h100', '--collective', 'all_reduce', '--size', '0'], /must be a size above 0/],
    ['ranks that there are not', ['dgx-h100', ...call, '--ranks', '0-8'], /--ranks 8 is no rank: there are 8, from 0 on/],
    ['no list of ranks', ['dgx-h100', ...call, '--ranks', 'all'], /--ranks 'all' is no list of ranks/],
    ['a root that there is not', ['dgx-h100', ...call, '--root', '8'], /--root 8 is no rank/],
    ['one rank', ['gh200', ...call], /gh200 has one rank, which exchanges nothing/],
  ])('%s is an error of one line with exit code 2', async (_, args, message) => {
    const { code, stdout, stderr } = await tccl(['trace', ...args]);
    expect(stderr).toMatch(message);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  });
});
