import type { ScheduledCollective } from '../../schedule/schedule.js';
import { Simulator } from '../../simulate/simulate.js';
import { tune } from '../../tuning/tune.js';
import { predictedCollectives } from '../predicted-calls.js';
import { predictCall, type PredictedRow } from '../prediction.js';
import type { Side } from './compare.js';

/** A call that is simulated on both sides. */
export interface PredictedCall {
  readonly collective: ScheduledCollective;
  readonly bytes: number;
}

/** Simulated time of a call on two clusters. */
export interface PredictedCost extends PredictedCall {
  readonly a: PredictedRow;
  readonly b: PredictedRow;
  /** Time in b by time in a: above 1, b is slower. */
  readonly ratio: number;
}

/** Smallest relative difference of times that counts. */
const LEAST_CHANGE = 0.005;

/** Calls whose times differ in b and a, by collective, then size. @returns undefined for plans without machines */
export function predictedCosts(
  a: Side,
  b: Side,
  sizes: readonly number[],
  collectives: readonly ScheduledCollective[] = predictedCollectives,
): PredictedCost[] | undefined {
  const calls = collectives.flatMap((collective) => sizes.map((bytes) => ({ collective, bytes })));
  const [before, after] = [predictSide(a, calls), predictSide(b, calls)];
  return before === undefined || after === undefined ? undefined : changedCalls(calls, before, after);
}

/** Predictions for calls on one side. @returns undefined for a plan without machines */
export function predictSide(
  { plan, systems, simulated: environment }: Side,
  calls: readonly PredictedCall[],
): (PredictedRow | undefined)[] | undefined {
  if (systems === undefined) return undefined;
  const { parameters } = plan;
  const simulator = new Simulator({ merged: plan, machines: systems, parameters }, tune(plan, parameters));
  const options = { onWindows: true, ...(environment === undefined ? {} : { environment }) };
  return calls.map(({ collective, bytes }) => predictCall(simulator, collective, bytes, options)[0]);
}

/** Calls whose predictions differ. @param before and after, a prediction for each call */
export function changedCalls(
  calls: readonly PredictedCall[],
  before: readonly (PredictedRow | undefined)[],
  after: readonly (PredictedRow | undefined)[],
): PredictedCost[] {
  return calls.flatMap(({ collective, bytes }, index) => {
    const [a, b] = [before[index], after[index]];
    if (a === undefined || b === undefined) return [];
    const ratio = b.timeUs / a.timeUs;
    return Math.abs(ratio - 1) < LEAST_CHANGE ? [] : [{ collective, bytes, a, b, ratio }];
  });
}
