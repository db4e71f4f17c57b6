import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { cliPath, fixture, start } from '../multi-process/cli.js';

/** Runs Node on a system that looks different to JavaScript: without /proc, /sys and koffi. */
const node = (platform: string, ...args: string[]) =>
  start(process.execPath, args, {
    env: { NODE_OPTIONS: `--import=${pathToFileURL(fixture('not-linux.mjs')).href}`, TEST_PLATFORM: platform },
  });

describe.each(['darwin', 'win32'])('on %s, without koffi and /proc', (platform) => {
  const reason = `shared memory between processes needs Linux, this is ${platform}`;

  it('ranks that are threads, pools and the planner work', async () => {
    const { stdout, stderr, code } = await node(platform, fixture('not-linux-threads.mjs')).finished;
    const line = `${platform} 3 3 ${reason}\n`;
    expect({ stdout, stderr, code }).toEqual({ stdout: `${line}${line}3,3,3 3,3,3\n16\n`, stderr: '', code: 0 });
  });

  it('ranks that are processes use sockets and name what is missing', async () => {
    const run = node(platform, cliPath, 'run', '-n', '2', '--no-prefix', '--', process.execPath, fixture('not-linux-rank.mjs'));
    const { stdout, stderr, code } = await run.finished;
    const line = `${platform} 3 3 ${reason}\n`;
    expect({ stdout, code }, stderr).toEqual({ stdout: line + line, code: 0 });
    expect(stderr).toBe(`tccl: ranks of one host do not share memory, so their data goes through sockets: ${reason}\n`);
  });

  it('a job ends at signals, and when a rank fails', async () => {
    const rank = "console.log('up'); setInterval(() => {}, 1000)";
    const run = node(platform, cliPath, 'run', '-n', '2', '--no-prefix', '--', process.execPath, '-e', rank);
    await run.shown(/up\nup\n/);
    run.process.kill('SIGINT');
    expect(await run.finished).toMatchObject({ code: 130, stderr: '' });

    const failing = `if (process.env.TCCL_RANK === '1') process.exit(3); ${rank}`;
    const failed = node(platform, cliPath, 'run', '-n', '2', '--', process.execPath, '-e', failing);
    expect(await failed.finished).toMatchObject({
      code: 3,
      stderr: 'tccl run: rank 1 exited with code 3; ending the other ranks\n',
    });
  });

  it.each([
    ['plan', 'dgx-h100', '--nodes', '2'],
    ['topo', 'show', 'dgx-h100'],
    ['explain', 'dgx-h100', '--nodes', '2', 'why', 'no', 'NVLS'],
    ['topo', 'detect', '--ranks', '2'],
    ['perf', 'all_reduce', '--ranks', '2', '-b', '8', '-e', '1K', '-f', '8', '-n', '2', '-w', '1'],
  ])('tccl %s works', async (...args) => {
    const { stdout, stderr, code } = await node(platform, cliPath, ...args).finished;
    expect(code, stderr).toBe(0);
    expect(stdout).not.toBe('');
  });
});

it('a command of Windows is found by its name without extension', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tccl-windows-'));
  const command = join(folder, 'job.exe');
  writeFileSync(command, '#!/bin/sh\necho ran\n');
  chmodSync(command, 0o755);
  const { stdout, code } = await node('win32', cliPath, 'run', '-n', '1', '--no-prefix', '--', join(folder, 'job')).finished;
  rmSync(folder, { recursive: true });
  expect({ stdout, code }).toEqual({ stdout: 'ran\n', code: 0 });
});
