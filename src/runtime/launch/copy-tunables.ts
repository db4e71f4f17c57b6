const THRESHOLD = 'glibc.cpu.x86_non_temporal_threshold';
/**
 * Bytes that the ranks of a host may write while they stay in the last-level cache: most servers have 16 to 32 MiB for each
 * group of cores.
 */
export const CACHED_BYTES = 32 * 1024 * 1024;
const LEAST_BYTES = 2 * 1024 * 1024;

/**
 * Copies from this length on use stores that bypass the caches. By default the C library does so only for copies of nearly
 * the size that it believes the last-level cache has, which on virtual machines is many times the real size (240 MiB instead
 * of 32 was seen). In an all-gather or all-to-all, each of n ranks makes n copies, so n² copies of this length would fill the
 * cache. Measured with two ranks: calls of 4 MiB whose copies stay in the cache take 0.3 to 0.6 of the time of those that
 * bypass it, calls of 8 MiB 0.5 to 0.8; at 16 MiB there is no difference on cores that share a path to memory, and on other
 * cores bypassing takes 0.8.
 */
export function streamedBytes(nRanks: number): number {
  return Math.max(LEAST_BYTES, Math.floor(CACHED_BYTES / (nRanks * nRanks)));
}

/**
 * Asks for huge pages for ordinary arrays, where the system leaves the choice to programs. The kernel looks up each page when
 * another rank reads the array (device/peer-memory.ts), which takes longer than copying 4 KiB: with huge pages, such reads
 * take half the time and copies of 16 MiB 0.8. The setting makes the C library request huge pages, and serve arrays of up to
 * 32 MiB from its heap, which consists of them, instead of mapping memory for each array, whose ends then lie in pages of 4
 * KiB. The library does so by itself only after a program has freed an array of 32 MiB.
 */
const PAGES = [
  ['glibc.malloc.hugetlb', 1],
  ['glibc.malloc.mmap_threshold', 32 * 1024 * 1024],
  ['glibc.malloc.trim_threshold', 64 * 1024 * 1024],
  ['glibc.malloc.top_pad', 2 * 1024 * 1024],
] as const;

/** GLIBC_TUNABLES for ranks: the user's own settings, the length from which copies bypass the cache, and huge pages. */
export function copyTunables(env: NodeJS.ProcessEnv, nRanks: number): string {
  const given = env['GLIBC_TUNABLES'] ?? '';
  const ours = [[THRESHOLD, `0x${streamedBytes(nRanks).toString(16)}`], ...PAGES] as const;
  return [
    ...(given === '' ? [] : [given]),
    ...ours.filter(([name]) => !given.includes(name)).map((setting) => setting.join('=')),
  ].join(':');
}
