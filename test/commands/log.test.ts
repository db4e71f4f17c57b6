import { mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { once } from 'node:events';
import { afterAll, describe, expect, it } from 'vitest';
import { withUsedGpus } from '../../src/cli/log/used-gpus.js';
import { machine } from '../../src/planner/topology/catalogue/machines.js';
import { interleaved, madeLog, planHosts, planMachines, randomFrom } from '../unit/planner/log/made-log.js';
import { start, cliPath } from '../multi-process/cli.js';
import { tccl } from './in-process.js';

const folder = mkdtempSync(join(tmpdir(), 'tccl-log-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

const byRank = madeLog(planMachines('dgx-h100', 2), { ends: true });
const text = `${interleaved(byRank, randomFrom(5)).join('\n')}\n`;

function file(name: string, content: string | Buffer): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

/** Target of a link, which may be gone by now. */
function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

describe('tccl log', () => {
  it('summarises a good log of all ranks, from a file, from a pipe, and from one file per rank', async () => {
    const good = file('good.log', text);
    const [fromFile, fromPipe, fromRanks] = await Promise.all([
      tccl(['log', good]),
      tccl(['log', '-'], { input: text }),
      tccl(['log', ...byRank.map((lines, rank) => file(`rank${rank}.log`, `${lines.join('\r\n')}\r\n`))]),
    ]);
    expect([fromFile.code, fromFile.stderr]).toEqual([0, '']);
    expect(fromFile.stdout).toContain(
      'communicator 0x5c3e1f2a9b8d7e60: 16 ranks on 2 hosts, NCCL 2.30.7+cuda12.4, init finished on 16 of 16 in 0.61 s\n',
    );
    expect(fromFile.stdout).toMatch(/^Verdict: nothing wrong found; all that began was seen to end\n/);
    expect(fromPipe.stdout).toBe(fromFile.stdout);
    expect(fromRanks).toMatchObject({ code: 0, stderr: '' });
  });

  it('exits with 3 where init is all that a log shows', async () => {
    const open = file('open.log', `${madeLog(planMachines('dgx-h100', 1)).flat().join('\n')}\n`);
    const [read, json] = await Promise.all([tccl(['log', open]), tccl(['log', open, '--json'])]);
    expect([read.code, json.code]).toEqual([3, 3]);
    expect(read.stdout).toMatch(
      /^Undecided: 8 ranks completed init, and no later line shows whether the job works, hangs or ended\n/,
    );
    expect(JSON.parse(json.stdout)).toMatchObject({ outcome: 'undecided', findings: [] });
  });

  it('exits with 1 at a finding, and names its line', async () => {
    const bad = file('bad.log', text.replaceAll('P2P/CUMEM', 'SHM/direct'));
    const { code, stdout } = await tccl(['log', bad]);
    expect(code).toBe(1);
    const [, line] =
      new RegExp(`^Verdict: .* through the host's memory .*\\n  why .*\\n  where  ${bad}:(\\d+)`).exec(stdout) ?? [];
    expect(text.split('\n')[Number(line) - 1]).toContain('via P2P/CUMEM');
  });

  it('gives JSON, and one rank', async () => {
    const good = file('good.log', text);
    const [json, oneRank, rank] = await Promise.all([
      tccl(['log', good, '--json']),
      tccl(['log', good, '--json', '--rank', '9']),
      tccl(['log', good, '--rank', '9']),
    ]);
    const value = JSON.parse(json.stdout) as { communicators: { ranks: unknown[]; rings: unknown[] }[] };
    expect(value).toMatchObject({
      files: [good],
      findings: [],
      communicators: [{ id: '0x5c3e1f2a9b8d7e60', nRanks: 16, nNodes: 2 }],
    });
    expect([value.communicators[0]!.ranks.length, value.communicators[0]!.rings.length]).toEqual([16, 16]);
    expect((JSON.parse(oneRank.stdout) as typeof value).communicators[0]!.ranks).toMatchObject([
      { rank: 9, host: 'node1', stage: 'done' },
    ]);
    expect(rank.stdout).toContain('  process   node1:4001, CUDA device 1, NVML device 1');
  });

  it('compares with the plan for a machine, with the settings of the log', async () => {
    const good = file('good.log', text);
    const [same, other, wrong] = await Promise.all([
      tccl(['log', good, '--topology', 'dgx-h100']),
      tccl(['log', good, '--topology', 'dgx-a100', '--nodes', '2']),
      tccl(['log', good, '--topology', 'dgx-h100', '--nodes', '3']),
    ]);
    expect(same.stdout).toMatch(/All \d{3} decisions in the log are those of the plan for 2 x dgx-h100\./);
    expect(other.stdout).toContain('decisions differ from the plan for 2 x');
    const old = file('old.log', text.replaceAll(/NCCL version \d+\.\d+\.\d+/g, 'NCCL version 2.9.9'));
    expect((await tccl(['log', old, '--topology', 'dgx-a100', '--nodes', '2'])).stdout).toContain(
      "decisions differ from NCCL 2.18.5's plan for 2 x",
    );
    expect(wrong).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('has 24 ranks, and the communicator in the log has 16') as string,
    });
  });

  it('compares a job on some GPUs of its hosts, and a cluster file', async () => {
    const title = 'dgx-h100';
    const whole = machine(title);
    const used = [
      [0, 1, 2, 3, 4, 5],
      [2, 3],
    ].map((devices, host) => ({
      machine: withUsedGpus(whole, { host: `node${host}`, gpus: devices.map((dev) => ({ busId: undefined, dev })) }, title),
      count: 1,
    }));
    const six = file(
      'six.log',
      `${madeLog(planHosts(used.slice(0, 1)))
        .flat()
        .join('\n')}\n`,
    );
    const both = madeLog(planHosts(used)).map((lines, rank) =>
      rank < 6 ? lines : lines.map((line) => line.replaceAll(`nvmlDev ${rank - 6}`, `nvmlDev ${rank - 4}`)),
    );
    const eight = file('eight.log', `${both.flat().join('\n')}\n`);
    const cluster = file('cluster.yaml', 'machines:\n  - { machine: dgx-h100, count: 2 }\n');
    const results = await Promise.all([
      tccl(['log', six, '--topology', title]),
      tccl(['log', eight, '--topology', cluster]),
      tccl(['log', eight, '--topology', 'dgx-h100', '--nodes', '2']),
      tccl(['log', six, '--topology', cluster]),
    ]);
    for (const { stdout } of results.slice(0, 3)) expect(stdout).toMatch(/All \d+ decisions in the log are those of the plan/);
    expect(results[3]).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        'has 16 ranks, and the communicator in the log has 6 on 1 hosts: give the machine',
      ) as string,
    });
  });

  it('recognises a log of RCCL, and compares it with no plan', async () => {
    const rccl = join(import.meta.dirname, '../logs/excerpts/rocmvllm390.log');
    const [read, compared] = await Promise.all([tccl(['log', rccl]), tccl(['log', rccl, '--topology', 'dgx-h100'])]);
    expect(read.stdout).toContain('info rccl: this is the log of RCCL (AMD)');
    expect(compared).toMatchObject({ code: 2, stderr: expect.stringContaining('it cannot be compared with a plan') as string });
  });

  it('reads compressed logs, and reports a truncated one', async () => {
    expect(await tccl(['log', file('good.log.gz', gzipSync(text))])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Verdict: nothing wrong found/) as string,
    });
    const half = await tccl(['log', file('half.log', text.slice(0, text.length / 2))]);
    expect(half).toMatchObject({
      code: 3,
      stdout: expect.stringContaining('log-unfinished: the log ends in the middle of a line') as string,
    });
  });

  it('is undecided about a file without a line that counts, with the exit code of diagnose', async () => {
    const cases: (readonly [content: string, message: string])[] = [
      ['', 'the files are empty'],
      ['hello\nworld\n', 'there is no line of NCCL among 2, '],
    ];
    for (const [index, [content, message]] of cases.entries()) {
      const name = file(`empty${index}`, content);
      for (const command of ['log', 'diagnose'])
        expect(await tccl([command, name])).toMatchObject({
          code: 3,
          stdout: expect.stringContaining(`Undecided: ${message}`) as string,
        });
    }
  });

  it('refuses a file that is no log in one line', async () => {
    const cases: (readonly [content: string | Buffer, message: string])[] = [
      [Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 0]), ' is no text (a binary file)'],
    ];
    for (const [index, [content, message]] of cases.entries()) {
      const { code, stderr } = await tccl(['log', file(`case${index}`, content)]);
      expect([code, stderr.split('\n').length, stderr]).toEqual([2, 2, expect.stringContaining(message)]);
    }
    expect(await tccl(['log', join(folder, 'missing.log')])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('missing.log: there is no such file or folder\n') as string,
    });
    const beside = await tccl(['log', file('sound.log', text), join(folder, 'missing.log')]);
    expect(beside.stderr).toMatch(/^note: .*missing\.log is not read: there is no such file or folder\n$/);
    expect([beside.code, beside.stdout]).toEqual([0, (await tccl(['log', join(folder, 'sound.log')])).stdout]);
    expect(await tccl(['log', folder])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(': is a folder; give its files ') as string,
    });
    expect(await tccl(['log', file('good.log', text), '--rank', '99'])).toMatchObject({ code: 2 });
    expect(await tccl(['log', file('good.log', text), '--nodes', '2'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('give --topology, too') as string,
    });
  });

  it.skipIf(process.platform !== 'linux')('closes a file that it refuses', async () => {
    const refused = file('refused.log', Buffer.alloc(2 ** 21));
    const isOpen = () => readdirSync('/proc/self/fd').some((fd) => linkOf(`/proc/self/fd/${fd}`) === refused);
    expect(await tccl(['log', refused])).toMatchObject({ code: 2 });
    expect(isOpen()).toBe(false);
  });

  it('reads a long log, and endless lines, in little memory', async () => {
    const { process: child, finished } = start(process.execPath, ['--max-old-space-size=64', cliPath, 'log', '-'], {
      openInput: true,
    });
    const write = async (piece: string) => {
      if (!child.stdin!.write(piece)) await once(child.stdin!, 'drain');
    };
    await write(text);
    const endless = 'x'.repeat(2 ** 20);
    for (let part = 0; part < 64; part++) {
      await write(
        Array.from(
          { length: 8192 },
          (_, index) =>
            `node0:4001:5001 [1] NCCL INFO Channel 0${index % 8}/1 : 1[1] -> ${index % 16}[${index % 8}] via P2P/CUMEM/read ${part}.${index}\n`,
        ).join(''),
      );
      await write(endless);
    }
    child.stdin!.end('\n');
    expect(await finished).toMatchObject({ code: 0, stderr: '' });
  });
});
