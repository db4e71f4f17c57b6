import type { Builder, Register, Word } from './builder.js';
import type { Level } from './targets.js';

/** Floating-point formats with several elements in a word. */
export type NarrowFormat = 'float16' | 'bfloat16' | 'float8e4m3' | 'float8e5m2';

/** True if the architecture converts a format, or a few instructions do. Those of float8 would take dozens before Ada. */
export function hasFormat(format: NarrowFormat, level: Level): boolean {
  return level >= 89 || format === 'float16' || format === 'bfloat16';
}

/** The elements of a word as float32, which are exact, the lowest first. */
export function widen(ptx: Builder, format: NarrowFormat, word: Word): Word[] {
  if (format === 'bfloat16') return [ptx.make('shl.b32', word, 16), ptx.make('and.b32', word, 0xffff0000)];
  const halves = ptx.split(word);
  if (format === 'float16') return halves.map((half) => ptx.make('cvt.f32.f16', half));
  const decode = format === 'float8e4m3' ? 'cvt.rn.f16x2.e4m3x2' : 'cvt.rn.f16x2.e5m2x2';
  return halves.flatMap((half) => widen(ptx, 'float16', ptx.make(decode, half)));
}

/**
 * A word of elements that are the nearest to float32 values, ties to even: as src/runtime/device/formats.ts has it, with one
 * NaN, and with the largest numbers in place of infinity in float8.
 */
export function round(ptx: Builder, format: NarrowFormat, values: readonly Word[]): Word {
  if (values.length === 4) {
    const encode = format === 'float8e4m3' ? 'cvt.rn.satfinite.e4m3x2.f32' : 'cvt.rn.satfinite.e5m2x2.f32';
    const pair = (at: number): Register<'b16'> => ptx.make(encode, valueAt(values, at + 1), valueAt(values, at));
    return ptx.join(pair(0), pair(2));
  }
  const [low, high] = [valueAt(values, 0), valueAt(values, 1)];
  if (ptx.level >= 80) return ptx.make(format === 'float16' ? 'cvt.rn.f16x2.f32' : 'cvt.rn.bf16x2.f32', high, low);
  if (format === 'float16') return ptx.join(ptx.make('cvt.rn.f16.f32', low), ptx.make('cvt.rn.f16.f32', high));
  return ptx.make('bfi.b32', roundBfloat16(ptx, high), roundBfloat16(ptx, low), 16, 16);
}

/** Bits of the nearest bfloat16, for architectures that have no such conversion. */
function roundBfloat16(ptx: Builder, value: Word): Word {
  const isNan = ptx.make('setp.nan.f32', value, value);
  const odd = ptx.make('bfe.u32', value, 16, 1);
  const rounded = ptx.make('shr.u32', ptx.make('add.u32', ptx.make('add.u32', value, 0x7fff), odd), 16);
  return ptx.make('selp.b32', 0x7fff, rounded, isNan);
}

function valueAt(values: readonly Word[], at: number): Word {
  const value = values[at];
  if (value === undefined) throw new RangeError(`a word of ${values.length} values has none at ${at}`);
  return value;
}
