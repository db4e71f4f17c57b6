import type { ScheduledCollective } from '../schedule/schedule.js';
import type { Generation } from '../tuning/constants.js';
import type { Network } from './environment.js';

/** Measured by predicted time: eight of ten measurements lie between. */
export interface Interval {
  readonly least: number;
  readonly most: number;
  /** Properties of the cluster that no measurement had, which make the interval wider: `128 hosts, where 10 were measured`. */
  readonly unmeasured: readonly string[];
}

/** Properties of a cluster by which predictions are more or less sure. */
export interface Predicted {
  readonly generation: Generation;
  readonly nHosts: number;
  /** True if NVLinks join the GPUs of a host. */
  readonly hasNvlink: boolean;
  readonly network: Network;
}

type Bounds = readonly [least: number, most: number];

/** By class, and by size: below 1 MiB, below 128 MiB, and above. */
type BySize = readonly [Bounds, Bounds, Bounds];

/**
 * 10th and 90th percentile of measured by predicted time of machines and fabrics that the fit left out
 * (`npm run calibrate`, docs/notes/simulate.md), the wider of both.
 */
const intervals: Readonly<Record<'oneHost' | 'oneHostPairs' | 'hosts' | 'hostsPairs', BySize>> = {
  oneHost: [
    [0.91, 1.19],
    [0.92, 1.17],
    [0.94, 1.1],
  ],
  oneHostPairs: [
    [0.87, 1.42],
    [0.83, 1.1],
    [0.97, 1.14],
  ],
  hosts: [
    [0.71, 1.2],
    [0.77, 1.09],
    [0.96, 1.135],
  ],
  hostsPairs: [
    // No messages below 32 MiB were measured between hosts.
    [0.5, 2],
    [0.98, 1.24],
    [0.99, 1.085],
  ],
};

/** On windows: 15 published times of two machines (docs/notes/tuning.md) are too few, so a factor of two. */
const onWindows: Bounds = [0.5, 2];

/** The most hosts of a measurement that the fit has. */
const MEASURED_HOSTS = 10;
/** Share by which an interval, as a logarithm, grows with each doubling of hosts beyond. */
const GROWTH = 0.25;
/**
 * The same for a property that no measurement had. `generation`: errors of A100 where all of its hosts are left out. The others
 * are chosen.
 */
const WIDER = { generation: 2.3, hosts: 1.5, pcie: 2.5, network: 2 } as const;

/** Errors of predictions on machines that no parameter came from, wider for a cluster unlike those that were measured. */
export function intervalOf(collective: ScheduledCollective, bytes: number, of: Predicted, isOnWindows = false): Interval {
  const { wider, unmeasured } = distanceOf(of);
  const isPairs = collective === 'AllToAll' || collective === 'SendRecv' || collective === 'Gather' || collective === 'Scatter';
  const [small, middle, large] = intervals[`${of.nHosts > 1 ? 'hosts' : 'oneHost'}${isPairs ? 'Pairs' : ''}`];
  const [least, most] = isOnWindows ? onWindows : bytes < 2 ** 20 ? small : bytes < 2 ** 27 ? middle : large;
  return { least: least ** wider, most: most ** wider, unmeasured };
}

function distanceOf({ generation, nHosts, hasNvlink, network }: Predicted): { wider: number; unmeasured: string[] } {
  const isNet = nHosts > 1;
  const reasons: (readonly [boolean, number, string])[] = [
    [
      isNet && nHosts > MEASURED_HOSTS,
      1 + GROWTH * Math.log2(nHosts / MEASURED_HOSTS),
      `${nHosts} hosts, where ${MEASURED_HOSTS} were measured`,
    ],
    [generation === 'volta', WIDER.generation, 'Volta'],
    [isNet && generation === 'blackwell', WIDER.hosts, 'Blackwell between hosts'],
    [!hasNvlink, WIDER.pcie, 'GPUs without NVLinks'],
    [isNet && network !== 'verbs', WIDER.network, `the network plugin ${network}`],
  ];
  const found = reasons.filter(([isSo]) => isSo);
  return { wider: found.reduce((product, [, factor]) => product * factor, 1), unmeasured: found.map(([, , text]) => text) };
}

/** `nobody measured 128 hosts, where 10 were measured: intervals are wider`; undefined where everything was. */
export function unmeasuredText(unmeasured: readonly string[]): string | undefined {
  return unmeasured.length === 0
    ? undefined
    : `the fit has no measurement of ${unmeasured.join(' and of ')}: intervals are wider`;
}
