import type { LogFinding } from '../finding.js';
import type { LogModel } from '../model.js';
import type { MeasuredTable } from '../table.js';

interface Pair {
  readonly hosts: readonly [string, string];
  readonly gbps: number;
  readonly table: MeasuredTable;
}

/** From this size on, bandwidth rather than latency decides. */
const LARGE_BYTES = 8 * 2 ** 20;
/** Below this part of the median, a pair is slow. */
const SLOW_PART = 0.8;
const LEAST_PAIRS = 3;

/** Checks a sweep of nccl-tests over pairs of hosts: finds a host that is slow in every pair, or a single slow pair. */
export function checkPairs({ tables }: Pick<LogModel, 'tables'>): LogFinding[] {
  const pairs = tables.flatMap((table): Pair[] => {
    const [a, b, ...more] = table.hosts;
    const gbps = Math.max(0, ...table.rows.filter(({ bytes }) => bytes >= LARGE_BYTES).map(({ busGBps }) => busGBps));
    return a === undefined || b === undefined || more.length > 0 || gbps === 0 ? [] : [{ hosts: [a, b], gbps, table }];
  });
  if (pairs.length < LEAST_PAIRS) return [];
  const usual = median(pairs.map(({ gbps }) => gbps));
  const slow = pairs.filter(({ gbps }) => gbps < SLOW_PART * usual);
  if (slow.length === 0 || slow.length > pairs.length / 2) return [];
  const hosts = [...new Set(slow.flatMap((pair) => pair.hosts))];
  const sick = hosts.filter((host) => {
    const own = pairs.filter((pair) => pair.hosts.includes(host));
    return own.length >= 2 && own.every((pair) => slow.includes(pair));
  });
  const places = slow.slice(0, 4).flatMap(({ table }) => table.rows.slice(-1).map(({ place }) => place));
  const worst = slow.reduce((a, b) => (b.gbps < a.gbps ? b : a));
  const numbers = `${slow.length} of ${pairs.length} pairs of hosts stay below ${Math.round(SLOW_PART * 100)} % of the median ${usual.toFixed(1)} GB/s`;
  const [first] = sick;
  if (first !== undefined) {
    return [
      {
        code: 'host-slow',
        severity: 'error',
        kind: 'fault',
        explains: ['bandwidth-low', 'pair-slow'],
        problem: `${sick.slice(0, 4).join(', ')} ${sick.length === 1 ? 'is' : 'are'} slow with every other host (${worst.gbps} GB/s): ${numbers}`,
        cause: 'a NIC, its PCIe link, its cable or a GPU of that host',
        remedy: `on ${first}: ibstat, mlxlink -d <device> -m -c, lspci -vvv | grep LnkSta, nvidia-smi topo -m; take it out and repeat`,
        places,
      },
    ];
  }
  return [
    {
      code: 'pair-slow',
      severity: 'warning',
      kind: 'failure',
      explains: ['bandwidth-low'],
      problem: `${worst.hosts.join(' with ')} reaches ${worst.gbps} GB/s: ${numbers}`,
      cause: 'the path between these two: a switch port, an uplink, a cable; or a host that was paired once only',
      remedy: 'repeat these pairs, each host with another partner; look at the counters of the switch ports between them',
      places,
    },
  ];
}

function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}
