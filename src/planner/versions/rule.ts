/**
 * A decision of NCCL that changed from version to version. The code at the decision reads the value for its version
 * ({@link Rules}); it never compares version numbers.
 */
export interface Rule<Value> {
  /** The decision, in a sentence. */
  readonly about: string;
  /** Place of the decision in NCCL's source, at the tag of the version where a step begins. */
  readonly source: string;
  /** Variable that gives the older behaviour with a newer version, if there is one. */
  readonly undo?: string;
  /** False where recorded answers of no release show the decision. */
  readonly isRecorded?: false;
  /** Values by the version from which on they hold, oldest first. The first holds for all older versions, too. */
  readonly steps: readonly Step<Value>[];
}

/** Behaviour from a version on. */
export interface Step<Value> {
  readonly from: string;
  readonly value: Value;
  /** The behaviour in a sentence. */
  readonly means: string;
}

/** The oldest version that is covered: the first step of every rule begins there. */
export const OLDEST_VERSION = '2.18.1';

/** A decision that changed with a version: false before, true since. */
export function since(
  version: string,
  told: {
    readonly about: string;
    readonly before: string;
    readonly now: string;
    readonly source: string;
    readonly undo?: string;
  },
): Rule<boolean> {
  const { about, before, now, source, undo } = told;
  return {
    about,
    source,
    ...(undo === undefined ? {} : { undo }),
    steps: [
      { from: OLDEST_VERSION, value: false, means: before },
      { from: version, value: true, means: now },
    ],
  };
}

/** A figure, or one of several alternatives, by version; the first value holds from the oldest version on. */
export function byVersion<const Value>(
  told: { readonly about: string; readonly source: string; readonly undo?: string },
  steps: Readonly<Record<string, readonly [value: Value, means: string]>>,
): Rule<Value> {
  return { ...told, steps: Object.entries(steps).map(([from, [value, means]]) => ({ from, value, means })) };
}
