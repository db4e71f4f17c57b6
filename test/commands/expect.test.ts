import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { start, cliPath } from '../multi-process/cli.js';
import { tccl } from './in-process.js';

const folder = mkdtempSync(join(tmpdir(), 'tccl-expect-'));
const file = (name: string, text: string) => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};
afterAll(() => {
  rmSync(folder, { recursive: true });
});

const head = (gpu: string) => `# Collective test starting: all_reduce_perf
# nThread 1 nGpus 8 minBytes 33554432 maxBytes 17179869184 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
# Using devices
${Array.from({ length: 8 }, (_, rank) => `#  Rank  ${rank} Group  0 Pid 2614280 on node1 device  ${rank} [0000:1b:00] ${gpu}`).join('\n')}
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
`;
// Eight H100 of docs/notes/measured/h100-hosts.csv, and the same three times as slow.
const row = (bytes: number, us: number) => `${bytes} ${bytes / 8} double sum -1 ${us} 1.0 1.0 0 ${us} 1.0 1.0 0\n`;
const good = file(
  'good.txt',
  head('NVIDIA H100 80GB HBM3') + row(33554432, 184) + row(1073741824, 4000) + row(17179869184, 62300),
);
const slow = file(
  'slow.txt',
  head('NVIDIA H100 80GB HBM3') + row(33554432, 552) + row(1073741824, 12000) + row(17179869184, 186900),
);

describe('tccl expect', () => {
  it('exits with 0 where results are as expected', async () => {
    const { code, stdout, stderr } = await tccl(['expect', 'dgx-h100', good, '--nccl', '2.30.7']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^dgx-h100 {2}NCCL 2\.30\.7, calls of one process\n\nAllReduce\n[^]*As expected: 3 of 3 rows\.\n$/);
  });

  it('names the sizes of slow rows where a table is as expected', async () => {
    const times = [3900, 7700, 30_200, 48_000, 62_300];
    const sizes = [2 ** 30, 2 ** 31, 2 ** 33, 1.5 * 2 ** 33, 2 ** 34];
    const rows = (factors: readonly number[]) =>
      sizes.map((bytes, index) => row(bytes, (times[index] ?? 0) * (factors[index] ?? 1)));
    const mixed = file('mixed.txt', head('NVIDIA H100 80GB HBM3') + rows([1.5, 1.5, 1, 1, 1]).join(''));
    const { code, stdout } = await tccl(['expect', 'dgx-h100', mixed]);
    expect(stdout).toContain('As expected: 3 of 5 rows; slower at 1 GiB to 2 GiB: measure again.');
    expect(code).toBe(0);
  });

  it('calls results too fast that take half the time of the cluster as it is described', async () => {
    const fast = file('fast.txt', head('NVIDIA H100 80GB HBM3') + row(1073741824, 2000) + row(17179869184, 31000));
    const { code, stdout } = await tccl(['expect', 'dgx-h100', fast]);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /\nToo fast: 2 of 2 rows, 0\.\d\d to 0\.\d\d times as long as expected\.\nThe run had more than this cluster/,
    );
    const { stdout: json } = await tccl(['expect', 'dgx-h100', fast, '--json']);
    expect(JSON.parse(json)).toMatchObject({ slow: false, tooFast: true });
  });

  it('compares rows that symmetric kernels serve, which reduce no doubles, with the simulation of these', async () => {
    const floats = file('floats.txt', readFileSync(good, 'utf8').replaceAll(' double ', ' float '));
    const of = async (path: string, ...options: readonly string[]) =>
      (await tccl(['expect', 'dgx-h100', path, '--nccl', '2.30.7', ...options])).stdout;
    const windows = ['--windows', 'symmetric'];
    // The interval is a factor of two.
    expect(await of(floats, ...windows)).toMatch(/1 GiB +\S+ ms +3\.76 ms +1\.88 ms to 7\.53 ms/);
    expect(await of(good, ...windows)).toBe(await of(good));
    expect(await of(good, ...windows)).toContain('As expected: 3 of 3 rows.');
  });

  it('compares the rows of a sweep over ranks that are of the cluster, and no times of launches by PyTorch', async () => {
    const sweep = [2, 8].map((n) => `TRTLLM,2.27.3,NVIDIA H100 80GB HBM3,all_gather,NCCL,half,${n},536870912,2.6`);
    const perf = file(
      'nccl_perf.txt',
      `framework,version,device,op_name,kernel_source,nccl_dtype,num_gpus,message_size,latency\n${sweep.join('\n')}\n`,
    );
    const swept = await tccl(['expect', 'dgx-h100', perf]);
    expect(swept.stdout).toMatch(/AllGather\n.*\n *1 GiB +2\.6\d? ms/);
    expect(swept.stderr).toContain('1 table of other numbers of ranks is not compared');
    const bench = '|   32KiB |   1.44GBps |   0.82GBps |\n|   16GiB | 482.26GBps | 275.58GBps |\n';
    const torch = file('torch.txt', `over 8 ranks\n| payload |    busbw   |    algbw   |\n${bench}`);
    const { code, stderr } = await tccl(['expect', 'dgx-h200', torch]);
    expect(code).toBe(0);
    expect(stderr).toContain("1 row is not compared: PyTorch's launch is a part of such short times");
  });

  it('exits with 1 where they are slow, with explanations, and reads the standard input', async () => {
    const { code, stdout } = await start('sh', ['-c', `"${process.execPath}" "${cliPath}" expect dgx-h100 - --json < "${slow}"`])
      .finished;
    expect(code).toBe(1);
    const found = JSON.parse(stdout) as {
      readonly slow: boolean;
      readonly tables: readonly { readonly rows: readonly { readonly verdict: string; readonly mostUs: number }[] }[];
      readonly explanations: readonly { readonly code: string; readonly error: number }[];
    };
    expect(found.slow).toBe(true);
    expect(found.tables[0]?.rows.map(({ verdict }) => verdict)).toEqual(['slow', 'slow', 'slow']);
    expect(found.explanations.length).toBeGreaterThan(0);
    const errors = found.explanations.map(({ error }) => error);
    expect(Math.min(...errors)).toBeLessThan(0.5);
  });

  const other = file('other.txt', head('NVIDIA A100-SXM4-80GB') + row(33554432, 184));
  const torn = file('torn.txt', `${head('NVIDIA H100 80GB HBM3')}33554432 4194304 double sum -1 184 1.0\n`);
  it.each([
    [
      'results of another number of hosts',
      ['dgx-h100:2', good],
      /the results \(line 13\) are of 8 ranks on 1 host; 2 x dgx-h100 has 16 ranks on 2 hosts/,
    ],
    ['results of another GPU', ['dgx-h100', other], /are of NVIDIA A100-SXM4-80GB \(sm 80\); the GPUs of dgx-h100 are sm 90/],
    ['a row that is not whole', ['dgx-h100', torn], /torn\.txt:13: this row is not whole/],
    ['no such file', ['dgx-h100', join(folder, 'none.txt')], /none\.txt: there is no such file/],
    ['the standard input twice', ['-', '-'], /given twice/],
    ['no results', ['dgx-h100'], /no results are given/],
    ['no time', ['dgx-h100', good, '--seconds', '0'], /--seconds '0' must be a number above 0/],
  ])('%s is said in one line, exit code 2', async (_, args, message) => {
    const { code, stdout, stderr } = await tccl(['expect', ...args]);
    expect(stderr).toMatch(message);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  });
});

describe('tccl expect --gate', () => {
  it('prints thresholds, as JSON too', async () => {
    const { code, stdout } = await tccl(['expect', 'dgx-h100', '--gate', '--sizes', '16G', '--collective', 'all_reduce']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/\nall_reduce {2}16 GiB +4\d\d +4\d\d {2}90 % sure\n/);
    const json = await tccl(['expect', 'dgx-h100', '--gate', '--sizes', '16G', '--json']);
    const { thresholds, needs } = JSON.parse(json.stdout) as { thresholds: readonly { test: string }[]; needs: { gpus: number } };
    expect(thresholds.map(({ test }) => test)).toEqual(['all_reduce', 'all_gather', 'reduce_scatter', 'alltoall', 'sendrecv']);
    expect(needs.gpus).toBe(8);
  });

  it.each([
    ['nccl-tests', /^NCCL_TESTS_MIN_BW=4\d\d\.\d$/m],
    ['aznhc', /^ \* \|\| check_nccl_allreduce 4\d\d\.\d 1 "\$NCCL_TOPO_FILE" 16G$/m],
    ['chs', /^BANDWIDTH_THRESHOLD=4\d\d$/m],
    ['nvsentinel', /^BW_THRESHOLD_GBPS=4\d\d\.\d$/m],
  ])('writes thresholds for %s', async (name, form) => {
    const { code, stdout } = await tccl(['expect', 'dgx-h100', '--gate', '--for', name]);
    expect(code).toBe(0);
    expect(stdout).toMatch(form);
  });

  it('passes good results and fails slow ones, and names a missing GPU first', async () => {
    expect(await tccl(['expect', 'dgx-h100', '--gate', good])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^PASS dgx-h100: /) as string,
    });
    expect(await tccl(['expect', 'dgx-h100', '--gate', slow])).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^FAIL dgx-h100: all_reduce reaches /) as string,
    });
    const seven = file('seven.txt', `${head('NVIDIA H100 80GB HBM3').replace(/#  Rank  7.*\n/, '')}${row(17179869184, 186900)}`);
    expect(await tccl(['expect', 'dgx-h100', '--gate', seven])).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^FAIL dgx-h100: node1: 7 of 8 ranks \(/) as string,
    });
  });

  it('reads the files of a folder, each of its own host, and names what is missing before bandwidth', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tccl-gate-'));
    const port = (index: number, rate: number) =>
      `CA 'mlx5_${index}'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: ${rate}\n\t\tLink layer: InfiniBand`;
    const ports = (count: number) => Array.from({ length: count }, (_, index) => port(index, index === 3 ? 200 : 400)).join('\n');
    writeFileSync(join(folder, 'a-ports.txt'), `# tccl: host a, command ibstat\n${ports(7)}\n`);
    writeFileSync(
      join(folder, 'b-lspci.txt'),
      '1b:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n\t\tLnkSta:\tSpeed 32GT/s, Width x8\n',
    );
    const { code, stdout } = await tccl(['expect', 'dgx-h100', '--gate', folder, slow]);
    expect(code).toBe(1);
    expect(stdout.split('\n').slice(0, 5)).toEqual([
      `FAIL dgx-h100: a: 7 of 8 NICs (${join(folder, 'a-ports.txt')} line 2)`,
      '     check: ibstat, ip link; NCCL_IB_HCA',
      `also a: mlx5_3 runs at 200 of 400 Gb/s (${join(folder, 'a-ports.txt')} line 25)`,
      `also the PCIe link of GPU 1b:00.0 has 8 lanes of 32 GT/s, not 16 of 32 (${join(folder, 'b-lspci.txt')} line 1)`,
      expect.stringMatching(/^also all_reduce reaches /) as string,
    ]);
  });

  it.each([
    [['dgx-h100'], /no results are given: add a file, or --gate/],
    [['dgx-h100', 'a', 'b'], /several files of results go with --gate only/],
    [['dgx-h100', 'a', '--sizes', '1G'], /--sizes goes with --gate/],
    [['dgx-h100', '--gate', '--for', 'nccl-test'], /did you mean nccl-tests\?/],
    [['dgx-h100', '--gate', 'package.json'], /args is missing/],
  ])('%j is wrong use', async (args, message) => {
    const { code, stderr } = await tccl(['expect', ...args]);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });
});
