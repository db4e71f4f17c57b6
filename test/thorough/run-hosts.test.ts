import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fixture, gone, numbersOf, startTccl, tccl } from '../multi-process/cli.js';

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
    ['localhost,me@b,me@c', 'tccl run: hosts localhost, me@b, me@c: '],
    ['me@b,me@c', 'tccl run: hosts me@b, me@c: '],
  ])('names every host that lacks the directory: %s', async (hosts, names) => {
    const { code, stderr } = await tccl(['run', ...way(), '--hosts', hosts, '--wdir', '/no/such/directory', 'true']);
    expect(stderr).toMatch(new RegExp(`^${names}the directory /no/such/directory cannot be entered .*\\n$`));
    expect(code).toBe(1);
  });

  it('names this host beside others that fail an earlier check', async () => {
    const { code, stderr } = await tccl(['run', ...way('exit 255'), '--hosts', 'localhost,me@b', 'no-such-command']);
    expect(stderr).toMatch(
      /^tccl run: host localhost: no-such-command: command not found\ntccl run: tccl could not be started on host me@b: ssh ended with exit code 255;.*\n$/,
    );
    expect(code).toBe(127);
  });

  it('names a host that fails long after the first one', async () => {
    const file = join(directory, 'named');
    const slow = `[ "$1" = me@c ] || { echo "Host key verification failed." >&2; exit 255; }; until [ -e ${file} ]; do sleep 0.02; done; exit 254`;
    const ssh = join(directory, 'slow-way');
    writeFileSync(ssh, `#!/bin/sh\n${slow}\n`, { mode: 0o755 });
    const job = startTccl(['run', '--ssh', ssh, '--hosts', 'me@b,me@c', 'true']);
    let stderr = '';
    job.process.stderr?.on('data', (text: string) => {
      stderr += text;
      if (stderr.includes('me@b')) writeFileSync(file, '');
    });
    expect(await job.finished).toMatchObject({ code: 1 });
    expect(stderr).toMatch(
      /^tccl run: the key of host me@b is not known here: .*\ntccl run: tccl could not be started on host me@c: ssh ended with exit code 254;.*\n$/,
    );
  });

  it('refuses a Node that is too old, before it runs tccl', async () => {
    const old = join(directory, 'old-node');
    writeFileSync(old, '#!/bin/sh\n[ "$1" = --version ] && echo v18.20.4 || echo ran >&2\n', { mode: 0o755 });
    const { code, stderr } = await tccl(['run', ...way(), '--hosts', 'me@b', '--remote-node', old, 'true']);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `tccl run: host me@b has Node v18.20.4 at ${old}, and tccl needs 20 or newer: install that, or give its path with --remote-node\n`,
    });
  });

  it('takes a node that is a link to a file of another name, for ranks too', async () => {
    const [real, link] = [join(directory, 'node-v20'), join(directory, 'bin', 'n20')];
    mkdirSync(join(directory, 'bin'));
    copyFileSync(process.execPath, real);
    symlinkSync(real, link);
    const script = 'console.log(process.execPath)';
    // Nothing else is called node on the way to the host.
    const bare = way('PATH=/nowhere; export PATH; exec /bin/sh -c "$*"');
    const { code, stdout, stderr } = await tccl(['run', ...bare, '--hosts', 'me@b', '--remote-node', link, 'node', '-e', script]);
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: `[0 me@b] ${real}\n`, stderr: '' });
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

  it('adds all-reduces in an aggregator on this host with --collnet', async () => {
    const ssh = join(directory, 'way-to-hosts');
    writeFileSync(ssh, '#!/bin/sh\nTCCL_HOSTID=$1; export TCCL_HOSTID; shift; exec sh -c "$*"\n', { mode: 0o755 });
    const ranks = [process.execPath, fixture('aggregated.mjs'), 'sums', '400000', '2'];
    const { code, stdout, stderr } = await tccl(['run', '--ssh', ssh, '--collnet', '--hosts', 'me@b:2,me@c:2', ...ranks]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const lines = stdout.trimEnd().split('\n').map((line) => JSON.parse(line.replace(/^\[.*?\] /, '')) as Record<string, unknown>); // prettier-ignore
    expect(lines).toHaveLength(4);
    expect(new Set(lines.map(({ hash }) => hash)).size).toBe(1);
    for (const { wrong, text } of lines) {
      expect(wrong).toBe(0);
      expect(text).toMatch(/takes collnet .*aggregators add what .* send/);
    }
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
