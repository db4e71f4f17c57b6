import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { tccl } from './in-process.js';

const folder = mkdtempSync(join(tmpdir(), 'tccl-plan-'));
const file = (name: string) => join(folder, name);
afterAll(() => {
  rmSync(folder, { recursive: true });
});

interface PlanJson {
  readonly format: string;
  readonly nRanks: number;
  readonly environment: Readonly<Record<string, string>>;
  readonly forecasts: readonly {
    readonly collective: string;
    readonly rows: readonly { readonly bytes: number; readonly choice?: { readonly algorithm: string } }[];
  }[];
}

async function planJson(...args: string[]): Promise<PlanJson> {
  const { stdout, stderr, code } = await tccl(['plan', ...args, '--json']);
  expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
  return JSON.parse(stdout) as PlanJson;
}

describe('tccl plan', () => {
  it.each([
    ['2.19.4', [], 16],
    ['2.21.5', [], 8],
    ['2.30.7', [], 8],
    ['2.30.7', ['--env', 'NCCL_IB_MERGE_NICS=0'], 16],
    ['2.30.7', ['--env', 'NCCL_NET_MERGE_LEVEL=LOC'], 16],
  ])('with NCCL %s %j, a host whose cards have two ports has %i network devices', async (version, settings, count) => {
    const { stdout } = await tccl(['plan', 'oci-h100:2', '--nccl', version, ...settings]);
    expect(stdout).toContain(`${count} network devices`);
  });

  it('fits on one screen: machine, limit, channels, what is in use, a table', async () => {
    const { stdout, stderr, code } = await tccl(['plan', 'dgx-h100', '--nodes', '2']);
    expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
    const lines = stdout.split('\n');
    expect(lines.length).toBeLessThanOrEqual(50);
    expect(lines[0]).toBe('2 x dgx-h100  NCCL 2.30.7, 16 ranks on 2 nodes, 16 channels');
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(140);
    for (const part of [
      '16 ranks on 2 nodes',
      'limit',
      'channels',
      'ring 0',
      'NVLS',
      'PXN',
      'GDR',
      'AllReduce',
      'busbw',
      'NVLSTree Simple',
    ])
      expect(stdout).toContain(part);
    expect(stdout).not.toContain('\u001b');
  });

  it('counts in its first line the rules that no recorded answer confirms, and lists them in JSON', async () => {
    const { stdout, stderr } = await tccl(['plan', 'dgx-h100', '--nccl', '2.31.2', '--sizes', '1M']);
    const [, count] = /^dgx-h100 {2}NCCL 2\.31\.2 \((\d+) rules read from source, not compared\), 8 ranks/.exec(stdout) ?? [];
    expect(stderr).toContain(`NCCL 2.31.2: ${count} rules are read from source`);
    const json = await tccl(['plan', 'dgx-h100', '--nccl', '2.31.2', '--sizes', '1M', '--json']);
    const { uncomparedRules } = JSON.parse(json.stdout) as { uncomparedRules: string[] };
    expect(uncomparedRules).toContain('tuningModel');
    expect(uncomparedRules).toHaveLength(Number(count));
    const versions = await tccl(['nccl', 'versions']);
    expect(versions.stdout).toMatch(new RegExp(`^2\\.31\\.2 +read from source, ${count} rules not compared$`, 'm'));
    expect(versions.stdout).toMatch(/^2\.30\.7 +compared with recorded answers$/m);
  });

  it('simulates calls where that takes little time, or as it is asked', async () => {
    const asked = async (...args: string[]) => {
      const { stdout, stderr } = await tccl(['plan', ...args, '--sizes', '1M,1G', '--json']);
      return [((JSON.parse(stdout) as { predictions?: unknown[] }).predictions ?? []).length, stderr];
    };
    expect(await asked('hgx-a100-4')).toEqual([5, '']);
    expect(await asked('hgx-a100-4', '--no-predict')).toEqual([0, '']);
    const [none, note] = await asked('hgx-a100-4', '--nodes', '1000');
    expect(none).toBe(0);
    expect(note).toMatch(/^note: 4000 ranks at 2 sizes are not simulated: --predict does it, which takes a while\n$/);
    const { stdout } = await tccl(['plan', 'hgx-a100-4', '--no-predict', '--sizes', '1M']);
    expect(stdout).not.toMatch(/AllToAll|predicted/);
  });

  it('takes sizes as a list, or from, to and by a factor', async () => {
    const sizesOf = ({ forecasts }: PlanJson) => forecasts[0]?.rows.map(({ bytes }) => bytes);
    expect(sizesOf(await planJson('hgx-a100-4', '--sizes', '1M,4K,4K,1.5K'))).toEqual([1536, 4096, 2 ** 20]);
    expect(sizesOf(await planJson('hgx-a100-4', '-b', '8', '-e', '64', '-f', '2'))).toEqual([8, 16, 32, 64]);
  });

  it('takes variables of NCCL', async () => {
    const { environment, forecasts } = await planJson('dgx-h100', '--env', 'NCCL_ALGO=Ring', '--env', 'NCCL_PROTO=Simple');
    expect(environment).toEqual({ NCCL_ALGO: 'Ring', NCCL_PROTO: 'Simple' });
    expect(new Set(forecasts.flatMap(({ rows }) => rows.map(({ choice }) => choice?.algorithm)))).toEqual(new Set(['Ring']));
  });

  it('notes that a version is older than the GPUs', async () => {
    const { code, stderr } = await tccl(['plan', 'dgx-b200', '--nodes', '2', '--nccl', '2.24.3', '--sizes', '1M']);
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining(
        'dgx-b200: NCCL 2.24.3 is older than GPUs of compute capability 10.0; it plans for them as for 9.0',
      ),
    ]);
  });

  it('names its version of NCCL in JSON, and refuses releases that PyTorch does not have', async () => {
    const { stdout } = await tccl(['plan', 'hgx-a100-4', '--torch', '2.7', '--sizes', '1M', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({ nccl: '2.26.2' });
    expect(await tccl(['plan', 'hgx-a100-4', '--torch', '2.7+cu130'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('PyTorch 2.7 has no wheels for cu130, only for cu118, cu126, cu128') as string,
    });
    expect(await tccl(['plan', 'hgx-a100-4', '--torch', '2.1'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        'PyTorch 2.1 brings NCCL 2.18.1, which is not covered; the nearest that is: 2.18.5',
      ) as string,
    });
  });

  it('takes several machines, and a cluster file', async () => {
    writeFileSync(file('cluster.yaml'), 'name: two kinds\nmachines:\n  - { machine: hgx-a100-4, count: 2 }\n  - pcie-2-l40s\n');
    const named = await planJson('hgx-a100-4:2', 'pcie-2-l40s');
    const fromFile = await planJson(file('cluster.yaml'));
    expect(named.nRanks).toBe(10);
    expect(fromFile.forecasts).toEqual(named.forecasts);
  });

  it('writes a page and charts', async () => {
    const { stdout, code } = await tccl([
      'plan',
      'hgx-a100-4',
      '--nodes',
      '2',
      '--html',
      file('plan.html'),
      '--svg',
      file('plan.svg'),
    ]);
    expect(code).toBe(0);
    expect(stdout).toContain('8 ranks on 2 nodes');
    expect(readFileSync(file('plan.html'), 'utf8')).toMatch(
      /^<!doctype html>[\s\S]*2 x hgx-a100-4[\s\S]*GPU 3[\s\S]*<\/html>\n$/,
    );
    expect(readFileSync(file('plan.svg'), 'utf8')).toMatch(/^<svg xmlns[\s\S]*class="t-curve[\s\S]*<\/svg>\n$/);
  });

  it('plans a rack and a single rank', async () => {
    expect((await planJson('gb300-nvl72', '--sizes', '1M')).nRanks).toBe(72);
    const { stdout, code } = await tccl(['plan', 'gh200']);
    expect(code).toBe(0);
    expect(stdout).toContain('1 rank on 1 node');
  });

  writeFileSync(file('typo.yaml'), 'machines:\n  - machine: dgx-h100\n    cuont: 2\n');
  it.each([
    [
      'a size that is none',
      ['dgx-h100', '--sizes', '1K,many'],
      /--sizes 'many' is not a size: write bytes as 8, 64K, 1\.5M or 1G/,
    ],
    ['a size of nothing', ['dgx-h100', '--sizes', '0'], /--sizes '0' must be a size above 0/],
    ['sizes in two ways', ['dgx-h100', '--sizes', '1K', '-e', '1M'], /--sizes does not go with/],
    ['sizes that shrink', ['dgx-h100', '-b', '1M', '-e', '1K'], /--minbytes 1048576 is more than --maxbytes 1024/],
    ['a factor that is none', ['dgx-h100', '-f', '1'], /--stepfactor '1' must be a whole number from 2 on/],
    ['a machine that is not there', ['dgx-h1000'], /no file dgx-h1000, .*did you mean dgx-h100\?/],
    ['a cluster file with a typo', [file('typo.yaml')], /typo\.yaml:3:5: machines\[0\] has no field cuont; did you mean count\?/],
    ['a variable that NCCL does not have', ['dgx-h100', '--env', 'NCCL_ALGOS=Ring'], /did you mean NCCL_ALGO\?/],
    ['an algorithm that NCCL does not have', ['dgx-h100', '--env', 'NCCL_ALGO=Rong'], /NCCL_ALGO/],
    ['no cluster', [], /no cluster is given/],
  ])('%s is said in one line, exit code 2', async (_, args, message) => {
    const { code, stdout, stderr } = await tccl(['plan', ...args]);
    expect(stderr).toMatch(message);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(stdout).toBe('');
    expect(code).toBe(2);
  });

  it('a file that cannot be written is an error with exit code 1', async () => {
    const { code, stderr } = await tccl(['plan', 'hgx-a100-4', '--html', file('no/such/folder.html')]);
    expect(stderr).toMatch(/folder\.html: cannot be written/);
    expect(code).toBe(1);
  });
});

describe('--split-from', () => {
  it('plans a communicator within the limits of the one that it shares resources with', async () => {
    const parent = file('parent.yaml');
    writeFileSync(parent, 'machines:\n  - machine: dgx-h100\n    count: 4\nenvironment:\n  NCCL_MAX_NCHANNELS: 4\n');
    const child = await tccl(['plan', 'dgx-h100', '--nodes', '2', '--split-from', parent, '--no-predict', '--json']);
    expect(JSON.parse(child.stdout)).toMatchObject({ title: `2 x dgx-h100, split from ${parent}`, nChannels: 4 });
    const half = file('half.yaml');
    writeFileSync(half, 'machines:\n  - machine: dgx-h100\n    overrides:\n      gpus: 4\n');
    expect((await tccl(['plan', half, '--split-from', 'dgx-h100:2', '--no-predict'])).code).toBe(0);
  });

  it('refuses a communicator that has other machines, or fewer', async () => {
    const refused = async (child: string, parent: string) => {
      const { stdout, stderr, code } = await tccl(['plan', child, '--split-from', parent, '--no-predict']);
      expect([stdout, code]).toEqual(['', 2]);
      return stderr;
    };
    expect(await refused('dgx-h100', 'pcie-4-l40s:8')).toContain(
      'dgx-h100 cannot be split from 8 x pcie-4-l40s, whose hosts have other GPUs',
    );
    expect(await refused('dgx-h100:4', 'dgx-h100:2')).toContain(
      '4 x dgx-h100 cannot be split from 2 x dgx-h100, which has fewer such hosts',
    );
  });
});
