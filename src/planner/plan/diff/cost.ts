import { type NcclAlgorithm, type Collective, collectives, type Protocol } from '../../tuning/names.js';
import { chooseWithWindows } from '../../tuning/symmetric/symmetric.js';
import type { Tuning } from '../../tuning/tune.js';
import { formatWay } from '../overview/format.js';

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
export type ChosenWay = ({ readonly algorithm: NcclAlgorithm; readonly protocol: Protocol } | UncommonWay) & {
  readonly timeUs: number;
};

/** A symmetric kernel by its name, or `copy engines`, for buffers in symmetric windows. */
interface UncommonWay {
  readonly kernel: string;
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
  return formatWay(a) === formatWay(b) && isNear;
}

/** The way of a call, and its believed time; null where NCCL has no candidate. */
export function wayOf(tuning: Tuning, collective: Collective, bytes: number): ChosenWay | null {
  const way = chooseWithWindows(tuning, collective, bytes);
  if (way.kind !== 'general') return { kernel: way.kind === 'symmetric' ? way.kernel : 'copy engines', timeUs: way.timeUs };
  const { choice } = way;
  return choice === undefined ? null : { algorithm: choice.algorithm, protocol: choice.protocol, timeUs: choice.timeUs };
}
