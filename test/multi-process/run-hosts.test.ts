import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gone, numbersOf, startTccl, tccl } from './cli.js';

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'tccl-hosts-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

/** Replaces ssh, and runs the command on this host, without an sshd. `says` is the text that a host prints first. */
function way(says = ''): string[] {
  const path = join(directory, `way-${says.length}`);
  writeFileSync(path, `#!/bin/sh\nshift\n${says}\nexec sh -c "$*"\n`, { mode: 0o755 });
  return ['--ssh', path];
}

const count = 'i=0; while [ $i -lt 40000 ]; do echo "$i 23456789012345678901234567890123456789"; i=$((i+1)); done';

describe('tccl run --hosts', () => {
  it("ignores the output of a host's shell", async () => {
    const says = 'echo "Welcome to the cluster"; echo banner >&2; printf "no line feed"';
    const { code, stdout, stderr } = await tccl(['run', ...way(says), '--hosts', 'me@b,me@c', 'sh', '-c', 'echo $TCCL_RANK']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.trimEnd().split('\n').sort()).toEqual(['[0 me@b] 0', '[1 me@c] 1']);
  });

  it('keeps a host whose output is not read for a while', async () => {
    const job = startTccl(['run', ...way(), '--hosts', 'me@b,me@c', 'sh', '-c', `${count}; echo done`], {
      env: { TCCL_HEARTBEAT: '1' },
    });
    job.process.stdout?.pause();
    await new Promise((resolve) => setTimeout(resolve, 4000)); // four times the limit for a silent host
    job.process.stdout?.resume();
    const { code, stdout, stderr } = await job.finished;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const prefix of ['[0 me@b]', '[1 me@c]']) {
      const own = stdout.split('\n').filter((line) => line.startsWith(prefix));
      expect(own).toHaveLength(40_001);
      expect(own.at(-1)).toBe(`${prefix} done`);
    }
  });

  it.each([
    ['localhost,me@b,me@c', 'tccl run: host localhost: '],
    ['me@b,me@c', 'tccl run: hosts me@b, me@c: '],
  ])('checks this host before the others: %s', async (hosts, names) => {
    const { code, stderr } = await tccl(['run', ...way(), '--hosts', hosts, '--wdir', '/no/such/directory', 'true']);
    expect(stderr).toMatch(new RegExp(`^${names}the directory /no/such/directory cannot be entered .*\\n$`));
    expect(code).toBe(1);
  });

  it('passes variables of any length', async () => {
    const { stdout } = await tccl(['run', ...way(), '--hosts', 'me@b', '-x', 'LONG', 'sh', '-c', 'echo ${#LONG}'], {
      env: { LONG: 'x'.repeat(120_000) },
    });
    expect(stdout).toBe('[0 me@b] 120000\n');
  });

  it('ends processes that ranks of other hosts left running', async () => {
    const { code, stdout } = await tccl([
      'run',
      ...way(),
      '--grace',
      '0.2',
      '--hosts',
      'me@b,me@c',
      'sh',
      '-c',
      'sleep 1000 >/dev/null & echo child=$!',
    ]);
    expect(code).toBe(0);
    const children = numbersOf(stdout, 'child');
    expect(children).toHaveLength(2);
    await gone(children);
  });

  it('shows the host of each rank with --dry-run, and as JSON with --json', async () => {
    const list = ['run', '--hosts', 'a:3,b:1', '--dry-run'];
    expect(await tccl([...list, 'true'])).toMatchObject({ code: 0, stdout: 'a  ranks 0 to 2 of 4\nb  rank 3 of 4\n' });
    const { stdout } = await tccl([...list, '--json', 'true']);
    expect(JSON.parse(stdout)).toEqual({
      nRanks: 4,
      hosts: [
        { host: 'a', first: 0, count: 3 },
        { host: 'b', first: 3, count: 1 },
      ],
    });
  });
});
