import type { Builder, Lane, Word } from './builder.js';
import type { BitOperator, ElementType } from './element-types.js';
import type { Instruction } from './instructions.js';

const bitwise = {
  band: ['and.b32', 'and.b64'],
  bor: ['or.b32', 'or.b64'],
  bxor: ['xor.b32', 'xor.b64'],
} as const satisfies Record<BitOperator, readonly [Instruction, Instruction]>;

/** Combines bits of elements of any size. */
export function combineBits(ptx: Builder, operator: BitOperator, a: Lane, b: Lane): Lane {
  const [ofWords, ofDoubles] = bitwise[operator];
  if (a.kind === 'b64' && b.kind === 'b64') return ptx.make(ofDoubles, a, b);
  if (a.kind === 'b32' && b.kind === 'b32') return ptx.make(ofWords, a, b);
  throw new TypeError('lanes of two sizes');
}

/** Bits of an element whose value decides whether it is true: all but a float's sign. And its number 1. */
const layouts: Readonly<Record<ElementType, { bits: number; magnitude: number; one: number }>> = {
  int8: { bits: 8, magnitude: 8, one: 1 },
  uint8: { bits: 8, magnitude: 8, one: 1 },
  int32: { bits: 32, magnitude: 32, one: 1 },
  uint32: { bits: 32, magnitude: 32, one: 1 },
  int64: { bits: 64, magnitude: 64, one: 1 },
  uint64: { bits: 64, magnitude: 64, one: 1 },
  float16: { bits: 16, magnitude: 15, one: 0x3c00 },
  float32: { bits: 32, magnitude: 31, one: 0x3f800000 },
  float64: { bits: 64, magnitude: 63, one: 0x3ff0000000000000 },
  bfloat16: { bits: 16, magnitude: 15, one: 0x3f80 },
  float8e4m3: { bits: 8, magnitude: 7, one: 0x38 },
  float8e5m2: { bits: 8, magnitude: 7, one: 0x3c },
};

/** 1 where both elements, or one of them, are not 0; else 0. NaN is true, and -0 is not: no arithmetic is needed. */
export function combineTruths(ptx: Builder, type: ElementType, operator: 'land' | 'lor', a: Lane, b: Lane): Lane {
  const { bits, magnitude, one } = layouts[type];
  const join = operator === 'land' ? 'band' : 'bor';
  if (a.kind === 'b64' || b.kind === 'b64') {
    if (a.kind !== 'b64' || b.kind !== 'b64') throw new TypeError('lanes of two sizes');
    const truths = [a, b].map((lane) =>
      ptx.make('min.u64', magnitude === 64 ? lane : ptx.make('and.b64', lane, 0x7fffffffffffffffn), 1),
    ) as [Lane, Lane];
    const both = combineBits(ptx, join, ...truths) as typeof a;
    return one === 1 ? both : ptx.make('mul.lo.u64', both, BigInt(one));
  }
  const truthAt = (word: Word, at: number): Word =>
    ptx.make('min.u32', magnitude === 32 ? word : ptx.make('bfe.u32', word, at, magnitude), 1);
  const elements: Word[] = [];
  for (let at = 0; at < 32; at += bits) {
    const truth = combineBits(ptx, join, truthAt(a, at), truthAt(b, at)) as Word;
    elements.push(ptx.make('mul.lo.u32', truth, (one << at) >>> 0));
  }
  return elements.reduce((all, element) => ptx.make('or.b32', all, element));
}
