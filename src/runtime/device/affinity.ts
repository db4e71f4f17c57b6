import { allowedCores, numaNodes, type NumaNode } from '../detect/cores.js';
import type { Libc } from './libc.js';

interface HomeOptions {
  readonly localRank: number;
  readonly nLocalRanks: number;
  /** TCCL_IGNORE_CPU_AFFINITY=1: use all cores of the node, not only those that this process was given. */
  readonly ignoreMask: boolean;
  /** Folder that contains /proc and /sys. Default `/`. */
  readonly root?: string;
}

/**
 * The NUMA node that a rank should take its memory from: that of the cores that this process may use. If they belong to
 * several, the ranks of the host are spread over these nodes, neighbours together. Undefined if the kernel knows no nodes.
 */
export function homeNode({ localRank, nLocalRanks, root = '/' }: Omit<HomeOptions, 'ignoreMask'>): NumaNode | undefined {
  const allowed = allowedCores(root);
  const mine = numaNodes(root).filter(({ cores }) => cores.some((core) => allowed.includes(core)));
  return mine[Math.floor((localRank * mine.length) / nLocalRanks)];
}

/**
 * The cores of {@link homeNode}, or undefined if there is no choice: the kernel provides pages of the node on which the thread
 * runs when it first touches or reserves them.
 */
export function homeCores(options: HomeOptions): readonly number[] | undefined {
  const node = homeNode(options);
  if (node === undefined) return undefined;
  const allowed = allowedCores(options.root);
  const cores = options.ignoreMask ? node.cores : node.cores.filter((core) => allowed.includes(core));
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
