import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cliPath, fixture, gone, lacks, numbersOf, start, startTccl } from './cli.js';

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'tccl-secret-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

/** Another user of this host, where the tests may become one; elsewhere the same user, who can read more. */
const other =
  process.getuid?.() === 0 && lacks('setpriv') === undefined
    ? ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups']
    : [];

/** Files among `patterns` that hold `text`, as the other user finds them. The text goes through a pipe. */
async function found(text: string, patterns: string): Promise<string[]> {
  const { stdout } = await start('env', [...other, 'sh', '-c', `exec grep -lasrF -f - ${patterns}`], { input: `${text}\n` })
    .finished;
  return stdout.split('\n').filter((line) => line !== '');
}

function secretOf(pid: number): string {
  const secret = readFileSync(`/proc/${pid}/environ`, 'latin1')
    .split('\0')
    .find((entry) => entry.startsWith('TCCL_COMM_SECRET='));
  expect(secret).toMatch(/=[0-9a-f]{64}$/);
  return secret?.slice('TCCL_COMM_SECRET='.length) ?? '';
}

describe('the secret of a job', () => {
  it('is in no place that another user of the host can read, and not in logs, traces, errors or output of a rank', async () => {
    const files = {
      TCCL_TRACE: join(directory, 'trace'),
      TCCL_DEBUG: 'TRACE',
      TCCL_DEBUG_SUBSYS: 'ALL',
      TCCL_DEBUG_FILE: join(directory, 'debug.%p'),
    };
    const job = startTccl(['run', '-n', '2', '--no-prefix', process.execPath, fixture('secret.mjs')], {
      env: files,
      openInput: true,
    });
    const shown = await job.shown(/(pid=\d+ up[^]*){2}/);
    const [pid = 0] = numbersOf(shown, 'pid');
    const secret = secretOf(pid);

    const arguments_ = '/proc/[0-9]*/cmdline';
    expect(await found(fixture('secret.mjs'), arguments_)).not.toEqual([]); // the search itself works
    expect(await found(secret, arguments_)).toEqual([]);
    if (other.length > 0) expect(await found(secret, '/proc/[0-9]*/environ')).toEqual([]);
    chmodSync(directory, 0o755);
    expect(await found('allReduce', directory)).not.toEqual([]);
    expect(await found(secret, directory)).toEqual([]);

    job.process.stdin?.end('go\n');
    const { code, stdout, stderr } = await job.finished;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const line of stdout.split('\n').filter((text) => text.startsWith('{'))) {
      const { leaks, messages } = JSON.parse(line) as { leaks: string[]; messages: string[] };
      expect(leaks).toEqual([]);
      expect(messages[5]).toBe(
        'init: commId is a UniqueId or its text, not an object of class Object; neither JSON nor postMessage carries an id: send id.toString()',
      );
    }
    expect(`${stdout}${stderr}`).not.toContain(secret);
  });

  it('is not sent in clear text when a communicator grows by an id that only one of its ranks has', async () => {
    const job = startTccl(['run', '-n', '3', '--no-prefix', process.execPath, fixture('grow-overheard.mjs')]);
    const { code, stdout, stderr } = await job.finished;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const told = stdout.trim().split('\n');
    expect(told.map((line) => JSON.parse(line) as unknown)).toEqual(Array(3).fill({ sum: 6, wrote: true, told: false }));
  });

  it('is not among the arguments of the process that ends the ranks of a killed launcher', async () => {
    const seen = join(directory, 'arguments');
    writeFileSync(
      join(directory, 'grep'),
      `#!/bin/sh\nprintf '%s\\n' "$@" >> '${seen}'\nPATH='${process.env['PATH'] ?? ''}' exec grep "$@"\n`,
      { mode: 0o755 },
    );
    const job = start(process.execPath, [cliPath, 'run', '-n', '2', process.execPath, fixture('family.mjs'), 'deaf'], {
      env: { PATH: `${directory}:${process.env['PATH'] ?? ''}` },
    });
    const shown = await job.shown(/(up[^]*){2}/);
    const pids = [...numbersOf(shown, 'pid'), ...numbersOf(shown, 'child')];
    const secret = secretOf(pids[0] ?? 0);
    job.process.kill('SIGKILL');
    await gone(pids);
    const arguments_ = readFileSync(seen, 'utf8');
    expect(arguments_).toContain('/proc/');
    expect(arguments_).not.toContain(secret);
  });
});
