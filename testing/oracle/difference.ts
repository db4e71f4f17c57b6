import { isRecord } from './oracle-case.js';

/** The first place where two values differ. */
export interface Difference {
  /** Path, as in `nodeTypes[0].system.GPU[2].links[1].bw`. */
  readonly path: string;
  readonly expected: unknown;
  readonly actual: unknown;
}

/**
 * Compares a value of the planner with NCCL's, depth first in the order of `expected`. Numbers are C floats, equal if they
 * round to the same one. Keys that only `actual` has are ignored.
 */
export function firstDifference(expected: unknown, actual: unknown, path = ''): Difference | undefined {
  if (typeof expected === 'number' && typeof actual === 'number') {
    return Object.is(Math.fround(expected), Math.fround(actual)) ? undefined : { path, expected, actual };
  }
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual)) return { path, expected, actual };
    for (let index = 0; index < Math.min(expected.length, actual.length); index++) {
      const difference = firstDifference(expected[index], actual[index], `${path}[${index}]`);
      if (difference !== undefined) return difference;
    }
    return expected.length === actual.length
      ? undefined
      : { path: `${path}.length`, expected: expected.length, actual: actual.length };
  }
  if (isRecord(expected)) {
    if (!isRecord(actual)) return { path, expected, actual };
    for (const [key, value] of Object.entries(expected)) {
      const difference = firstDifference(value, actual[key], path === '' ? key : `${path}.${key}`);
      if (difference !== undefined) return difference;
    }
    return undefined;
  }
  return expected === actual ? undefined : { path, expected, actual };
}

/** `GPU[2].bw: NCCL 20.6, here 20`. */
export function describeDifference({ path, expected, actual }: Difference): string {
  const show = (value: unknown) => {
    const text = value === undefined ? 'nothing' : JSON.stringify(value);
    return text.length > 120 ? `${text.slice(0, 117)}...` : text;
  };
  return `${path}: NCCL ${show(expected)}, here ${show(actual)}`;
}
