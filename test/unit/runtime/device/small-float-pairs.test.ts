import { expect, test } from 'vitest';
import { instantiateKernels } from '../../../../src/runtime/device/kernels/kernels.js';
import {
  bfloat16,
  float16,
  float8e4m3,
  float8e5m2,
  operatorCode,
  reductionOperators,
  type DataType,
  type NamedOperator,
} from '../../../../src/runtime/device/types.js';
import { reduceElements } from './reference.js';

const memory = new WebAssembly.Memory({ shared: true, initial: 64, maximum: 64 });
const kernels = instantiateKernels(memory);
const TABLES = 1024;
const DATA = 65536;
const COUNT = 65536;

/** Combines 65,536 pairs by a kernel, and each by the reference. Returns the pairs that differ. */
function differences(
  type: DataType,
  operator: NamedOperator,
  left: (i: number) => number,
  right: (i: number) => number,
): object[] {
  const arrayAt = (place: number) =>
    new type.array(memory.buffer, DATA + place * COUNT * type.bytes, COUNT) as Uint8Array | Uint16Array;
  const [a, b, out] = [arrayAt(0), arrayAt(1), arrayAt(2)];
  for (let i = 0; i < COUNT; i++) {
    a[i] = left(i);
    b[i] = right(i);
  }
  new Uint32Array(memory.buffer, TABLES, 4).set([a.byteOffset, b.byteOffset, out.byteOffset]);
  kernels.reduceCopy(type.code, operatorCode(operator), TABLES, 2, TABLES + 8, 1, 0, COUNT * type.bytes);
  const wrong: object[] = [];
  for (let i = 0; i < COUNT && wrong.length < 5; i++) {
    const expected = reduceElements(type, operator, [a[i]!, b[i]!]);
    if (out[i] !== expected) wrong.push({ a: a[i], b: b[i], is: out[i], expected });
  }
  return wrong;
}

test.each([float8e4m3, float8e5m2])('all pairs of $name are combined as by the reference', (type) => {
  for (const operator of reductionOperators)
    expect(
      differences(
        type,
        operator,
        (i) => i >> 8,
        (i) => i & 255,
      ),
    ).toEqual([]);
});

const seed = 12345;

test.each([float16, bfloat16])(`every $name is combined with others as by the reference (seed ${seed})`, (type) => {
  let state = seed;
  const any = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) >>> 16;
  /** Numbers of similar size, of which either sign's sums lose bits. */
  const near = (i: number) => (i & 0x7fff & ~0xf) ^ (any() & 0x83ff);
  /** No infinities or NaNs, nor what could become one: these have a way of their own. */
  const moderate = () => any() & 0xf7ff;
  for (const operator of reductionOperators) {
    expect(differences(type, operator, (i) => i, any)).toEqual([]);
    if (operator === 'sum' || operator === 'prod') expect(differences(type, operator, (i) => i, near)).toEqual([]);
    expect(differences(type, operator, (i) => i & 0xf7ff, moderate)).toEqual([]);
  }
});
