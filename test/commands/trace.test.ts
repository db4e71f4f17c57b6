import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { tccl } from './in-process.js';
import { perfettoImport } from '../multi-process/perfetto.js';

const folder = mkdtempSync(join(tmpdir(), 'tccl-trace-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});
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
