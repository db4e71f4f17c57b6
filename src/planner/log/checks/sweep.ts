import type { MeasuredRow, MeasuredTable } from '../job/table.js';

/** Runs of nccl-tests that differ in their hosts only. */
export interface Sweep {
  readonly collective: string | undefined;
  readonly bytes: number;
  readonly sets: readonly HostSet[];
  /** Median of all sets, bus bandwidth in GB/s. */
  readonly usualGBps: number;
  /** Sets that are slow; empty where there are too few to compare, or where most are. */
  readonly slow: readonly HostSet[];
}

/** All runs of one set of hosts: its speed is the median, its spread what the runs differ by. */
export interface HostSet {
  readonly hosts: readonly string[];
  readonly rows: readonly MeasuredRow[];
  readonly gbps: number;
}

/** From this size on, bandwidth rather than latency decides. */
const LARGE_BYTES = 8 * 2 ** 20;
/** Below this part of the median, a set of hosts is slow. */
export const SLOW_PART = 0.8;
const LEAST_SETS = 3;

/** Sweeps over hosts or pairs of hosts: tables of the same collective, number of GPUs and hosts, type and size. */
export function sweepsOf(tables: readonly MeasuredTable[]): Sweep[] {
  const groups = new Map<string, { readonly table: MeasuredTable; readonly row: MeasuredRow }[]>();
  for (const table of tables) {
    const row = table.rows.findLast(({ bytes }) => bytes >= LARGE_BYTES);
    if (row === undefined || table.hosts.length === 0) continue;
    const { isGraph, gpusPerThread } = table.run;
    const key = [table.collective, table.nRanks, table.hosts.length, row.type, row.bytes, isGraph, gpusPerThread].join(' ');
    groups.set(key, [...(groups.get(key) ?? []), { table, row }]);
  }
  return [...groups.values()].map((runs) => {
    const sets = setsOf(runs);
    const usualGBps = median(sets.map(({ gbps }) => gbps));
    const slow = sets.length < LEAST_SETS ? [] : sets.filter(({ gbps }) => gbps < SLOW_PART * usualGBps);
    return {
      collective: runs[0]?.table.collective,
      bytes: runs[0]?.row.bytes ?? 0,
      sets,
      usualGBps,
      slow: slow.length > sets.length / 2 ? [] : slow,
    };
  });
}

function setsOf(runs: readonly { readonly table: MeasuredTable; readonly row: MeasuredRow }[]): HostSet[] {
  const sets = new Map<string, { hosts: readonly string[]; rows: MeasuredRow[] }>();
  for (const { table, row } of runs) {
    const hosts = [...table.hosts].sort();
    const known = sets.get(hosts.join(' ')) ?? { hosts, rows: [] };
    known.rows.push(row);
    sets.set(hosts.join(' '), known);
  }
  return [...sets.values()].map(({ hosts, rows }) => ({ hosts, rows, gbps: median(rows.map(({ busGBps }) => busGBps)) }));
}

function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}
