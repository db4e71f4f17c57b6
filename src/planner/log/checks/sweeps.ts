import { counted } from '../../../counted.js';
import type { LogFinding } from './finding.js';
import type { LogModel } from '../job/model.js';
import { type HostSet, SLOW_PART, type Sweep, sweepsOf } from './sweep.js';

const UNSTEADY_PART = 0.8;

/**
 * Checks a sweep of nccl-tests over hosts or pairs of hosts. Only like is compared with like: the same collective, number of
 * GPUs and hosts, type and size. A host that is slow in every set is named, else the slow set.
 */
export function checkSweeps({ tables }: Pick<LogModel, 'tables'>): LogFinding[] {
  const findings = sweepsOf(tables).flatMap((sweep) => [...slowSets(sweep), ...unsteady(sweep.sets)]);
  return findings.filter((finding, index) => findings.findIndex(({ code }) => code === finding.code) === index);
}

function slowSets({ sets, slow, usualGBps: usual, collective }: Sweep): LogFinding[] {
  const [first] = slow;
  if (first === undefined) return [];
  const hosts = [...new Set(slow.flatMap((set) => set.hosts))];
  const sick = hosts.filter((host) => {
    const own = sets.filter((set) => set.hosts.includes(host));
    // A sweep over single hosts needs no partner to find the sick one.
    return own.every((set) => slow.includes(set)) && (own.length >= 2 || first.hosts.length === 1);
  });
  const places = slow.slice(0, 4).flatMap(({ rows }) => rows.slice(-1).map(({ place }) => place));
  const worst = slow.reduce((a, b) => (b.gbps < a.gbps ? b : a));
  const what = first.hosts.length === 1 ? 'host' : first.hosts.length === 2 ? 'pair of hosts' : 'set of hosts';
  const numbers = `${slow.length} of ${counted(sets.length, what, what.replace(/^(\w+)/, '$1s'))} stay below ${Math.round(SLOW_PART * 100)} % of the median ${usual.toFixed(1)} GB/s${collective === undefined ? '' : ` of ${collective}`}`;
  const [host] = sick;
  if (host !== undefined) {
    return [
      {
        code: 'host-slow',
        severity: 'error',
        kind: 'fault',
        explains: ['bandwidth-low', 'pair-slow'],
        problem: `${sick.slice(0, 4).join(', ')} ${sick.length === 1 ? 'is' : 'are'} slow${first.hosts.length === 1 ? '' : ' with every other host'} (${worst.gbps.toFixed(1)} GB/s): ${numbers}`,
        cause: 'a NIC, its PCIe link, its cable or a GPU of that host',
        remedy: `on ${host}: \`ibstat\`, \`lspci -vvv\` (LnkSta), \`nvidia-smi -q\`, \`nvidia-smi topo -m\`; take it out and repeat`,
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
      problem: `${worst.hosts.join(' with ')} reaches ${worst.gbps.toFixed(1)} GB/s: ${numbers}`,
      cause: 'the path between these: a switch port, an uplink, a cable; or a host that was paired once only',
      remedy: 'repeat these pairs, each host with another partner; look at the counters of the switch ports between them',
      places,
    },
  ];
}

function unsteady(sets: readonly HostSet[]): LogFinding[] {
  return sets.flatMap(({ hosts, rows }): LogFinding[] => {
    const least = Math.min(...rows.map(({ busGBps }) => busGBps));
    const most = Math.max(...rows.map(({ busGBps }) => busGBps));
    if (rows.length < 2 || least >= UNSTEADY_PART * most) return [];
    return [
      {
        code: 'pair-unsteady',
        severity: 'info',
        kind: 'note',
        problem: `${hosts.join(' with ')}: ${least} to ${most} GB/s in ${rows.length} runs at ${rows[0]?.bytes ?? 0} bytes`,
        cause: 'settings of the runs differ, or other traffic shares the network',
        remedy: 'compare the settings of these runs; repeat each of them',
        places: rows.slice(0, 4).map(({ place }) => place),
      },
    ];
  });
}
