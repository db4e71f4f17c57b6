import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** The cores that this process may run on, as numbers; empty where the system does not say. */
export function allowedCores(readText: (path: string) => string = (path) => readFileSync(path, 'utf8')): number[] {
  try {
    const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(readText('/proc/self/status'))?.[1];
    return list === undefined ? [] : parseCoreList(list);
  } catch {
    return [];
  }
}

/** `0-3,8` as [0, 1, 2, 3, 8]. */
export function parseCoreList(list: string): number[] {
  return list.split(',').flatMap((part) => {
    const [first = NaN, last = first] = part.split('-').map(Number);
    return Number.isInteger(first) && last >= first ? Array.from({ length: last - first + 1 }, (_, index) => first + index) : [];
  });
}

/** How many cores several ranks may use together: each may be bound to cores of its own. */
export function coresOfAll(lists: readonly (readonly number[])[]): number {
  const all = new Set(lists.flat());
  return all.size > 0 ? all.size : availableParallelism();
}
