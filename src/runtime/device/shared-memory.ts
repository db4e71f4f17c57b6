import { SystemError } from '../../errors.js';
import type { Libc } from './libc.js';

/** Page size of WebAssembly's memory. */
export const PAGE_BYTES = 65536;
/**
 * One page less than 32 bits of addresses: arrays in a buffer of 4 GiB are lost when they are posted to another thread (V8 12
 * and before).
 */
const MAX_PAGES = 65535;
const MIN_PAGES = 1024;

/**
 * Creates a shared memory that never moves: its initial size is its maximum. It has 4 GiB of addresses, less a page, if the
 * system grants them (they take no memory until they are used), otherwise half of that, and so on.
 *
 * @throws SystemError `OUT_OF_MEMORY`
 */
export function createMemory(pages?: number): WebAssembly.Memory {
  for (let size = pages ?? MAX_PAGES; ; size = Math.floor(size / 2)) {
    try {
      return new WebAssembly.Memory({ shared: true, initial: size, maximum: size });
    } catch (error) {
      if (pages === undefined && size > MIN_PAGES) continue;
      const wanted = `${String(size * PAGE_BYTES)} bytes of address space cannot be reserved`;
      // V8 reserves the same addresses for a small memory as for a large one.
      const advice = 'a WebAssembly memory takes some 10 GB of addresses; raise the limit (ulimit -v)';
      throw new SystemError('OUT_OF_MEMORY', `${wanted}: ${advice}`, { cause: error });
    }
  }
}

/**
 * Creates the file that the processes of a host map over their memories, as long as this process's largest one. Returns its
 * descriptor and length.
 */
export function createMemoryFile(libc: Libc): { readonly fd: number; readonly bytes: number } {
  const bytes = createMemory().buffer.byteLength;
  return { fd: libc.createMemoryFile('tccl', bytes), bytes };
}

/** Path under which other processes of this host open a memory file of this process. */
export function memoryFilePath(fd: number): string {
  return `/proc/${String(process.pid)}/fd/${String(fd)}`;
}
