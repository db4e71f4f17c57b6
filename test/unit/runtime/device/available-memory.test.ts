import { expect, test } from 'vitest';
import { availableMemory } from '../../../../src/runtime/device/available-memory.js';

const reader = (files: Record<string, string>) => (path: string) => files[path] ?? '';

test('a machine without limits has what MemAvailable says', () => {
  expect(
    availableMemory(reader({ '/proc/meminfo': 'MemTotal: 9 kB\nMemAvailable:    2048 kB\n', '/proc/self/cgroup': '0::/\n' })),
  ).toBe(2 ** 21);
});

test('the tightest control group of all ancestors counts', () => {
  const files = {
    '/proc/meminfo': 'MemAvailable: 1000000 kB\n',
    '/proc/self/cgroup': '0::/pod/container\n',
    '/sys/fs/cgroup/pod/container/memory.max': 'max\n',
    '/sys/fs/cgroup/pod/container/memory.current': '5\n',
    '/sys/fs/cgroup/pod/memory.max': '1000000\n',
    '/sys/fs/cgroup/pod/memory.current': '400000\n',
  };
  expect(availableMemory(reader(files))).toBe(600000);
});

test('version 1 control groups are read too', () => {
  const files = {
    '/proc/self/cgroup': '5:cpu,memory:/x\n3:cpuset:/\n',
    '/sys/fs/cgroup/memory/x/memory.limit_in_bytes': '9223372036854771712',
    '/sys/fs/cgroup/memory/memory.limit_in_bytes': '1000',
    '/sys/fs/cgroup/memory/memory.usage_in_bytes': '2000',
  };
  expect(availableMemory(reader(files))).toBe(0);
});

test('a system without information has no limit', () => {
  expect(availableMemory(reader({}))).toBe(Infinity);
});
