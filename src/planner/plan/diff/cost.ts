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

/** Rows whose choice differs, or time by more than rounding, by collective, then size; AllReduce first. */
export function costs(a: Tuning, b: Tuning, sizes: readonly number[]): Cost[] {
  return [...collectives].reverse().flatMap((collective) =>
    sizes.flatMap((bytes): Cost[] => {
      const [one, other] = [wayOf(a, collective, bytes), wayOf(b, collective, bytes)];
      if (isSame(one, other)) return [];
      const ratio = one === null || other === null || one.timeUs === 0 ? null : other.timeUs / one.timeUs;
      return [{ collective, bytes, a: one, b: other, ratio }];
    }),
  );
}

/** Versions of NCCL round times differently in the last bits of a C float. */
const ROUNDING = 1e-6;

function isSame(a: ChosenWay | null, b: ChosenWay | null): boolean {
  if (a === null || b === null) return a === b;
  const isNear = Math.abs(b.timeUs - a.timeUs) <= ROUNDING * a.timeUs;
  return a.algorithm === b.algorithm && a.protocol === b.protocol && isNear;
}

function wayOf(tuning: Tuning, collective: Collective, bytes: number): ChosenWay | null {
  const choice = choose(tuning, collective, bytes);
  return choice === undefined ? null : { algorithm: choice.algorithm, protocol: choice.protocol, timeUs: choice.timeUs };
}
