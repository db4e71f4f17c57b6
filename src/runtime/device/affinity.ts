import { allowedCores, numaNodes } from '../detect/cores.js';
import type { Libc } from './libc.js';

export interface HomeOptions {
  readonly localRank: number;
  readonly nLocalRanks: number;
  /** TCCL_IGNORE_CPU_AFFINITY=1: use all cores of the node, not only those that this process was given. */
  readonly ignoreMask: boolean;
  /** Folder that contains /proc and /sys. Default `/`. */
  readonly root?: string;
}

/**
 * The cores of the NUMA node that a rank should take its memory from, or undefined if there is no choice: the kernel provides
 * pages of the node on which the thread runs when it first touches or reserves them. The node is that of the cores that this
 * process may use; if they belong to several, the ranks of the host are spread over these nodes, neighbours together.
 */
export function homeCores({ localRank, nLocalRanks, ignoreMask, root = '/' }: HomeOptions): number[] | undefined {
  const allowed = allowedCores(root);
  const mine = numaNodes(root).filter((cores) => cores.some((core) => allowed.includes(core)));
  const node = mine[Math.floor((localRank * mine.length) / nLocalRanks)];
  if (node === undefined) return undefined;
  const cores = ignoreMask ? node : node.filter((core) => allowed.includes(core));
  return cores.length === allowed.length && cores.every((core) => allowed.includes(core)) ? undefined : cores;
}

/**
 * Moves this thread to some cores until the returned function is called, which restores its affinity. The thread stays where
 * it is if the system refuses.
 */
export function moveTo(libc: Libc, cores: readonly number[]): () => void {
  const before = libc.affinity();
  try {
    libc.setAffinity(cores);
  } catch {
    // The cores may be outside this control group; memory of another node is slower, but usable.
    return () => undefined;
  }
  return () => libc.setAffinity(before);
}
