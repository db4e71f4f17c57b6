import { textOf } from '../proc.js';

/**
 * Bytes that this process can still allocate before the kernel starts killing: the machine's free memory or the rest of the
 * control group's limit (v2 or v1), whichever is less. Infinity where the system does not show it.
 *
 * @param readText reads a file as text, empty if it is missing; injected so that captured machines can be tested
 */
export function availableMemory(readText = textOf): number {
  return Math.min(machineLeft(readText), ...controlGroupsLeft(readText));
}

function machineLeft(readText: (path: string) => string): number {
  const kilobytes = /^MemAvailable:\s+(\d+) kB/m.exec(readText('/proc/meminfo'))?.[1];
  return kilobytes === undefined ? Infinity : Number(kilobytes) * 1024;
}

function* controlGroupsLeft(readText: (path: string) => string): Generator<number> {
  for (const line of readText('/proc/self/cgroup').split('\n')) {
    const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers === undefined || path === undefined) continue;
    const [mount, limit, used] =
      controllers === ''
        ? ['/sys/fs/cgroup', 'memory.max', 'memory.current']
        : controllers.split(',').includes('memory')
          ? ['/sys/fs/cgroup/memory', 'memory.limit_in_bytes', 'memory.usage_in_bytes']
          : [];
    if (mount === undefined) continue;
    for (const folder of upwards(mount, path)) yield left(readText(`${folder}/${limit}`), readText(`${folder}/${used}`));
  }
}

/** The folder of a control group and of all its parents, each of which may have a limit. */
function* upwards(mount: string, path: string): Generator<string> {
  for (let current = path === '/' ? '' : path; ; current = current.slice(0, current.lastIndexOf('/'))) {
    yield mount + current;
    if (current === '') return;
  }
}

function left(limit: string, used: string): number {
  const limitBytes = Number(limit.trim() || NaN);
  return Number.isFinite(limitBytes) ? Math.max(0, limitBytes - Number(used.trim() || 0)) : Infinity;
}
