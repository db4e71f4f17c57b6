import { mkdirSync, readdirSync, readFileSync, readlinkSync, rmdirSync, truncateSync, writeFileSync } from 'node:fs';
import { afterAll, expect, test, vi } from 'vitest';
import { cliPath, fixture, numbersOf, start, startTccl, tccl } from './cli.js';

/** A control group of our own that allows 400 MiB, or why there is none. */
function limitedGroup(): { folder: string } | { reason: string } {
  for (const line of readFileSync('/proc/self/cgroup', 'utf8').split('\n')) {
    const [, controllers, path = ''] = line.split(':');
    const version2 = controllers === '';
    if (controllers === undefined || !(version2 || controllers.split(',').includes('memory'))) continue;
    const folder = `${version2 ? '/sys/fs/cgroup' : '/sys/fs/cgroup/memory'}${path === '/' ? '' : path}/tccl-test-${String(process.pid)}`;
    try {
      mkdirSync(folder);
      writeFileSync(`${folder}/${version2 ? 'memory.max' : 'memory.limit_in_bytes'}`, String(400 * 2 ** 20));
      return { folder };
    } catch {
      continue;
    }
  }
  return { reason: 'no control group can be made here' };
}

const group = limitedGroup();
afterAll(async () => {
  // The launcher does not wait for its watchdog, which ends behind it.
  if ('folder' in group)
    await vi.waitFor(() => {
      rmdirSync(group.folder);
    }, 10_000);
});

/** Runs a program as 2 ranks in the control group. */
function runIn({ folder }: { folder: string }, program: string): ReturnType<typeof start>['finished'] {
  const command = `echo $$ > ${folder}/cgroup.procs && exec "$0" "$@"`;
  return start('sh', [
    '-c',
    command,
    process.execPath,
    cliPath,
    'run',
    '-n',
    '2',
    '--no-prefix',
    '--',
    process.execPath,
    fixture(program),
  ]).finished;
}

test('memory that the control group does not allow is refused at alloc, and the ranks continue', async (context) => {
  if ('reason' in group) return context.skip(group.reason);
  const { stdout, stderr, code } = await runIn(group, 'memory.mjs');
  expect(stdout.trim().split('\n'), stderr).toEqual(['OUT_OF_MEMORY 3', 'OUT_OF_MEMORY 3']);
  expect(code).toBe(0);
});

test('a child for which there is no memory is refused on all ranks, with the number of open ones, and they continue', async (context) => {
  if ('reason' in group) return context.skip(group.reason);
  const { stdout, stderr, code } = await runIn(group, 'no-room-for-children.mjs');
  expect(code, stderr).toBe(0);
  const records = stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(records).toHaveLength(2);
  for (const { open, code: refused, message, sum } of records) {
    expect(refused).toBe('OUT_OF_MEMORY');
    expect(message).toMatch(
      new RegExp(
        `shared memory cannot be allocated: .* left, with ${String(open)} communicators open; close communicators that are not needed, or free arrays`,
      ),
    );
    expect(sum).toBe(2);
  }
});

test('where no file descriptor is left for a child over sockets, the error gives the number of open ones and a remedy', async () => {
  const command = [
    '-c',
    'ulimit -n 130 && exec "$0" "$@"',
    process.execPath,
    cliPath,
    'run',
    '-n',
    '2',
    '--no-prefix',
    '--',
    process.execPath,
    fixture('no-descriptors-for-children.mjs'),
  ];
  const { stdout, stderr, code } = await start('sh', command, { env: { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' } })
    .finished;
  expect(code, stderr).toBe(0);
  const records = stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(records).toHaveLength(2);
  for (const record of records)
    expect(record).toMatchObject({ code: 'NETWORK', message: expect.stringMatching(/^split: /) as string });
  expect(records.map(({ message }) => message)).toContainEqual(
    expect.stringMatching(
      /this process has no file descriptor left, with \d+ communicators open; close communicators that are not needed, or raise the limit \(ulimit -n\)/,
    ),
  );
});

test('where a file may not be as long as the shared memory, ranks use sockets and give the reason', async () => {
  const { stdout, stderr, code } = await start('sh', [
    '-c',
    'ulimit -f 1000000 && exec "$0" "$@"',
    process.execPath,
    cliPath,
    'run',
    '-n',
    '2',
    '--no-prefix',
    '--',
    process.execPath,
    fixture('random-collectives.mjs'),
    '--seed',
    '1',
    '--calls',
    '20',
    '--promises',
  ]).finished;
  expect(code, stderr).toBe(0);
  expect(stdout).toContain('"algorithm":"ring"');
  expect(stderr).toContain('through sockets: ftruncate failed: EFBIG');
});

test('a program cannot truncate the shared memory, and heaps continue to grow', async (context) => {
  const job = startTccl(['run', '-n', '2', '--no-prefix', process.execPath, fixture('growing.mjs')], { openInput: true });
  const pids = numbersOf(await job.shown(/(pid=\d+[^]*){2}/), 'pid');
  const files = pids.flatMap((pid) =>
    readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      const path = `/proc/${pid}/fd/${fd}`;
      return isMemory(path) ? [path] : [];
    }),
  );
  if (files.length === 0) context.skip('ranks share no file here');
  for (const path of files)
    for (const bytes of [0, 4096, 2 ** 33])
      expect(() => {
        truncateSync(path, bytes);
      }).toThrow('EPERM');
  job.process.stdin?.end('go\n');
  expect(await job.finished).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/(sum=3\n){2}$/) as string });
});

function isMemory(path: string): boolean {
  try {
    return readlinkSync(path).startsWith('/memfd:tccl');
  } catch {
    return false; // closed meanwhile
  }
}

// Newer versions reserve less for a memory.
const otherNode = process.env['TCCL_TEST_NODE'] === undefined ? '' : ' (skipped: TCCL_TEST_NODE has other limits)';
test.skipIf(otherNode)(
  `a limit of address space in which no WebAssembly memory fits is named with a remedy${otherNode}`,
  async () => {
    const rank = ['sh', '-c', 'ulimit -v 8000000; exec "$0" "$@"', process.execPath, fixture('sum.mjs')];
    const { code, stderr } = await tccl(['run', '-n', '2', '--no-prefix', '--', ...rank]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/\d+ bytes of address space cannot be reserved: .*raise the limit \(ulimit -v\)/);
  },
);

test.skipIf(otherNode).each([{}, { TCCL_SHM_DISABLE: '1' }])(
  `addresses for one memory are enough for communicators one after the other, with %o${otherNode}`,
  async (env) => {
    const rank = ['sh', '-c', 'ulimit -v 14000000; exec "$0" "$@"', process.execPath, fixture('init-again.mjs'), '6'];
    const { code, stdout } = await tccl(['run', '-n', '2', '--no-prefix', '--', ...rank], { env });
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'done\ndone\n' });
  },
);

test('blocking groups in a loop leave nothing behind, although the event loop does not turn', async () => {
  const rank = [process.execPath, '--expose-gc', fixture('blocking-groups.mjs')];
  const { stdout } = await tccl(['run', '-n', '1', '--no-prefix', '--', ...rank]);
  // It was 31 MB when each of the 20,000 groups left a microtask.
  expect((JSON.parse(stdout) as { grownBytes: number }).grownBytes).toBeLessThan(5e6);
});
