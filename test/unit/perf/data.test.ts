import { describe, expect, it } from 'vitest';
import { countWrong, TestData } from '../../../src/perf/data.js';
import { type PerfOperator, perfOperators, scalarOf } from '../../../src/perf/types.js';
import { type ElementType, elementTypes } from '../../../src/perf/types.js';
import { runs } from '../../runs.js';

const make = (type: ElementType, length: number) => new type.array(new ArrayBuffer(length * type.bytes), 0, length);
const cases = elementTypes.flatMap((type) =>
  perfOperators.flatMap((operator) =>
    [1, 2, 3, 7, 64]
      .filter((nRanks) => nRanks <= 2 ** (type.exactBits - (operator === 'mulsum' ? 1 : 0)))
      .map((nRanks) => ({ type, operator, nRanks })),
  ),
);
const label = ({ type, operator, nRanks }: (typeof cases)[number]) => `${operator} of ${nRanks} × ${type.name}`;

/** Combines one rank after the other in the given order, rounding to the type each time. */
function combine(
  type: ElementType,
  operator: PerfOperator,
  sources: readonly ReturnType<typeof make>[],
): ReturnType<typeof make> {
  const length = sources[0]!.length;
  const result = make(type, length);
  const numbers = Float64Array.from(type.load(sources[0]!));
  type.store(result, numbers);
  for (const source of sources.slice(1)) {
    const [before, terms] = [type.load(result), type.load(source)];
    for (let i = 0; i < length; i++) {
      const [a, b] = [before[i]!, terms[i]!];
      numbers[i] =
        operator === 'prod' ? a * b : operator === 'min' ? Math.min(a, b) : operator === 'max' ? Math.max(a, b) : a + b;
    }
    type.store(result, numbers);
  }
  if (operator === 'avg') divide(type, result, sources.length);
  return result;
}

function divide(type: ElementType, result: ReturnType<typeof make>, by: number): void {
  type.store(
    result,
    Float64Array.from(type.load(result), (sum) => (type.isFloat ? sum / by : Math.trunc(sum / by))),
  );
}

/** Inputs of the ranks before they are combined: of a mulsum, multiplied. */
function sourcesOf(data: TestData, length: number) {
  return Array.from({ length: data.nRanks }, (_, rank) => {
    const source = make(data.type, length);
    data.fill(source, rank, 0);
    if (data.operator === 'mulsum')
      data.type.store(
        source,
        Float64Array.from(data.type.load(source), (value) => value * scalarOf(rank)),
      );
    return source;
  });
}

describe('test data', () => {
  it.each(cases.map((one) => [label(one), one] as const))(
    '%s is exact, whatever the order of ranks',
    (_, { type, operator, nRanks }) => {
      const data = new TestData(type, operator, nRanks, 5);
      const count = runs(1000, 3000);
      const sources = sourcesOf(data, count);
      const segments = [{ at: 0, count, from: 'all' as const, first: 0 }];
      expect(countWrong(combine(type, operator, sources), segments, data)).toBe(0);
      expect(countWrong(combine(type, operator, sources.reverse()), segments, data)).toBe(0);
    },
  );

  it.each(
    cases
      .filter(({ nRanks, operator }) => nRanks > 1 && operator !== 'min' && operator !== 'max')
      .map((one) => [label(one), one] as const),
  )('%s shows every element that lacks a rank', (_, { type, operator, nRanks }) => {
    const data = new TestData(type, operator, nRanks, 1);
    const count = runs(700, 2000);
    const sources = sourcesOf(data, count);
    const without = combine(type, operator === 'avg' ? 'sum' : operator, sources.slice(1));
    if (operator === 'avg') divide(type, without, nRanks);
    expect(countWrong(without, [{ at: 0, count, from: 'all', first: 0 }], data)).toBe(count);
  });

  it('differs between ranks, rounds and places', () => {
    const [float] = elementTypes.filter((type) => type.name === 'float');
    const fill = (rank: number, round: number, first: number) => {
      const source = new Float32Array(1000);
      new TestData(float!, 'sum', 4, round).fill(source, rank, first);
      return source;
    };
    const same = (a: ArrayLike<number>, b: ArrayLike<number>) => Array.from(a).filter((value, i) => value === b[i]).length;
    expect(same(fill(0, 0, 0), fill(0, 0, 0))).toBe(1000);
    expect(same(fill(0, 0, 0), fill(1, 0, 0))).toBeLessThan(5);
    expect(same(fill(0, 0, 0), fill(0, 1, 0))).toBeLessThan(5);
    expect(same(fill(0, 0, 0), fill(0, 0, 64))).toBeLessThan(5);
    expect(Array.from(fill(2, 3, 500))).toEqual(
      Array.from(fill(2, 3, 0))
        .slice(500)
        .concat(Array.from(fill(2, 3, 1000)).slice(0, 500)),
    );
  });

  it('counts each wrong element of each segment once, NaN too', () => {
    const [float] = elementTypes.filter((type) => type.name === 'float');
    const data = new TestData(float!, undefined, 2, 0);
    const result = new Float32Array(5000);
    data.fill(result.subarray(0, 2500), 0, 0);
    data.fill(result.subarray(2500), 1, 100);
    const segments = [
      { at: 0, count: 2500, from: 0, first: 0 },
      { at: 2500, count: 2500, from: 1, first: 100 },
    ];
    expect(countWrong(result, segments, data)).toBe(0);
    for (const place of [0, 2499, 2500, 4999]) result[place] = NaN;
    expect(countWrong(result, segments, data)).toBe(4);
    expect(countWrong(result, [segments[1]!], data)).toBe(2);
  });
});
