import { expect, test } from 'vitest';
import { copyTunables } from '../../src/launch/copy-tunables.js';

const around = 'glibc.cpu.x86_non_temporal_threshold=0x200000';
const huge = 'glibc.malloc.hugetlb=1';

test.each([
  [undefined, `${around}:${huge}`],
  ['', `${around}:${huge}`],
  ['glibc.malloc.arena_max=1', `glibc.malloc.arena_max=1:${around}:${huge}`],
  ['glibc.cpu.x86_non_temporal_threshold=0x4040', `glibc.cpu.x86_non_temporal_threshold=0x4040:${huge}`],
  ['glibc.malloc.hugetlb=0', `glibc.malloc.hugetlb=0:${around}`],
])('ranks under GLIBC_TUNABLES=%s have %s', (given, expected) => {
  expect(copyTunables(given === undefined ? {} : { GLIBC_TUNABLES: given })).toBe(expected);
});
