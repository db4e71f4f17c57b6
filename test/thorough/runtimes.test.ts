import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { cliPath, fixture, start, tccl } from '../multi-process/cli.js';

const modules = fileURLToPath(new URL('../bundles/node_modules/', import.meta.url));
const runtimes = [
  { name: 'Node', command: process.execPath, args: [] },
  { name: 'Bun', command: `${modules}@oven/bun-linux-x64/bin/bun`, args: [] },
  { name: 'Deno', command: `${modules}@deno/linux-x64-glibc/deno`, args: ['run', '--allow-all'] },
];

describe.each(runtimes)('$name', ({ name, command, args }) => {
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

  it.skipIf(missing).each(['0', '1'])(`exchanges objects and trains, TCCL_SHM_DISABLE=%s${missing}`, async (disable) => {
    const run = (ranks: string, ...program: string[]) =>
      tccl(['run', '-n', ranks, '--no-prefix', '--', command, ...args, ...program], { env: { TCCL_SHM_DISABLE: disable } });
    const objects = await run('3', fixture('random-objects.mjs'), '5', '20', 'promises');
    expect({ stdout: objects.stdout, code: objects.code }, objects.stderr).toEqual({
      stdout: '{"rounds":20,"nRanks":3}\n',
      code: 0,
    });
    const { stdout, stderr, code } = await run('2', fixture('train.mjs'));
    expect({ stdout, code }, stderr).toEqual({ stdout: '0 1.5,0.5,3,1\n'.repeat(2), code: 0 });
  });

  // Deno shows the functions that made the error, whatever its stack is.
  const calls = name === 'Deno' ? [] : ['allReduce', 'recv', 'recvObject', 'split', 'wrong argument'];
  it.skipIf(missing || calls.length === 0).each(calls)(
    `shows the program's line of a failed call: %s${missing}`,
    async (call) => {
      const program = [command, ...args, fixture('uncaught.mjs'), call];
      const { stderr } = await tccl(['run', '-n', '2', '--no-prefix', '--', ...program]);
      expect(stderr).toMatch(/RANK_DIED|BUFFER_SIZE/);
      expect(stderr).toMatch(/at (async )?(train|(Object\.)?(<anonymous>|\w+)) \((file:\/\/)?\S*uncaught\.mjs:\d+/);
      expect(stderr).not.toContain('/dist/');
    },
  );
});

const [node, bun] = runtimes.map(({ command }) => command);
const noBun = existsSync(bun ?? '') ? '' : ' (needs: npm ci --ignore-scripts --prefix test/bundles, on x64)';

it.skipIf(noBun)(`objects between ranks under different runtimes are an error that says so${noBun}`, async () => {
  const script = 'if [ $TCCL_RANK = 0 ]; then exec "$0" "$2"; else exec "$1" "$2"; fi';
  const ranks = ['sh', '-c', script, node ?? '', bun ?? '', fixture('mixed-objects.mjs')];
  const { stdout } = await tccl(['run', '-n', '2', '--no-prefix', '--', ...ranks]);
  const lines = stdout.trimEnd().split('\n');
  expect(lines).toHaveLength(2);
  for (const line of lines)
    expect(line).toMatch(
      /^ARGUMENT_TYPE allGatherObject: the value that came cannot be read here: .*; run all ranks under the same/,
    );
});
