import type { DataTypeName } from '../types.js';
import { hasFormat, type NarrowFormat } from './narrow.js';
import type { Level } from './targets.js';

/** Types that kernels combine. */
export type ElementType = Exclude<DataTypeName, 'int16' | 'uint16'>;
/** NCCL's operators, and those of MPI that combine element with element. */
export type Operator = 'avg' | 'premulSum' | Combination;
/** Combinations of two elements. */
export type Combination = Arithmetical | BitOperator | 'land' | 'lor';
export type Arithmetical = 'sum' | 'prod' | 'min' | 'max';
export type BitOperator = 'band' | 'bor' | 'bxor';

export const elementBytes: Readonly<Record<ElementType, 1 | 2 | 4 | 8>> = {
  int8: 1,
  uint8: 1,
  int32: 4,
  uint32: 4,
  int64: 8,
  uint64: 8,
  float16: 2,
  float32: 4,
  float64: 8,
  bfloat16: 2,
  float8e4m3: 1,
  float8e5m2: 1,
};

const narrowFormats: readonly string[] = ['float16', 'bfloat16', 'float8e4m3', 'float8e5m2'] satisfies NarrowFormat[];

export function isNarrow(type: ElementType): type is NarrowFormat {
  return narrowFormats.includes(type);
}

export function isBitwise(operator: Operator): operator is BitOperator {
  return operator === 'band' || operator === 'bor' || operator === 'bxor';
}

/** True if an operator combines elements of a type: bits are of integers. */
export function canCombine(type: ElementType, operator: Operator): boolean {
  return !isBitwise(operator) || type.includes('int');
}

/** True if an architecture has the kernels of a type. */
export function hasType(type: ElementType, level: Level): boolean {
  return !isNarrow(type) || hasFormat(type, level);
}
