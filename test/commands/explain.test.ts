import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { tccl } from './in-process.js';

const folder = mkdtempSync(join(tmpdir(), 'tccl-explain-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

describe('tccl explain', () => {
  it('without a question gives three answers and lists the questions', async () => {
    const { stdout, code } = await tccl(['explain', 'hgx-a100-4', '--nodes', '2']);
    expect(code).toBe(0);
    expect(stdout).toContain('Ask in words of your own: tccl explain hgx-a100-4 QUESTION');
    expect(stdout).toMatch(/^2 rings of 24 GB\/s\n/);
    const json = await tccl(['explain', 'hgx-a100-4', '--nodes', '2', '--json']);
    expect((JSON.parse(json.stdout) as { answers: unknown[] }).answers).toHaveLength(3);
  });

  it.each([
    [['banana'], /^tccl: 'banana' is no question that can be answered; the nearest are 'what limits'[^\n]+\n$/],
    [['gpu', '99', 'nic'], /^tccl: no rank 99: there are ranks 0 to 3[^\n]+\n$/],
    [['what would help', '--seconds', 'soon'], /^tccl: --seconds 'soon' must be a number above 0\n$/],
  ])('%s is refused in one line', async (question, message) => {
    const { stderr, stdout, code } = await tccl(['explain', 'hgx-a100-4', ...question]);
    expect(stderr).toMatch(message);
    expect([stdout, code]).toEqual(['', 2]);
  });

  it('knows variables that came after 2.30.7, and which version lacks them', async () => {
    const answer = async (variable: string, nccl: string) =>
      (await tccl(['explain', 'hgx-a100-4', '--nccl', nccl, `what does ${variable} do`])).stdout;
    expect(await answer('NCCL_IB_RAIL_POLICY', '2.30.7')).toContain(
      'NCCL 2.30.7 does not have it yet: it came with 2.31 or 2.32 (',
    );
    expect(await answer('NCCL_GIN_PROXY_POLL_BATCH', '2.32.6')).toContain('NCCL has it since 2.31.2.');
    expect(await answer('NCCL_IB_RAILS_POLICY', '2.32.6')).toContain('The nearest name is NCCL_IB_RAIL_POLICY.');
  });

  it('tries changes of a cluster file, and lists those that it had no time for', async () => {
    const file = join(folder, 'cluster.yaml');
    writeFileSync(file, 'machines:\n  - { machine: hgx-a100-4, count: 2 }\n  - pcie-2-l40s\nenvironment:\n  NCCL_PROTO: LL\n');
    const all = await tccl(['explain', file, '--seconds', '100', 'what', 'would', 'help', '1G']);
    expect(all.code).toBe(0);
    expect(all.stdout).toContain('NCCL_PROTO: LL -> ');
    const one = await tccl(['explain', file, '--seconds', '0.000001', 'what', 'would', 'help', '1G']);
    expect(one.stdout).toMatch(/^ {2}1 single change tried [^]*changes not tried, for lack of time\.\n$/m);
  });
});

describe('tccl diff', () => {
  it('exits with 1 where plans differ, with --exit-code', async () => {
    const differ = ['diff', 'hgx-a100-4', '--nodes', '2', '--env-b', 'NCCL_ALGO=ring'];
    expect((await tccl(differ)).code).toBe(0);
    expect((await tccl([...differ, '--exit-code'])).code).toBe(1);
    const same = await tccl(['diff', 'hgx-a100-4', 'hgx-a100-4', '--exit-code']);
    expect([same.code, same.stdout]).toEqual([0, 'The plans are the same.\n']);
  });

  it('an upgrade names the rules that changed the plan, or reports that it is unchanged', async () => {
    const differs = await tccl(['upgrade', 'dgx-b200', '--nodes', '2', '--from', '2.26.2', '--to', '2.30.7']);
    expect(differs.stdout).toMatch(/links of a GPU in a node +720 GB\/s -> 721\.8 GB\/s[^]*\nblackwellNvLinkGBps /);
    const same = await tccl(['upgrade', 'dgx-a100', '--nodes', '2', '--from', '2.26.2', '--to', '2.30.7']);
    expect(same.stdout).toMatch(
      /^The plans are the same, but simulated calls take another time\.\n\n.*\nAllToAll +512 KiB +simulated [^\n]* p2pLl\n/,
    );
    const alike = await tccl(['upgrade', 'dgx-h100', '--nodes', '2', '--from', '2.26.2', '--to', '2.27.5']);
    expect(alike.stdout).toMatch(
      /^The plans are the same\.\nNone of the \d+ rules that change from NCCL 2\.26\.2 to 2\.27\.5 decides differently here/,
    );
    // Messages between 1024 ranks are compared only if they are asked for.
    const large = await tccl(['diff', 'dgx-h100', '--nodes', '128', '--env-b', 'NCCL_MAX_NCHANNELS=2', '--json']);
    expect(JSON.parse(large.stdout)).toMatchObject({ predicted: [], leftOut: [expect.stringContaining('--predict')] });
    // Of the new tuning model only the rounding differs on Hopper.
    const rewritten = await tccl(['upgrade', 'dgx-h100', '--nodes', '2', '--from', '2.30.7', '--to', '2.32.6']);
    expect(rewritten.stdout).toMatch(/tuning\n {2}ReduceScatter PAT Simple {2}\(patPerNode\)/);
    expect(rewritten.stdout).not.toContain('tuningModel');
    const lesser = await tccl(['upgrade', 'gb200-nvl72', '--nodes', '2', '--from', '2.30.7', '--to', '2.31.2']);
    expect(lesser.stdout).toMatch(/\nAllReduce +2 GiB +Tree Simple +.* NVLSTree Simple +.* treeSpeed\n/);
    const byTorch = await tccl(['upgrade', 'dgx-a100', '--nodes', '2', '--from', 'torch==2.7', '--to', 'torch==2.12+cu126']);
    expect(byTorch.stdout).toContain('from NCCL 2.26.2 to 2.29.3 decide');
    expect(await tccl(['upgrade', 'dgx-a100', '--from', 'torch==2.7+cu121', '--to', '2.30.7'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('PyTorch 2.7 has no wheels for cu121') as string,
    });
    expect(await tccl(['upgrade', 'dgx-a100', '--from', '2.30.7', '--to', '2.33.1'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('NCCL 2.33.1 is not covered; the nearest that is: 2.32.6') as string,
    });
    expect(await tccl(['upgrade', 'dgx-a100', '--from', '2.1.0', '--to', '2.30.7'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('is not covered') as string,
    });
  });

  it('writes JSON', async () => {
    const { stdout } = await tccl(['diff', 'hgx-a100-4', '--nodes-a', '2', '--nodes-b', '3', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({ differs: true, titles: ['2 x hgx-a100-4', '3 x hgx-a100-4'], leftOut: [] });
  });

  it('refuses a saved plan with other settings, and a broken one', async () => {
    const kept = join(folder, 'kept.json');
    writeFileSync(kept, (await tccl(['graph', 'hgx-a100-4', '--json'])).stdout);
    expect(await tccl(['diff', kept, 'hgx-a100-4', '--nodes', '2'])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('a plan that is made already') as string,
    });
    const broken = join(folder, 'broken.json');
    writeFileSync(broken, '{"format":"tccl plan","formatVersion":9}');
    expect(await tccl(['diff', broken, 'hgx-a100-4'])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^tccl: \S+broken\.json: plan\.formatVersion is 9; it has to be one of 1\n$/) as string,
    });
  });
});
