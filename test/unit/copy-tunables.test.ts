import { expect, test } from 'vitest';
import { copyTunables } from '../../src/runtime/launch/copy-tunables.js';

const around = 'glibc.cpu.x86_non_temporal_threshold=0x800000';
const heap = 'glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=67108864:glibc.malloc.top_pad=2097152';
const huge = `glibc.malloc.hugetlb=1:${heap}`;

test.each([
  [undefined, `${around}:${huge}`],
  ['', `${around}:${huge}`],
  ['glibc.malloc.arena_max=1', `glibc.malloc.arena_max=1:${around}:${huge}`],
  ['glibc.cpu.x86_non_temporal_threshold=0x4040', `glibc.cpu.x86_non_temporal_threshold=0x4040:${huge}`],
  ['glibc.malloc.hugetlb=0', `glibc.malloc.hugetlb=0:${around}:${heap}`],
])('ranks under GLIBC_TUNABLES=%s have %s', (given, expected) => {
  expect(copyTunables(given === undefined ? {} : { GLIBC_TUNABLES: given }, 2)).toBe(expected);
});

test('the more ranks share the caches, the shorter are the copies that bypass them, down to 2 MiB', () => {
  const thresholds = [1, 2, 3, 4, 100].map((nRanks) => /threshold=(0x[0-9a-f]+)/.exec(copyTunables({}, nRanks))?.[1]);
  expect(thresholds.map(Number)).toEqual([2 ** 25, 2 ** 23, Math.floor(2 ** 25 / 9), 2 ** 21, 2 ** 21]);
});
