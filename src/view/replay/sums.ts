import type { ComparedCall, Replay } from '../../planner/replay/replay.js';

/** Times of the calls that have a prediction, from their last rank's start on, µs. */
export function communicationOf({ calls }: Pick<Replay, 'calls'>): {
  readonly measuredUs: number;
  readonly predictedUs: number;
  readonly count: number;
} {
  const both = calls.filter(({ measured, predicted }) => predicted !== undefined && measured.transferUs !== undefined);
  return {
    measuredUs: both.reduce((sum, { measured }) => sum + (measured.transferUs ?? 0), 0),
    predictedUs: both.reduce((sum, { predicted }) => sum + (predicted?.timeUs ?? 0), 0),
    count: both.length,
  };
}

/** Calls that are alike in operation, size and number of ranks, with their mean times. */
export interface CallKind {
  readonly first: ComparedCall;
  readonly count: number;
  /** Undefined where no call of them has one, µs. */
  readonly measuredUs: number | undefined;
  readonly predictedUs: number | undefined;
  readonly replayedUs: number | undefined;
}

/** Calls by kind, those that take most time first; or one by one in their order. */
export function callKinds({ calls }: Pick<Replay, 'calls'>, isEach: boolean): CallKind[] {
  const kinds = new Map<string, ComparedCall[]>();
  for (const each of calls) {
    const { index, operation, bytes, size } = each.measured.call;
    const key = isEach ? String(index) : `${operation} ${bytes} ${size} ${each.predicted?.timeUs ?? ''}`;
    const known = kinds.get(key);
    if (known === undefined) kinds.set(key, [each]);
    else known.push(each);
  }
  const made = [...kinds.values()].flatMap((all): CallKind[] => {
    const [first] = all;
    if (first === undefined) return [];
    return [
      {
        first,
        count: all.length,
        measuredUs: meanOf(all.map(({ measured }) => measured.transferUs)),
        predictedUs: first.predicted?.timeUs,
        replayedUs: meanOf(all.map(({ replayed }) => (replayed === undefined ? undefined : replayed.endUs - replayed.beginUs))),
      },
    ];
  });
  const whole = ({ count, measuredUs, replayedUs = 0 }: CallKind) => count * (measuredUs ?? replayedUs);
  return isEach ? made : made.sort((a, b) => whole(b) - whole(a));
}

function meanOf(times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : known.reduce((sum, time) => sum + time, 0) / known.length;
}

/** `+3.4 %`. */
export function signedPercent(value: number, of: number): string {
  const percent = of === 0 ? 0 : 100 * (value / of - 1);
  return `${percent < 0 ? '' : '+'}${percent.toFixed(1)} %`;
}
