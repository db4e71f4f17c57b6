const THRESHOLD = 'glibc.cpu.x86_non_temporal_threshold';
/**
 * Bytes that the ranks of a host may write and still find in their last-level cache: most servers have 16 to 32 MiB a
 * group of cores.
 */
export const CACHED_BYTES = 32 * 1024 * 1024;
const LEAST_BYTES = 2 * 1024 * 1024;

/**
 * Copies from this length on store around the caches. By itself the C library does so only for copies of nearly the size of
 * the last-level cache that it believes in, which on virtual machines is many times that of the real one (240 MiB seen, of
 * 32). In an all-gather or all-to-all each of n ranks makes n copies, so n² of this length would fill the cache. Measured with
 * two ranks: calls of 4 MiB whose copies stay in the cache take 0.3 to 0.6 of the time of those that go around it, calls
 * of 8 MiB 0.5 to 0.8; at 16 MiB there is no difference on cores that share a way to memory, and on others going around
 * takes 0.8.
 */
export function streamedBytes(nRanks: number): number {
  return Math.max(LEAST_BYTES, Math.floor(CACHED_BYTES / (nRanks * nRanks)));
}

/**
 * Ordinary arrays are to lie in huge pages, where the system leaves that to programs: it looks up each page when another
 * rank reads them (device/peer-memory.ts), and that takes longer than copying 4 KiB. Measured: such reads take half the time,
 * copies of 16 MiB take 0.8. So the C library asks for such pages; and it takes up to 32 MiB from its heap, which consists of
 * them, where it would map memory for each array, whose ends then lie in pages of 4 KiB. It would do so by itself once a
 * program has given back an array of 32 MiB.
 */
const PAGES = [
  ['glibc.malloc.hugetlb', 1],
  ['glibc.malloc.mmap_threshold', 32 * 1024 * 1024],
  ['glibc.malloc.trim_threshold', 64 * 1024 * 1024],
  ['glibc.malloc.top_pad', 2 * 1024 * 1024],
] as const;

/** The GLIBC_TUNABLES of ranks: what is set already, when copies go around the cache, and which pages arrays have. */
export function copyTunables(env: NodeJS.ProcessEnv, nRanks: number): string {
  const given = env['GLIBC_TUNABLES'] ?? '';
  const ours = [[THRESHOLD, `0x${streamedBytes(nRanks).toString(16)}`], ...PAGES] as const;
  return [
    ...(given === '' ? [] : [given]),
    ...ours.filter(([name]) => !given.includes(name)).map((setting) => setting.join('=')),
  ].join(':');
}
