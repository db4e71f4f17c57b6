import type { ScheduledCollective } from '../../schedule/schedule.js';
import { type SimulateOptions, Simulator } from '../../simulate/simulate.js';
import { tune } from '../../tuning/tune.js';
import { predictCall, type PredictedRow, predictedCollectives } from '../prediction.js';
import type { Side } from './compare.js';

/** Simulated time of a call on two clusters. */
export interface PredictedCost {
  readonly collective: ScheduledCollective;
  readonly bytes: number;
  readonly a: PredictedRow;
  readonly b: PredictedRow;
  /** Time in b by time in a: above 1, b is slower. */
  readonly ratio: number;
}

/** Calls whose times differ in b and a, by collective, then size. @returns undefined for plans without machines */
export function predictedCosts(a: Side, b: Side, sizes: readonly number[]): PredictedCost[] | undefined {
  const [one, other] = [simulatorOfSide(a), simulatorOfSide(b)];
  if (one === undefined || other === undefined) return undefined;
  return predictedCollectives.flatMap((collective) =>
    sizes.flatMap((bytes): PredictedCost[] => {
      const [before] = predictCall(one, collective, bytes, optionsOf(a));
      const [after] = predictCall(other, collective, bytes, optionsOf(b));
      if (before === undefined || after === undefined || before.timeUs === after.timeUs) return [];
      return [{ collective, bytes, a: before, b: after, ratio: after.timeUs / before.timeUs }];
    }),
  );
}

function optionsOf({ simulated: environment }: Side): SimulateOptions {
  return environment === undefined ? {} : { environment };
}

function simulatorOfSide({ plan, systems }: Side): Simulator | undefined {
  if (systems === undefined) return undefined;
  const { parameters } = plan;
  return new Simulator({ merged: plan, machines: systems, parameters }, tune(plan, parameters));
}
