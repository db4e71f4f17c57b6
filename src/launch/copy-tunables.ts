const THRESHOLD = 'glibc.cpu.x86_non_temporal_threshold';
/**
 * From here on the C library is to store around the cache. By itself it does so only for copies of nearly the size of the
 * last-level cache that it believes in, which on virtual machines is many times that of the real one (240 MiB seen, of
 * 32). Measured on one: with 2 MiB, copies of 4 to 16 MiB in collectives take 0.6 to 0.8 of the time; shorter ones stay
 * in the cache for who reads them next.
 */
const THRESHOLD_BYTES = 2 * 1024 * 1024;

/** The GLIBC_TUNABLES of ranks: what is set already, and when the C library's copies go around the cache. */
export function copyTunables(env: NodeJS.ProcessEnv): string {
  const given = env['GLIBC_TUNABLES'] ?? '';
  if (given.includes(THRESHOLD)) return given;
  return `${given === '' ? '' : `${given}:`}${THRESHOLD}=0x${THRESHOLD_BYTES.toString(16)}`;
}
