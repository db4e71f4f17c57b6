import { loadLibc } from '../device/libc.js';
import { MAX_LOCAL_RANKS, Segment } from '../device/segment.js';
import { createMemory } from '../device/shared-memory.js';

/**
 * The memory of ranks that are threads, in which `tccl inspect` can read their boards where the system allows it.
 * @returns the memory, and a function to call when all of them have ended
 */
export function threadMemory(nRanks: number): { readonly memory: WebAssembly.Memory; readonly end: () => void } {
  const memory = createMemory();
  const { libc } = loadLibc();
  const isShown = libc !== undefined && Number.isInteger(nRanks) && nRanks > 0 && nRanks <= MAX_LOCAL_RANKS;
  return { memory, end: isShown ? Segment.show(memory, nRanks, libc) : () => undefined };
}
