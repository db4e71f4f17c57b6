import { predictCall } from '../../plan/prediction.js';
import { collectivesOfTests, type ScheduledCollective } from '../../schedule/schedule.js';
import type { Environment } from '../../simulate/environment.js';
import type { Simulator } from '../../simulate/simulate.js';

/** A bus bandwidth that a healthy cluster reaches. */
export interface Threshold {
  readonly collective: ScheduledCollective;
  /** Program of nccl-tests without `_perf`: `all_reduce`. */
  readonly test: string;
  readonly bytes: number;
  /** Bus bandwidths, GB/s. */
  readonly expectedGBps: number;
  readonly leastGBps: number;
  /** True if predictions of such calls were compared with measurements; otherwise the threshold is an estimate. */
  readonly isMeasured: boolean;
}

/** Share of healthy clusters that reach a threshold: the interval of the prediction leaves out one in ten at either end. */
export const SURE = 0.9;

/** Default sizes in bytes: what common health checks measure, and one of gradients. */
export const gateSizes: readonly number[] = [2 ** 26, 2 ** 30, 2 ** 33, 2 ** 34];
/** Default collectives. */
export const gateCollectives: readonly ScheduledCollective[] = [
  'AllReduce',
  'AllGather',
  'ReduceScatter',
  'AllToAll',
  'SendRecv',
];

/** The calls that thresholds are computed for. */
export interface GateCalls {
  readonly collectives: readonly ScheduledCollective[];
  /** Bytes, as nccl-tests counts them. */
  readonly sizes: readonly number[];
}

/** Least bus bandwidth of each collective and size: by the slow end of the prediction's interval. */
export function thresholdsOf(simulator: Simulator, { collectives, sizes }: GateCalls, environment?: Environment): Threshold[] {
  return collectives.flatMap((collective) =>
    sizes.flatMap((bytes) =>
      predictCall(simulator, collective, bytes, environment === undefined ? {} : { environment }).map(
        ({ timeUs, mostUs, busGBps, unmeasured }): Threshold => ({
          collective,
          test: testOf(collective),
          bytes,
          expectedGBps: busGBps,
          leastGBps: (busGBps * timeUs) / mostUs,
          isMeasured: unmeasured === undefined,
        }),
      ),
    ),
  );
}

/** Program of nccl-tests for a collective, without `_perf`. */
export function testOf(collective: ScheduledCollective): string {
  return Object.entries(collectivesOfTests).find(([, each]) => each === collective)?.[0] ?? collective;
}
