const THRESHOLD = 'glibc.cpu.x86_non_temporal_threshold';
/**
 * From here on the C library is to store around the cache. By itself it does so only for copies of nearly the size of the
 * last-level cache that it believes in, which on virtual machines is many times that of the real one (240 MiB seen, of
 * 32). Measured on one: with 2 MiB, copies of 4 to 16 MiB in collectives take 0.6 to 0.8 of the time; shorter ones stay
 * in the cache for who reads them next.
 */
const THRESHOLD_BYTES = 2 * 1024 * 1024;

const HUGE_PAGES = 'glibc.malloc.hugetlb';
/**
 * Ordinary arrays of some MiB are to lie in huge pages, where the system leaves that to programs: it looks up each page
 * when another rank reads them (device/peer-memory.ts), and that takes longer than copying 4 KiB. Measured: such
 * reads take half the time, copies of 16 MiB take 0.8.
 */
const TRANSPARENT = 1;

/** The GLIBC_TUNABLES of ranks: what is set already, when copies go around the cache, and which pages large arrays have. */
export function copyTunables(env: NodeJS.ProcessEnv): string {
  const given = env['GLIBC_TUNABLES'] ?? '';
  const ours = [[THRESHOLD, `0x${THRESHOLD_BYTES.toString(16)}`], [HUGE_PAGES, String(TRANSPARENT)]] as const;
  return [...(given === '' ? [] : [given]), ...ours.filter(([name]) => !given.includes(name)).map((setting) => setting.join('='))].join(':');
}
