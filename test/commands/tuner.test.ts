import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { tccl } from './in-process.js';

const folder = mkdtempSync(join(tmpdir(), 'tccl-tuner-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

describe('tccl tuner', () => {
  it('writes a table without findings', async () => {
    const table = join(folder, 'table.csv');
    const written = await tccl(['tuner', 'dgx-a100:2', '-o', table]);
    expect(written.code).toBe(0);
    expect(written.stdout).toContain(`NCCL_TUNER_PLUGIN=example NCCL_TUNER_CONFIG_FILE=${table}`);
    const text = readFileSync(table, 'utf8');
    expect(text).toMatch(/^broadcast,0,\d+,ring,ll,0,2,16$/m);
    expect(Math.max(...text.split('\n').map(({ length }) => length))).toBeLessThan(256);
    const printed = await tccl(['tuner', 'dgx-a100:2']);
    expect(printed.stdout).toBe(text);
    const checked = await tccl(['tuner', 'dgx-a100:2', '--check', table]);
    expect(checked.code).toBe(0);
    expect(checked.stdout).toContain('nothing is wrong with them');
  });

  it('names the calls that symmetric kernels do instead of a table', async () => {
    const { stderr } = await tccl(['tuner', 'hgx-a100-4', '--windows', 'symmetric']);
    expect(stderr).toMatch(/On symmetric windows kernels that no table chooses do AllReduce of 1 KiB to \d+ [KMG]iB/);
    expect((await tccl(['tuner', 'hgx-a100-4'])).stderr).not.toContain('windows');
  });

  it('exits with 1 at a warning about a table, and fails without a table or with a wrong option', async () => {
    const table = join(folder, 'bad.csv');
    writeFileSync(table, 'allreduce,0,18446744073709551615,ring,simple,-1,-1,-1\n');
    const { code, stdout } = await tccl(['tuner', 'dgx-h100', '--check', table]);
    expect(code).toBe(1);
    expect(stdout).toContain(`${table}:1: warning: channels -1 is one channel with this plugin`);
    expect((await tccl(['tuner', 'dgx-h100', '--check', join(folder, 'none')])).code).not.toBe(0);
    expect((await tccl(['tuner', 'dgx-h100', '--gain', 'x'])).code).toBe(2);
  });
});
