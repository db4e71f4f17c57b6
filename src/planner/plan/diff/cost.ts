import { choose } from '../../tuning/choose.js';
import { type NcclAlgorithm, type Collective, collectives, type Protocol } from '../../tuning/names.js';
import type { Tuning } from '../../tuning/tune.js';

/** Time of a call in two plans. */
export interface Cost {
  readonly collective: Collective;
  readonly bytes: number;
  /** Null where NCCL has no candidate. */
  readonly a: ChosenWay | null;
  readonly b: ChosenWay | null;
  /** Time in b by time in a: above 1, b is slower. Null where there is no time in one. */
  readonly ratio: number | null;
}

/** NCCL's choice for a call, and its believed time, µs. */
export interface ChosenWay {
  readonly algorithm: NcclAlgorithm;
  readonly protocol: Protocol;
  readonly timeUs: number;
}

/** Rows whose choice or time differs, by collective, then size; AllReduce first. */
export function costs(a: Tuning, b: Tuning, sizes: readonly number[]): Cost[] {
  return [...collectives].reverse().flatMap((collective) =>
    sizes.flatMap((bytes): Cost[] => {
      const [one, other] = [wayOf(a, collective, bytes), wayOf(b, collective, bytes)];
      if (JSON.stringify(one) === JSON.stringify(other)) return [];
      const ratio = one === null || other === null || one.timeUs === 0 ? null : other.timeUs / one.timeUs;
      return [{ collective, bytes, a: one, b: other, ratio }];
    }),
  );
}

function wayOf(tuning: Tuning, collective: Collective, bytes: number): ChosenWay | null {
  const choice = choose(tuning, collective, bytes);
  return choice === undefined ? null : { algorithm: choice.algorithm, protocol: choice.protocol, timeUs: choice.timeUs };
}
