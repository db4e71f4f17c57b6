import { availableParallelism } from '#platform/system';
import { join } from '#platform/paths';
import { namesIn, textOf } from '../proc.js';

/*
 * Cores, which Linux calls CPUs: hardware threads, by their numbers. `root` is where /proc and /sys are, `/` on a real machine.
 */

/** The cores that this process may use, in Linux's form (`0-3,8`); undefined if the system does not report them. */
export function allowedCoreList(root = '/'): string | undefined {
  return readFirst(join(root, 'proc/self/status'), /^Cpus_allowed_list:\s*(\S+)$/m);
}

/** The same as numbers; empty if the system does not report them. */
export function allowedCores(root = '/'): number[] {
  return parseCoreList(allowedCoreList(root));
}

/** A NUMA node with cores. */
export interface NumaNode {
  /** The kernel's number. */
  readonly id: number;
  readonly cores: readonly number[];
}

/** The NUMA nodes that have cores; empty if the kernel knows no nodes. */
export function numaNodes(root = '/'): NumaNode[] {
  const directory = join(root, 'sys/devices/system/node');
  return namesIn(directory)
    .filter((name) => /^node\d+$/.test(name))
    .map((name) => ({ id: Number(name.slice(4)), cores: parseCoreList(readFirst(join(directory, name, 'cpulist'))) }))
    .filter(({ cores }) => cores.length > 0)
    .sort((a, b) => a.id - b.id);
}

/** The hardware threads of the physical core that contains `core`, including `core`. */
export function siblingsOf(core: number, root = '/'): number[] {
  const siblings = parseCoreList(readFirst(join(root, `sys/devices/system/cpu/cpu${core}/topology/thread_siblings_list`)));
  return siblings.length > 0 ? siblings : [core];
}

/** Number of cores that several ranks may use together, where each may be bound to cores of its own. */
export function coresOfAll(lists: readonly (readonly number[])[]): number {
  const all = new Set(lists.flat());
  return all.size > 0 ? all.size : availableParallelism();
}

/** The first group of `pattern` in a file; undefined without a match, or without the file. */
function readFirst(file: string, pattern = /^(\S+)/): string | undefined {
  return pattern.exec(textOf(file))?.[1];
}

/** Parses `0-3,8` to [0, 1, 2, 3, 8]; nothing to []. */
function parseCoreList(list: string | undefined): number[] {
  return (list?.split(',') ?? []).flatMap((part) => {
    const [first = NaN, last = first] = part.split('-').map(Number);
    return Number.isInteger(first) && last >= first ? Array.from({ length: last - first + 1 }, (_, index) => first + index) : [];
  });
}
