import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { cliPath, fixture, start } from './cli.js';

const modules = fileURLToPath(new URL('../bundles/node_modules/', import.meta.url));
const runtimes = [
  { name: 'Node', command: process.execPath, args: [] },
  { name: 'Bun', command: `${modules}@oven/bun-linux-x64/bin/bun`, args: [] },
  { name: 'Deno', command: `${modules}@deno/linux-x64-glibc/deno`, args: ['run', '--allow-all'] },
];

describe.each(runtimes)('$name', ({ command, args }) => {
  const missing = existsSync(command) ? '' : ' (needs: npm ci --ignore-scripts --prefix test/bundles, on x64)';

  it.skipIf(missing)(`runs ranks as threads, and a pool that continues after a failure${missing}`, async () => {
    const { stdout, stderr, code } = await start(command, [...args, fixture('threads-and-pool.mjs')]).finished;
    expect({ stdout, code }, stderr).toEqual({ stdout: '6 1,2,3 6 \n3,3,3 3,3,3\nJOB_FAILED 1\n6,6,6 6,6,6\n', code: 0 });
  });

  it.skipIf(missing).each(['0', '1'])(`runs ranks as processes, TCCL_SHM_DISABLE=%s${missing}`, async (disable) => {
    const run = ['run', '-n', '2', '--no-prefix', '--', command, ...args, fixture('forms.mjs')];
    const { stdout, stderr, code } = await start(process.execPath, [cliPath, ...run], { env: { TCCL_SHM_DISABLE: disable } })
      .finished;
    expect({ stdout: stdout.split('\n').sort(), code }, stderr).toEqual({ stdout: ['', '6 ', '6 1,2,3'], code: 0 });
  });
});
