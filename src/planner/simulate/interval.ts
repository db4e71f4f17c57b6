import type { ScheduledCollective } from '../schedule/schedule.js';
import type { Environment } from './environment.js';
import { type Distance, distanceOf, type MeasuredKinds, measuredKinds, type SizeClass, sizeClassOf } from './measured-calls.js';

/** Factors of the predicted time. */
export interface Bounds {
  readonly least: number;
  readonly most: number;
}

/** Measured by predicted time: eight of ten measurements lie between. */
export interface Interval extends Bounds {
  /** The bounds where calls like these were measured. */
  readonly usual: Bounds;
  /** Properties of the call and its cluster that no measurement had, which make it wider: `the network tcpx`. */
  readonly unmeasured: readonly string[];
}

/** Properties of a cluster by which predictions are more or less sure. */
export interface Predicted extends Pick<Environment, 'launch' | 'network'> {
  /** Least compute capability × 10. */
  readonly compCap: number;
  readonly nHosts: number;
  /** Most GPUs of a host, or of an NVLink domain of several. */
  readonly gpusPerHost: number;
  /** True if NVLinks join the GPUs of a host. */
  readonly hasNvlink: boolean;
  /** Most hosts that one NVLink domain has. */
  readonly hostsOfDomain: number;
  /** True for hosts with Arm CPUs, as Grace. */
  readonly isArm: boolean;
}

/** Calls with intervals of their own: collectives or messages of pairs, on one host or on several. */
export type IntervalClass = 'oneHost' | 'oneHostPairs' | 'hosts' | 'hostsPairs';

type BySize = Readonly<Record<SizeClass, readonly [least: number, most: number]>>;
type ByDistance = Readonly<Record<Distance | 'cards', BySize>>;

/**
 * Three and more GPUs of a host without NVLinks. One such box was measured: its bounds above, and the same factor of about two
 * below, because another box may be as much faster than predicted.
 */
const cards: BySize = { small: [0.5, 2.01], middle: [0.5, 2.16], large: [0.5, 2.2] };

/**
 * 10th and 90th percentile of measured by predicted time of what fits left out, by the distance that it then had from the rest,
 * wider for the few machines that they come from. `npm run calibrate` prints them (docs/notes/simulate.md#intervals).
 */
const intervals: Readonly<Record<IntervalClass, ByDistance>> = {
  oneHost: {
    measured: { small: [0.87, 1.07], middle: [0.87, 1.14], large: [0.93, 1.08] },
    calls: { small: [0.85, 1.52], middle: [0.87, 1.44], large: [0.84, 1.12] },
    gpus: { small: [0.85, 1.63], middle: [0.85, 1.44], large: [0.84, 1.12] },
    cards,
  },
  oneHostPairs: {
    measured: { small: [0.87, 1.04], middle: [0.81, 1.04], large: [0.95, 1.11] },
    calls: { small: [0.87, 1.74], middle: [0.81, 1.69], large: [0.95, 1.11] },
    gpus: { small: [0.87, 1.74], middle: [0.71, 1.69], large: [0.81, 1.12] },
    cards,
  },
  hosts: {
    measured: { small: [0.73, 1.37], middle: [0.8, 1.26], large: [0.89, 1.12] },
    calls: { small: [0.73, 1.37], middle: [0.76, 1.32], large: [0.89, 1.12] },
    gpus: { small: [0.71, 1.4], middle: [0.76, 1.32], large: [0.84, 1.19] },
    cards,
  },
  // One machine was measured: calls on other GPUs are no surer than collectives. None of its messages was small.
  hostsPairs: {
    measured: { small: [0.5, 2], middle: [0.87, 1.15], large: [0.93, 1.07] },
    calls: { small: [0.5, 2], middle: [0.87, 1.15], large: [0.93, 1.07] },
    gpus: { small: [0.5, 2], middle: [0.76, 1.32], large: [0.84, 1.19] },
    cards,
  },
};

/** On windows: 15 published times of two machines (docs/notes/tuning.md) are too few, so a factor of two. */
const onWindows = [0.5, 2] as const;

/** The most hosts of a measurement that the fit has. */
export const MEASURED_HOSTS = 10;

/**
 * Further properties that no measurement had: the factor, to either side, that eight of ten such measurements would keep to if
 * all else were known. Independent errors: the squares of their logarithms add.
 */
const further = {
  /** For each doubling of hosts beyond the measured ones; chosen. */
  doubledHosts: { small: 1.08, middle: 1.08, large: 1.02 },
  /** Large calls as RoCE was when all of it was left out, others chosen: the latencies of these networks are round figures. */
  network: { small: 2, middle: 2, large: 1.14 },
  /** InfiniBand or RoCE: half of what they differ by, in an all-reduce on two hosts. */
  either: { small: 1.15, middle: 1.05, large: 1 },
  /** As the one machine with calls on an empty stream, left out. */
  launch: { small: 1.28, middle: 1.26, large: 1.07 },
  /** Chosen. */
  arm: { small: 1.2, middle: 1.2, large: 1.1 },
  /** As 13 published times of GB200 and GB300 with 8, 64 and 72 GPUs, all of them large. */
  domain: { small: 1.2, middle: 1.3, large: 1.3 },
} as const satisfies Readonly<Record<string, Readonly<Record<SizeClass, number>>>>;

/**
 * Errors of predictions of what no parameter came from, wider for a call and a cluster unlike those that were measured.
 *
 * @param kinds the calls that count as measured
 */
export function intervalOf(
  collective: ScheduledCollective,
  bytes: number,
  of: Predicted,
  isOnWindows = false,
  kinds: MeasuredKinds = measuredKinds,
): Interval {
  const size = sizeClassOf(bytes);
  const isBetweenHosts = of.nHosts > 1;
  const byDistance = intervals[intervalClassOf(collective, of.nHosts)];
  const usual = boundsOf(byDistance.measured[size]);
  // Errors of boxes come from links of the host that cards share; two cards do not.
  const isOfCards = !of.hasNvlink && of.gpusPerHost > 2;
  const { distance, words } = isOfCards
    ? { distance: 'cards' as const, words: 'GPUs without NVLinks' }
    : distanceOf({ compCap: of.compCap, isBetweenHosts, collective, size }, kinds);
  const others = furtherOf(of);
  const widest = (bound: number) =>
    Math.exp(Math.hypot(Math.log(bound), ...others.map(({ factors, times }) => times * Math.log(factors[size]))));
  const { least, most } = boundsOf(isOnWindows ? onWindows : byDistance[distance][size]);
  return {
    least: 1 / widest(1 / least),
    most: widest(most),
    usual: isOnWindows ? boundsOf(onWindows) : usual,
    unmeasured: [words, ...others.map((each) => each.words)].filter((each) => each !== undefined),
  };
}

/** The properties beyond kinds of calls that no measurement had. */
function furtherOf({ nHosts, network, launch, isArm, hostsOfDomain }: Predicted) {
  const isBetweenHosts = nHosts > 1;
  const all = [
    {
      isSo: nHosts > MEASURED_HOSTS,
      factors: further.doubledHosts,
      times: Math.log2(nHosts / MEASURED_HOSTS),
      words: `${nHosts} hosts, where ${MEASURED_HOSTS} were measured`,
    },
    { isSo: hostsOfDomain > 1, factors: further.domain, times: 1, words: `an NVLink domain of ${hostsOfDomain} hosts` },
    { isSo: isBetweenHosts && isArm, factors: further.arm, times: 1, words: 'hosts with Arm CPUs' },
    {
      isSo: isBetweenHosts && (network === 'sockets' || network === 'tcpx'),
      factors: further.network,
      times: 1,
      words: `the network ${network}`,
    },
    { isSo: isBetweenHosts && network === 'verbs', factors: further.either, times: 1, words: undefined },
    {
      isSo: launch !== 'queued',
      factors: further.launch,
      times: 1,
      words: launch === 'graph' ? 'CUDA graphs' : 'calls on an empty stream, but for one machine',
    },
  ];
  return all.filter(({ isSo }) => isSo);
}

function boundsOf([least, most]: readonly [least: number, most: number]): Bounds {
  return { least: Math.min(1, least), most: Math.max(1, most) };
}

/** The class of a call's interval. */
export function intervalClassOf(collective: ScheduledCollective, nHosts: number): IntervalClass {
  const isPairs = collective === 'AllToAll' || collective === 'SendRecv' || collective === 'Gather' || collective === 'Scatter';
  return nHosts > 1 ? (isPairs ? 'hostsPairs' : 'hosts') : isPairs ? 'oneHostPairs' : 'oneHost';
}
