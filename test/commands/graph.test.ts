import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { cliPath, start } from '../multi-process/cli.js';
import { tccl } from './in-process.js';

const folder = mkdtempSync(join(tmpdir(), 'tccl-graph-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

describe('tccl graph', () => {
  it("prints the graphs in NCCL's format", async () => {
    const { code, stdout, stderr } = await tccl(['graph', 'dgx-h100', '--nodes', '2']);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toContain(
      'Pattern 4, crossNic 2, nChannels 8, bw 48.000000/48.000000, type NVL/PIX, sameChannels 0  # ring\n 0 : NET/0-0 GPU/0-1b000 ',
    );
    expect(stdout).toContain(
      'Pattern 5, crossNic 0, nChannels 8, bw 40.000000/48.000000, type NVL/PIX, sameChannels 0  # nvls\n 0 : NET/0-0 GPU/0-1b000 NET/0-0\n',
    );
  });

  it('describes the search of each', async () => {
    const { stdout } = await tccl(['graph', 'dgx-a100', '--why']);
    expect(stdout).toContain('    The best path between GPUs carries 240 GB/s, and a GPU can move 240 GB/s in all.\n');
    expect(stdout).toContain('    Result: 12 channels of 20 GB/s, GPUs at most NVL apart.\n');
  });

  it('lists the search step by step, with what links have left', async () => {
    const { code, stdout } = await tccl(['graph', 'dgx-a100', '--nodes', '2', '--steps', '9']);
    expect(code).toBe(0);
    const [, tree = ''] = stdout.split('Pattern 1, ');
    // Both GPUs of a balanced tree come back to one NIC: each takes half of their own link, and the NIC carries all.
    expect(tree).toContain(
      '      + GPU/0-7000 to NET/0-0  12 GB/s   left: DEV/0-7000 to PCI/0-5000 12, PCI/0-5000 to PCI/0-1000 12, PCI/0-1000 to NIC/0-c000 12, NIC/0-c000 to NET/0-0 13\n',
    );
    expect(tree).toContain('PCI/0-1000 to NIC/0-c000 0, NIC/0-c000 to NET/0-0 1\n');
    expect(stdout).toMatch(/    and \d+ lines more \(--steps all\)\n/);
    expect((await tccl(['graph', 'dgx-a100', '--steps', 'many'])).stderr).toContain("--steps 'many' must be all, or a number");
  });

  it('lists the rank of each GPU', async () => {
    expect((await tccl(['graph', 'dgx-a100'])).stdout).toContain('\nRanks: 0 GPU/0-7000, 1 GPU/0-f000, 2 GPU/0-47000, ');
  });

  it('obeys the variables of NCCL, a graph file too', async () => {
    expect((await tccl(['graph', 'dgx-h100', '--nodes', '2'], { env: { NCCL_CROSS_NIC: '0' } })).stdout).toMatch(
      /^Pattern 4, crossNic 0, /,
    );

    const { stdout: xml } = await tccl(['graph', 'gh200-4', '--nodes', '2', '--graph-xml']);
    const file = join(folder, 'graph.xml');
    writeFileSync(file, xml);
    const { stdout } = await tccl(['graph', 'gh200-4', '--nodes', '2', '--why'], { env: { NCCL_GRAPH_FILE: file } });
    expect(stdout).toContain('The graph file has it, so nothing was searched.');

    writeFileSync(file, xml.replace('rank="1"', 'rank="2"'));
    const { code, stderr } = await tccl(['graph', 'gh200-4', '--nodes', '2'], { env: { NCCL_GRAPH_FILE: file } });
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /graph\.xml:\d+:\d+: <gpu dev="0x\d"> \(line \d+\): rank 2 is in the channel twice: NCCL would fail when it connects the ring\n$/,
    );
  });

  it('writes the dump of NCCL, of the rank that NCCL chooses for it', async () => {
    const cluster = join(folder, 'cluster.yaml');
    writeFileSync(cluster, 'machines:\n  - machine: gh200\n  - machine: pcie-2-l40s\n');
    const file = join(folder, 'dump.xml');
    const dumped = async (rank: string) => {
      const { code, stdout } = await tccl(['graph', cluster, '--graph-xml'], {
        env: { NCCL_GRAPH_DUMP_FILE: file, NCCL_GRAPH_DUMP_FILE_RANK: rank },
      });
      expect([code, readFileSync(file, 'utf8')]).toEqual([0, stdout]);
      return new Set(stdout.match(/rank="\d"/g));
    };
    expect(await dumped('0')).toEqual(new Set(['rank="0"']));
    expect(await dumped('2')).toEqual(new Set(['rank="0"', 'rank="1"']));
    const { code, stderr } = await tccl(['graph', cluster], { env: { NCCL_GRAPH_DUMP_FILE_RANK: '3' } });
    expect([code, stderr]).toEqual([
      2,
      'tccl: NCCL_GRAPH_DUMP_FILE_RANK=3: there are ranks 0 to 2, so NCCL would dump nothing\n',
    ]);
  });

  it('ends normally where its output is not read', async () => {
    const { code } = await start('bash', ['-c', `set -o pipefail; node ${cliPath} graph no-such-machine 2>&1 >/dev/null | true`])
      .finished;
    expect(code).toBe(2);
  });

  it('uses the singular for one', async () => {
    expect((await tccl(['graph', 'gh200'])).stdout).toContain('\n1 rank on 1 node\n');
  });

  it('gives JSON', async () => {
    const { stdout } = await tccl(['graph', 'dgx-a100', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({
      nodes: [{ ranks: [0, 1, 2, 3, 4, 5, 6, 7], graphs: { ring: { nChannels: 12, typeIntra: 'NVL', inter: [] }, nvls: null } }],
    });
  });

  it('refuses a count that is no number', async () => {
    expect(await tccl(['graph', 'dgx-a100', '--nodes', '0'])).toMatchObject({
      code: 2,
      stderr: "tccl: --nodes '0' must be a whole number from 1 to 1000000\n",
    });
  });
});
