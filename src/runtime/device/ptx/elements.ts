import type { Builder, Double, Lane, Operand, Register, Word } from './builder.js';
import { combineBits, combineTruths } from './bits.js';
import { elementBytes, isBitwise, isNarrow, type Arithmetical, type Combination, type ElementType } from './element-types.js';
import type { Instruction } from './instructions.js';
import { round, widen, type NarrowFormat } from './narrow.js';

/**
 * Combines the elements of two registers, with the bits of the runtime's other kernels (docs/reference/types.md): a narrow
 * format is rounded after each combination, and minima and maxima keep NaN.
 */
export function combine(ptx: Builder, type: ElementType, combination: Combination, a: Lane, b: Lane): Lane {
  if (isBitwise(combination)) return combineBits(ptx, combination, a, b);
  if (combination === 'land' || combination === 'lor') return combineTruths(ptx, type, combination, a, b);
  if (isDouble(a) && isDouble(b)) {
    const combined = ptx.make(doubles[combination][type as keyof typeof doubles.sum], a, b);
    const keepsNan = type !== 'float64' || combination === 'sum' || combination === 'prod';
    // No instruction keeps NaN in a minimum of float64.
    return keepsNan ? combined : ptx.make('selp.b64', nanFloat64, combined, ptx.make('setp.nan.f64', a, b));
  }
  if (isDouble(a) || isDouble(b)) throw new TypeError('lanes of two sizes');
  if (type === 'float32') return combineFloats(ptx, combination, a, b);
  if (isNarrow(type)) return combineNarrow(ptx, type, combination, a, b);
  if (type === 'int8' || type === 'uint8') return combineBytes(ptx, type, combination, a, b);
  return ptx.make(words[combination][type as keyof typeof words.sum], a, b);
}

const isDouble = (lane: Lane): lane is Double => lane.kind === 'b64';

const words = {
  sum: { int32: 'add.u32', uint32: 'add.u32' },
  prod: { int32: 'mul.lo.u32', uint32: 'mul.lo.u32' },
  min: { int32: 'min.s32', uint32: 'min.u32' },
  max: { int32: 'max.s32', uint32: 'max.u32' },
} as const satisfies Record<Arithmetical, Record<string, Instruction>>;

const doubles = {
  sum: { int64: 'add.u64', uint64: 'add.u64', float64: 'add.rn.f64' },
  prod: { int64: 'mul.lo.u64', uint64: 'mul.lo.u64', float64: 'mul.rn.f64' },
  min: { int64: 'min.s64', uint64: 'min.u64', float64: 'min.f64' },
  max: { int64: 'max.s64', uint64: 'max.u64', float64: 'max.f64' },
} as const satisfies Record<Arithmetical, Record<string, Instruction>>;

/** PTX's own minimum of float32 returns the other operand for a NaN, unless it is one of `min.NaN`, which came with Ampere. */
function combineFloats(ptx: Builder, combination: Arithmetical, a: Word, b: Word): Word {
  if (combination === 'sum') return ptx.make('add.rn.f32', a, b);
  if (combination === 'prod') return ptx.make('mul.rn.f32', a, b);
  if (ptx.level >= 80) return ptx.make(combination === 'min' ? 'min.NaN.f32' : 'max.NaN.f32', a, b);
  const number = ptx.make(combination === 'min' ? 'min.f32' : 'max.f32', a, b);
  return ptx.make('selp.b32', NAN_FLOAT32, number, ptx.make('setp.nan.f32', a, b));
}

const NAN_FLOAT32 = 0x7fffffff;
const nanFloat64 = 0x7ff8000000000000n;
/** Two ones in bfloat16. */
const ONES_BFLOAT16 = 0x3f803f80;

function combineNarrow(ptx: Builder, type: NarrowFormat, combination: Arithmetical, a: Word, b: Word): Word {
  // float32 has more than twice the digits of these formats. So one instruction for two elements has the same bits, except
  // for products of bfloat16 near 0: float32 has no more exponents than it, and rounds them first.
  if (type === 'float16' && combination === 'sum') return ptx.make('add.rn.f16x2', a, b);
  if (type === 'float16' && combination === 'prod') return ptx.make('mul.rn.f16x2', a, b);
  if (ptx.level >= 80 && type === 'bfloat16' && combination === 'sum')
    return ptx.make('fma.rn.bf16x2', a, ptx.make('mov.b32', ONES_BFLOAT16), b);
  if (ptx.level >= 80 && combination !== 'sum' && combination !== 'prod') {
    if (type === 'float16') return ptx.make(`${combination}.NaN.f16x2`, a, b);
    if (type === 'bfloat16') return ptx.make(`${combination}.NaN.bf16x2`, a, b);
  }
  const others = widen(ptx, type, b);
  return round(
    ptx,
    type,
    widen(ptx, type, a).map((value, i) => combineFloats(ptx, combination, value, others[i] ?? value)),
  );
}

function combineBytes(ptx: Builder, type: 'int8' | 'uint8', combination: Arithmetical, a: Word, b: Word): Word {
  if (combination !== 'sum') {
    const extreme = words[combination][type === 'int8' ? 'int32' : 'uint32'];
    return eachByte(ptx, type, a, (value, at) => ptx.make(extreme, value, ptx.make(extractions[type], b, at, 8)));
  }
  // The upper bit of each byte apart: it must not carry into the next.
  const low = ptx.make('add.u32', ptx.make('and.b32', a, 0x7f7f7f7f), ptx.make('and.b32', b, 0x7f7f7f7f));
  return ptx.make('xor.b32', low, ptx.make('and.b32', ptx.make('xor.b32', a, b), 0x80808080));
}

const extractions = { int8: 'bfe.s32', uint8: 'bfe.u32' } as const;

/** Replaces each byte of a word. */
function eachByte(ptx: Builder, type: 'int8' | 'uint8', word: Word, change: (value: Word, at: number) => Word): Word {
  const changed = [0, 8, 16, 24].map((at) => change(ptx.make(extractions[type], word, at, 8), at));
  return changed.reduce((result, byte, i) => (i === 0 ? byte : ptx.make('bfi.b32', byte, result, 8 * i, 8)));
}

/** A number of ranks in the form that `divide` takes, made before the loops that divide. */
export function makeDivisor(ptx: Builder, type: ElementType, count: Word): Lane {
  if (type === 'float64') return ptx.make('cvt.rn.f64.u32', count);
  if (type === 'float32' || isNarrow(type)) return ptx.make('cvt.rn.f32.u32', count);
  return elementBytes[type] === 8 ? ptx.make('cvt.u64.u32', count) : count;
}

/** Divides the elements of a register: integers toward zero. */
export function divide(ptx: Builder, type: ElementType, lane: Lane, divisor: Lane): Lane {
  if (isDouble(lane) && isDouble(divisor)) {
    const instruction = type === 'float64' ? 'div.rn.f64' : type === 'int64' ? 'div.s64' : 'div.u64';
    return ptx.make(instruction, lane, divisor);
  }
  if (isDouble(lane) || isDouble(divisor)) throw new TypeError('a divisor of another size');
  if (isNarrow(type)) return round(ptx, type, divideFloats(ptx, widen(ptx, type, lane), divisor));
  if (type === 'float32') return ptx.make('div.rn.f32', lane, divisor);
  if (type === 'uint32' || type === 'int32') return ptx.make(type === 'int32' ? 'div.s32' : 'div.u32', lane, divisor);
  const bytes = type === 'int8' ? 'int8' : 'uint8';
  return eachByte(ptx, bytes, lane, (value) => ptx.make(bytes === 'int8' ? 'div.s32' : 'div.u32', value, divisor));
}

export function divideFloats(ptx: Builder, values: readonly Word[], divisor: Word): Word[] {
  return values.map((value) => ptx.make('div.rn.f32', value, divisor));
}

/** Moves a value of the same kind into a register. */
export function assign(ptx: Builder, register: Lane, value: Lane): void {
  if (isDouble(register)) ptx.into(register, 'mov.b64', value as Operand<'b64'>);
  else ptx.into(register, 'mov.b32', value as Register<'b32'>);
}
