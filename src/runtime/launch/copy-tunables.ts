const THRESHOLD = 'glibc.cpu.x86_non_temporal_threshold';
/**
 * Bytes that the ranks of a host may write while they stay in the last-level cache: most servers have 16 to 32 MiB for each
 * group of cores.
 */
export const CACHED_BYTES = 32 * 1024 * 1024;
const LEAST_BYTES = 2 * 1024 * 1024;

/**
 * Copies from this length on use stores that bypass the caches: the C library's own limit follows the last-level cache, whose
 * size virtual machines report many times too large. In an all-gather or all-to-all each of n ranks makes n copies, so n² copies
 * of this length would fill the cache (docs/notes/memory.md has measurements).
 */
export function streamedBytes(nRanks: number): number {
  return Math.max(LEAST_BYTES, Math.floor(CACHED_BYTES / (nRanks * nRanks)));
}

/**
 * Asks for huge pages for ordinary arrays, where the system leaves the choice to programs: with them, other ranks read arrays
 * (device/peer-memory.ts) in half the time. The C library then requests huge pages, and serves arrays of up to 32 MiB from its
 * heap, which consists of them.
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
