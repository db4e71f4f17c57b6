import type { Collective } from '../../tuning/names.js';
import { type CallWay, chooseWithWindows } from '../../tuning/symmetric/symmetric.js';
import type { Tuning } from '../../tuning/tune.js';
import type { Windows } from '../../windows.js';

/** Kernels of calls on symmetric windows, by collective and size. */
export interface WindowForecast {
  readonly windows: Windows;
  readonly collectives: readonly {
    readonly collective: Collective;
    readonly rows: readonly { readonly bytes: number; readonly way: CallWay }[];
  }[];
}

/** The collectives with symmetric kernels. */
const symmetricCollectives = ['AllReduce', 'AllGather', 'ReduceScatter'] as const;

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
