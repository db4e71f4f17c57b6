import type { Collective } from '../../tuning/names.js';
import type { PredictOptions } from '../../tuning/predict.js';
import { type CallWay, chooseWithWindows } from '../../tuning/symmetric/symmetric.js';
import type { Tuning } from '../../tuning/tune.js';
import type { PredictedRow } from '../prediction.js';
import type { Windows } from '../../windows.js';

/** Kernels of calls on symmetric windows, by collective and size. */
export interface WindowForecast {
  readonly windows: Windows;
  readonly collectives: readonly { readonly collective: Collective; readonly rows: readonly WindowRow[] }[];
}

/** The way of a call of one size. */
export interface WindowRow {
  readonly bytes: number;
  readonly way: CallWay;
  /** Simulated time; undefined where nothing was simulated. */
  readonly predicted?: PredictedRow;
}

/** The collectives with symmetric kernels. */
const symmetricCollectives = ['AllReduce', 'AllGather', 'ReduceScatter'] as const;

/** True where no general kernel does a call, so that no tuner plugin decides about it. */
function isServedByWindows(tuning: Tuning, collective: string, bytes: number, options: PredictOptions = {}): boolean {
  const known = symmetricCollectives.find((each) => each === collective);
  return known !== undefined && chooseWithWindows(tuning, known, bytes, options).kind !== 'general';
}

/** A collective with the sizes whose calls no general kernel does. */
interface ServedByWindows {
  readonly collective: Collective;
  readonly least: number;
  readonly most: number;
  /** False where general kernels do some sizes between. */
  readonly isWhole: boolean;
}

/** Collectives with such calls; none without windows. */
export function servedByWindows(tuning: Tuning, sizes: readonly number[]): ServedByWindows[] {
  if (tuning.input.symmetric.windows === 'none') return [];
  return symmetricCollectives.flatMap((collective) => {
    const served = sizes.filter((bytes) => isServedByWindows(tuning, collective, bytes));
    const [least, most] = [served[0], served.at(-1)];
    if (least === undefined || most === undefined) return [];
    return [{ collective, least, most, isWhole: served.length > sizes.indexOf(most) - sizes.indexOf(least) }];
  });
}

/** For all collectives that have symmetric kernels. */
export function windowForecast(tuning: Tuning, sizes: readonly number[]): WindowForecast {
  return {
    windows: tuning.input.symmetric.windows,
    collectives: symmetricCollectives.map((collective) => ({
      collective,
      rows: sizes.map((bytes) => ({ bytes, way: chooseWithWindows(tuning, collective, bytes) })),
    })),
  };
}
