import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { tccl } from '../multi-process/cli.js';

const folder = mkdtempSync(join(tmpdir(), 'tccl-diagnose-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});
cpSync(join(import.meta.dirname, '../logs/flight'), folder, { recursive: true });

describe('tccl diagnose', () => {
  it('names the rank that did not come, from the recordings in a folder', async () => {
    const { code, stdout } = await tccl(['diagnose', folder]);
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /^Verdict: rank 1 never called all_reduce \(number 2 of group 0\), in which 1 of 2 ranks wait; rank 1 called last all_reduce .*train\.py:10 step\)\n/,
    );
    expect(stdout).toContain('Read: 2 × flight recording (ranks 0-1)\n');
  });

  it('tells the fault of a machine before what it brings about, and reads on where a file is broken', async () => {
    const dmesg = join(folder, 'dmesg.txt');
    writeFileSync(dmesg, '[12.3] NVRM: Xid (PCI:0000:c1:00): 79, pid=4321, name=python, GPU has fallen off the bus.\n');
    writeFileSync(join(folder, 'evil.pickle'), '\u0080\u0002cos\nsystem\n.', 'latin1');
    writeFileSync(
      join(folder, 'job.log'),
      'node1:1:2 [0] misc/socket.cc:57 NCCL WARN socketProgress: Connection closed by remote peer node2<46312>\n',
    );
    const [text, json] = await Promise.all([tccl(['diagnose', folder]), tccl(['diagnose', folder, '--json'])]);
    expect(text.stdout).toContain('Consequences of these: remote-closed');
    expect(text.stdout).toMatch(/evil\.pickle not read: is no pickle of plain data: operation "c" is refused/);
    expect(JSON.parse(json.stdout)).toMatchObject({
      verdict: { causes: ['xid-bus', 'rank-behind'], consequences: ['remote-closed'] },
      exhibits: expect.arrayContaining([{ file: dmesg, kind: 'log' }]) as unknown,
    });
  });

  it('says in one line what cannot be read at all', async () => {
    const file = join(folder, '..', 'tccl-nothing.bin');
    writeFileSync(file, Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 0]));
    expect(await tccl(['diagnose', file])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('nothing can be read') as string,
    });
    rmSync(file);
    expect(await tccl(['diagnose', join(folder, 'missing')])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('there is no such file or folder') as string,
    });
  });
});
