import type { LogModel } from '../../planner/log/job/model.js';
import { SLOW_PART, type Sweep, sweepsOf } from '../../planner/log/checks/sweep.js';
import { formatBytes } from '../../planner/plan/overview/format.js';
import { pairsOf } from '../../planner/readers/copy-test.js';
import type { PeerTest } from '../../planner/readers/peer-test.js';

/** Bandwidths that were measured between pairs of hosts or GPUs. */
export interface MeasuredPairs {
  readonly title: string;
  readonly names: readonly string[];
  /** By `FROM TO`; both orders where a pair was measured as a whole. */
  readonly pairs: ReadonlyMap<string, MeasuredPair>;
  /** Median of all pairs, GB/s. */
  readonly usualGBps: number;
}

/** A measured pair. */
export interface MeasuredPair {
  readonly gbps: number;
  readonly nRuns: number;
  readonly isSlow: boolean;
}

/** All pairs that files about a job have measurements of: sweeps of nccl-tests over pairs of hosts, and tests between GPUs. */
export function measuredPairs({ tables, tools }: Pick<LogModel, 'tables' | 'tools'>): MeasuredPairs[] {
  return [
    ...sweepsOf(tables).flatMap(pairsOfSweep),
    ...tools.flatMap((output) =>
      output.tool === 'p2pBandwidthLatencyTest'
        ? pairsOfPeers(output.facts)
        : output.tool === 'nvbandwidth'
          ? output.facts.cases.filter(({ kind }) => kind === 'pair').flatMap((test) => pairsOfGpus(test.name, pairsOf(test)))
          : [],
    ),
  ];
}

/** A single pair is no map. */
const LEAST_SETS = 2;

function pairsOfSweep({ collective, bytes, sets, slow, usualGBps }: Sweep): MeasuredPairs[] {
  const twos = sets.filter(({ hosts }) => hosts.length === 2);
  if (twos.length < LEAST_SETS) return [];
  return [
    {
      title: `${collective ?? 'nccl-tests'} of ${formatBytes(bytes)} between pairs of hosts`,
      names: [...new Set(twos.flatMap(({ hosts }) => hosts))].sort((a, b) => a.localeCompare(b, 'en', { numeric: true })),
      pairs: new Map(
        twos.flatMap((set) => {
          const [a = '', b = ''] = set.hosts;
          const pair = { gbps: set.gbps, nRuns: set.rows.length, isSlow: slow.includes(set) };
          return [
            [`${a} ${b}`, pair],
            [`${b} ${a}`, pair],
          ] as const;
        }),
      ),
      usualGBps,
    },
  ];
}

function pairsOfPeers({ enabled, disabled }: PeerTest): MeasuredPairs[] {
  const [word, measured] = enabled.size > 0 ? (['enabled', enabled] as const) : (['disabled', disabled] as const);
  return pairsOfGpus(`p2pBandwidthLatencyTest, P2P ${word}`, measured);
}

function pairsOfGpus(test: string, measured: ReadonlyMap<string, number>): MeasuredPairs[] {
  if (measured.size < LEAST_SETS) return [];
  const sorted = [...measured.values()].sort((a, b) => a - b);
  const usualGBps = sorted[Math.floor(sorted.length / 2)] ?? 0;
  const gpus = [...new Set([...measured.keys()].flatMap((pair) => pair.split(' ')))].sort((a, b) => Number(a) - Number(b));
  return [
    {
      title: `${test}, between GPUs`,
      names: gpus,
      pairs: new Map([...measured].map(([pair, gbps]) => [pair, { gbps, nRuns: 1, isSlow: gbps < SLOW_PART * usualGBps }])),
      usualGBps,
    },
  ];
}
