import { allowedCores, numaNodes } from '../detect/cores.js';
import type { Libc } from './libc.js';

export interface HomeOptions {
  readonly localRank: number;
  readonly nLocalRanks: number;
  /** TCCL_IGNORE_CPU_AFFINITY=1: all cores of the node, not only those that this process was given. */
  readonly ignoreMask: boolean;
  /** Where /proc and /sys are. Default `/`. */
  readonly root?: string;
}

/**
 * The cores of the NUMA node that a rank should take its memory from, or undefined where there is nothing to choose: the
 * kernel gives pages of the node that the thread runs on when it first touches them, or reserves them. The node is that
 * of the cores that this process may use; where they belong to several, the ranks of the host are spread over these,
 * neighbours together.
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
 * Moves this thread to some cores until the function that it returns is called, which gives it back those that it had.
 * Where the system refuses, it stays where it is.
 */
export function moveTo(libc: Libc, cores: readonly number[]): () => void {
  const before = libc.affinity();
  try {
    libc.setAffinity(cores);
  } catch {
    // Cores may be out of reach of this control group; memory from afar is slower, no more.
    return () => undefined;
  }
  return () => libc.setAffinity(before);
}
