import type { ScheduledCollective } from '../schedule/schedule.js';
import { listPhysics, measuredPhysics, type PhysicsName, withPhysics } from './physics.js';
import type { SimulateOptions, Simulator } from './simulate.js';

/** Part of a call's time that goes to one cause. */
export interface TimeShare {
  readonly what: string;
  /** 0 to 1; all shares of a call add up to 1. */
  readonly part: number;
}

/** Causes by the parameters that stand for them: latencies, or throughputs. */
const CAUSES: readonly { readonly what: string; readonly kind: 'time' | 'rate'; readonly parameters: RegExp }[] = [
  { what: 'launch', kind: 'time', parameters: /^(launchUs|launchCallUs|singleCallUs|nvlsSetupUs|pairsSetupUs|pairsPeerUs)\b/ },
  { what: 'latency of hops within hosts', kind: 'time', parameters: /^(llHopUs|ll128HopUs|simpleHopUs|nvlsHopUs|shmHopUs)\b/ },
  { what: 'latency of the network', kind: 'time', parameters: /^(netHopUs|netLlHopUs|netStepUs|netSendUs)\b/ },
  { what: 'barriers between slices', kind: 'time', parameters: /^(simpleSliceUs|nvlsSliceUs)\b/ },
  { what: 'throughput of thread blocks', kind: 'rate', parameters: /BlockGBps\b|^windowCtaRatio$/ },
  { what: 'bandwidth of NVLinks', kind: 'rate', parameters: /^nvlinkPayload$/ },
  { what: 'bandwidth of PCIe links', kind: 'rate', parameters: /^pci(?:Store)?Payload$/ },
  { what: 'bandwidth of NICs', kind: 'rate', parameters: /^netPayload$/ },
];
const REDUCTION: readonly PhysicsName[] = ['operandCost', 'byteSumCost'];
/** Relative change of parameters. */
const CHANGE = 0.02;
/** Least share that is reported. */
const LEAST_PART = 0.005;

/**
 * Splits the time of a call by cause. Time is proportional to a common factor of all latencies and inverse throughputs. So
 * its derivatives by each of them alone add up to the whole (Euler's theorem on homogeneous functions).
 *
 * @returns the largest part first; empty where there is nothing to simulate
 */
export function timeShares(
  simulator: Simulator,
  collective: ScheduledCollective,
  bytes: number,
  { physics = measuredPhysics, ...options }: SimulateOptions = {},
): TimeShare[] {
  const timeOf = (changes: Partial<Record<PhysicsName, number>>) =>
    simulator.simulate(collective, bytes, { ...options, physics: withPhysics(physics, changes) })?.timeUs ?? 0;
  const whole = timeOf({});
  if (whole === 0) return [];
  const all = listPhysics(physics);
  const partOf = (chosen: typeof all, factor: number) =>
    (timeOf(Object.fromEntries(chosen.map(({ name, value }) => [name, value * factor]))) - whole) / CHANGE / whole;
  const shares = CAUSES.map(({ what, kind, parameters }) => ({
    what,
    part: partOf(
      all.filter(({ name }) => parameters.test(name)),
      kind === 'time' ? 1 + CHANGE : 1 / (1 + CHANGE),
    ),
  }));
  // The cost of further operands is a part of the thread blocks' time.
  const reduction = partOf(
    all.filter(({ name }) => REDUCTION.includes(name)),
    1 + CHANGE,
  );
  const parts = shares.map(({ what, part }) => ({
    what,
    part: Math.max(0, what === 'throughput of thread blocks' ? part - reduction : part),
  }));
  const found = [...parts, { what: 'reduction', part: Math.max(0, reduction) }];
  const sum = found.reduce((total, { part }) => total + part, 0);
  const rest = { what: 'links that no parameter stands for, and the environment', part: Math.max(0, 1 - sum) };
  return [...found, rest]
    .map(({ what, part }) => ({ what, part: part / Math.max(1, sum) }))
    .filter(({ part }) => part >= LEAST_PART)
    .sort((a, b) => b.part - a.part);
}
