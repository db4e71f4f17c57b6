import type { Parameters } from '../parameters.js';
import type { PairMessage } from '../schedule/pairs.js';
import type { ScheduledCollective } from '../schedule/schedule.js';
import type { Environment } from '../simulate/environment.js';
import { type MessagesOptions, type SimulateOptions, Simulator } from '../simulate/simulate.js';
import { busFactor, type Choice } from '../tuning/choose.js';
import { type Tuning, tune } from '../tuning/tune.js';
import { machinesOf, type PreparedHosts } from './cluster.js';
import { type Plan, planPrepared } from './plan.js';
import { predictedCollectives } from './predicted-calls.js';

/**
 * A simulator of a cluster's calls.
 *
 *     const prepared = prepareCluster({ hosts: [{ machine: machine('dgx-h100'), count: 2 }] }, defaultParameters);
 *     simulatorOf(prepared, defaultParameters).simulate('AllToAll', 64 << 20)       // { timeUs, … }
 *
 * @param made the plan of the same hosts, and its tuning, if already computed
 */
export function simulatorOf(
  prepared: readonly PreparedHosts[],
  parameters: Parameters,
  made: Plan = planPrepared(prepared, parameters),
  tuning: Tuning = tune(made, parameters),
): Simulator {
  return new Simulator({ merged: made, machines: machinesOf(prepared), parameters }, tuning);
}

/** Simulated time of a call, beside NCCL's belief. */
export interface PredictedRow {
  readonly bytes: number;
  /** Undefined for messages between pairs, for which NCCL has no model, and on windows. */
  readonly choice: Choice | undefined;
  /** A symmetric kernel by its name, or `copy engines`, for buffers in symmetric windows. */
  readonly kernel?: string;
  readonly timeUs: number;
  /** Bounds between which eight of ten measurements of machines outside the fit lay. */
  readonly leastUs: number;
  readonly mostUs: number;
  /** Properties of the call and the cluster that no measurement had, for which the bounds are wider. */
  readonly unmeasured?: readonly string[];
  /** The upper bound if all of it had been measured; only with `unmeasured`. */
  readonly usualMostUs?: number;
  /** Bus bandwidth as nccl-tests counts it, GB/s. */
  readonly busGBps: number;
}

/** A collective's predicted times, a row for each size. */
export interface PredictedCollective {
  readonly collective: ScheduledCollective;
  readonly rows: readonly PredictedRow[];
}

/** Predictions for frequently measured collectives. @param sizes as nccl-tests counts them */
export function predictCollectives(
  simulator: Simulator,
  sizes: readonly number[],
  environment?: Environment,
): PredictedCollective[] {
  return predictedCollectives.map((collective) => ({
    collective,
    rows: sizes.flatMap((bytes) => predictCall(simulator, collective, bytes, environment === undefined ? {} : { environment })),
  }));
}

/** The prediction for one call; none for one rank, and where NCCL has no candidate. */
export function predictCall(
  simulator: Simulator,
  collective: ScheduledCollective,
  bytes: number,
  options: SimulateOptions = {},
): PredictedRow[] {
  const simulated = simulator.simulate(collective, bytes, options);
  if (simulated === undefined) return [];
  const { timeUs, choice, kernel } = simulated;
  const { least, most, usual, unmeasured } = simulator.interval(collective, bytes, options.environment, kernel !== undefined);
  const busGBps = (bytes / timeUs / 1000) * scheduledBusFactor(collective, simulator.nRanks);
  return [
    {
      ...{ bytes, choice, timeUs, leastUs: timeUs * least, mostUs: timeUs * most, busGBps },
      ...(kernel === undefined ? {} : { kernel }),
      ...(unmeasured.length === 0 ? {} : { unmeasured, usualMostUs: timeUs * usual.most }),
    },
  ];
}

/**
 * The prediction for messages between ranks that one kernel of each rank carries; none where no rank sends to another. Its size
 * is that of all messages of the rank that sends or receives most, its bandwidth that of this rank.
 *
 * @throws RangeError for a rank that the cluster lacks
 */
export function predictMessages(
  simulator: Simulator,
  messages: readonly PairMessage[],
  options: Pick<MessagesOptions, 'environment'> = {},
): PredictedRow[] {
  const simulated = simulator.simulateMessages(messages, options);
  if (simulated === undefined) return [];
  const { timeUs, choice } = simulated;
  const bytes = busiestBytes(messages);
  const { least, most, usual, unmeasured } = simulator.interval('AllToAll', bytes, options.environment);
  return [
    {
      ...{ bytes, choice, timeUs, leastUs: timeUs * least, mostUs: timeUs * most, busGBps: bytes / timeUs / 1000 },
      ...(unmeasured.length === 0 ? {} : { unmeasured, usualMostUs: timeUs * usual.most }),
    },
  ];
}

/** Bytes that the busiest rank sends or receives. */
export function busiestBytes(messages: readonly PairMessage[]): number {
  const sums = new Map<number, number>();
  for (const { from, to, bytes } of messages)
    for (const key of [2 * from, 2 * to + 1]) sums.set(key, (sums.get(key) ?? 0) + bytes);
  return [...sums.values()].reduce((most, sum) => Math.max(most, sum), 0);
}

/** Bus bandwidth by algorithm bandwidth, as nccl-tests counts it. */
export function scheduledBusFactor(collective: ScheduledCollective, nRanks: number): number {
  switch (collective) {
    case 'AllToAll':
    case 'Gather':
    case 'Scatter':
      return (nRanks - 1) / nRanks;
    case 'SendRecv':
      return 1;
    default:
      return busFactor(collective, nRanks);
  }
}
