import { allowedCores, numaNodes, siblingsOf } from '../detect/cores.js';
import { InvalidUsageError } from '../../errors.js';

/** Unit that each rank is bound to: a core with all its hardware threads, or a NUMA node. */
export type BindingUnit = 'core' | 'numa';

/**
 * The CPUs of each rank, in the form of taskset(1) (`0,64`). Ranks get cores in order; NUMA nodes are filled one after the
 * other, so that ranks with adjacent numbers share memory. Only CPUs that this process may use are assigned.
 *
 * @param root where /proc and /sys are, `/` on a real machine
 * @throws InvalidUsageError `UNSUPPORTED` when there are more ranks than cores
 */
export function bindRanks(unit: BindingUnit, nRanks: number, root = '/'): string[] {
  const allowed = new Set(allowedCores(root));
  const units = (unit === 'core' ? readCores(root, allowed) : numaNodes(root).map(({ cores }) => cores))
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

/** The hardware threads of each core with at least one allowed CPU, ordered by the first. */
function readCores(root: string, allowed: ReadonlySet<number>): number[][] {
  const cores = new Map<string, number[]>();
  for (const cpu of [...allowed].sort((a, b) => a - b)) {
    const siblings = siblingsOf(cpu, root);
    cores.set(siblings.join(), siblings);
  }
  return [...cores.values()];
}
