import { SystemError } from '../../errors.js';
import type { Libc } from './libc.js';
import { clockMs, sleep } from '../platform/platform.js';

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

/** True once a communicator was closed whose memory may not be collected yet. */
let areSomeClosed = false;

/** Notes that a memory is not used any more: it keeps its addresses until the garbage collector finds it. */
export function leaveMemory(): void {
  areSomeClosed = true;
}

/** Time after which the sockets and timers of a closed communicator keep its memory no longer, milliseconds. */
const COLLECTED_MS = 1500;
const RETRY_MS = 20;

/** As {@link createMemory}, but waits for addresses of closed communicators: each try collects garbage. */
export async function memoryAfterOthers(pages = MAX_PAGES): Promise<WebAssembly.Memory> {
  const triesUntilMs = clockMs() + COLLECTED_MS;
  while (areSomeClosed && clockMs() < triesUntilMs) {
    try {
      return new WebAssembly.Memory({ shared: true, initial: pages, maximum: pages });
    } catch {
      await sleep(RETRY_MS);
    }
  }
  return pages === MAX_PAGES ? createMemory() : createMemory(pages);
}

/** A file that the processes of a host map over their memories, and the memory of the process that made it. */
export interface MadeFile {
  readonly fd: number;
  readonly bytes: number;
  readonly memory: WebAssembly.Memory;
}

/** Creates the file of a host's memory, as long as this process's largest memory. */
export async function createMemoryFile(libc: Libc): Promise<MadeFile> {
  const memory = await memoryAfterOthers();
  const bytes = memory.buffer.byteLength;
  return { fd: libc.createMemoryFile('tccl', bytes), bytes, memory };
}

/**
 * Maps a file over the beginning of a memory that nothing has used yet, so that other processes can read the boards there
 * (board-layout.ts). It stays mapped until the memory is collected.
 */
export function showBeginning(
  memory: WebAssembly.Memory,
  libc: Libc,
  bytes: number,
): { readonly fd: number; readonly libc: Libc } {
  const fd = libc.createMemoryFile('tccl', bytes);
  libc.mapShared(libc.addressOf(new Uint8Array(memory.buffer)), bytes, fd);
  return { fd, libc };
}
