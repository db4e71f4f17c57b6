import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { InvalidUsageError } from '../errors.js';

/** What each rank is bound to: a core with all its hardware threads, or a NUMA node. */
export type BindingUnit = 'core' | 'numa';

/**
 * The CPUs of each rank, as taskset(1) takes them (`0,64`). Ranks get cores in order; NUMA nodes are filled one after
 * the other, so that neighbours in rank are neighbours in memory. Only CPUs that this process may use are given out.
 *
 * @param root where /proc and /sys are, `/` on a real machine
 * @throws InvalidUsageError `UNSUPPORTED` when there are more ranks than cores
 */
export function bindRanks(unit: BindingUnit, nRanks: number, root = '/'): string[] {
  const allowed = new Set(readCpuList(join(root, 'proc/self/status'), /^Cpus_allowed_list:\s*(\S+)/m));
  const units = (unit === 'core' ? readCores(root, allowed) : readNumaNodes(root))
    .map((cpus) => cpus.filter((cpu) => allowed.has(cpu)))
    .filter((cpus) => cpus.length > 0);
  if (unit === 'core' && nRanks > units.length) {
    throw new InvalidUsageError(
      'UNSUPPORTED',
      `--bind-to core: ${nRanks} ranks need as many cores, but this process may use ${units.length}; bind to numa, or leave it out`,
    );
  }
  return Array.from({ length: nRanks }, (_, rank) => {
    const place = unit === 'core' ? rank : Math.floor((rank * units.length) / nRanks);
    return (units[place] ?? [...allowed]).join(',');
  });
}

/** The hardware threads of each core that has one we may use, in order of the first. */
function readCores(root: string, allowed: ReadonlySet<number>): number[][] {
  const cores = new Map<string, number[]>();
  for (const cpu of [...allowed].sort((a, b) => a - b)) {
    const siblings = readCpuList(join(root, `sys/devices/system/cpu/cpu${cpu}/topology/thread_siblings_list`)) ?? [cpu];
    cores.set(siblings.join(), siblings);
  }
  return [...cores.values()];
}

/** The CPUs of each NUMA node; none where the kernel knows no nodes. */
function readNumaNodes(root: string): number[][] {
  const directory = join(root, 'sys/devices/system/node');
  let names: string[];
  try {
    names = readdirSync(directory);
  } catch {
    return [];
  }
  return names
    .filter((name) => /^node\d+$/.test(name))
    .sort((a, b) => Number(a.slice(4)) - Number(b.slice(4)))
    .map((name) => readCpuList(join(directory, name, 'cpulist')) ?? []);
}

/** Reads `0-3,8` from a file, or from the first group of `pattern` in it; undefined when it isn't there. */
function readCpuList(file: string, pattern = /^(\S+)/): number[] | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
  return pattern.exec(text)?.[1]?.split(',').flatMap((range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
}
