import { expect, test } from 'vitest';
import { copyTunables } from '../../src/launch/copy-tunables.js';

const ours = 'glibc.cpu.x86_non_temporal_threshold=0x200000';

test.each([
  [undefined, ours],
  ['', ours],
  ['glibc.malloc.arena_max=1', `glibc.malloc.arena_max=1:${ours}`],
  ['glibc.cpu.x86_non_temporal_threshold=0x4040', 'glibc.cpu.x86_non_temporal_threshold=0x4040'],
])('ranks under GLIBC_TUNABLES=%s copy with %s', (given, expected) => {
  expect(copyTunables(given === undefined ? {} : { GLIBC_TUNABLES: given })).toBe(expected);
});
