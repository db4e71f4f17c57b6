import type { Builder, Double, Lane, Predicate, Word } from './builder.js';
import { isNarrow, type ElementType, type Operator } from './element-types.js';
import { assign } from './elements.js';
import type { Arithmetic } from './reduction.js';

/** Memory that only whole packs can be read from and written to: lines with flags, or multicast addresses. */
export interface Wire {
  /** Bytes of data in a pack, which has 16 bytes on the wire. */
  readonly bytes: 8 | 16;
  /** Packs that a thread has in flight. */
  readonly unroll: number;
  /** Missing where nothing is to be combined, and a load would combine. */
  readonly load: ((base: Double) => Lane[]) | undefined;
  readonly store: (base: Double, lanes: readonly Lane[]) => void;
}

/**
 * Lines of 16 bytes, as NCCL's protocol LL has them: twice four bytes of data and a flag. Data and flag are one access of 64
 * bits, so the data need no other order, and no barrier. `stop` holds where the thread is to give up.
 *
 *     data u32 | flag u32 | data u32 | flag u32
 */
export function lines(ptx: Builder, flag: Word, lane: 'b32' | 'b64', stop: () => Predicate): Wire {
  return {
    bytes: 8,
    unroll: 1,
    load: (base) => {
      const data = [ptx.register('b32'), ptx.register('b32')];
      ptx.until(() => {
        const flags = ptx.load({ space: 'global', base }, { bits: 64, count: 2 }, 'relaxed').map((half, i) => {
          const [low, high] = ptx.splitWords(half);
          assign(ptx, data[i] ?? low, low);
          return ptx.make('setp.eq.u32', high, flag);
        });
        const isOver = flags.reduce((all, one) => ptx.make('and.pred', all, one));
        ptx.when(ptx.make('not.pred', isOver), () => ptx.into(isOver, 'mov.pred', stop()));
        return isOver;
      });
      const [low, high] = data as [Word, Word];
      return lane === 'b64' ? [ptx.joinWords(low, high)] : data;
    },
    store: (base, lanes) => {
      const words = lanes.flatMap((each) => (each.kind === 'b64' ? ptx.splitWords(each) : [each]));
      const halves = words.map((word) => ptx.joinWords(word, flag));
      ptx.store({ space: 'global', base }, 64, halves, 'relaxed');
    },
  };
}

/** Multicast addresses: a load combines the same place of all members, a store writes it to all. */
export function multicast(ptx: Builder, { type, operator }: Arithmetic): Wire {
  return {
    bytes: 16,
    unroll: 4,
    load: type === undefined || operator === undefined ? undefined : combinedLoad(ptx, type, operator),
    // The type only says how many bytes: a switch keeps their bits.
    store: (base, stored) => {
      if (stored.length === 4) ptx.storeMulticast(base, 0, 'v4.f32', stored);
      else stored.forEach((lane, i) => ptx.storeMulticast(base, 8 * i, 'b64', [lane]));
    },
  };
}

/** True if a switch combines elements of the type so: PTX ISA, multimem.ld_reduce. */
export function hasMulticast(type: ElementType, operator: Operator): boolean {
  if (!['sum', 'avg', 'min', 'max'].includes(operator)) return false;
  if (type === 'float32' || type === 'float64') return operator === 'sum' || operator === 'avg';
  return !['int8', 'uint8', 'float8e4m3', 'float8e5m2'].includes(type);
}

function combinedLoad(ptx: Builder, type: ElementType, operator: Operator): (base: Double) => Lane[] {
  const { name, lanes } = multicastLoad(type, operator);
  return (base) => {
    const registers = Array.from({ length: lanes.count }, () => ptx.register(lanes.kind));
    if (lanes.vector) ptx.loadReduced(base, 0, name, registers);
    else registers.forEach((register, i) => ptx.loadReduced(base, (16 / lanes.count) * i, name, [register]));
    return registers;
  };
}

function multicastLoad(type: ElementType, operator: Operator): { name: string; lanes: MulticastLanes } {
  const combination = operator === 'sum' || operator === 'avg' ? 'add' : operator;
  if (isNarrow(type)) {
    // Sums in float32, as NCCL asks for; a minimum needs no more digits than its operands.
    const accumulator = combination === 'add' ? '.acc::f32' : '';
    return {
      name: `${combination}${accumulator}.v4.${type === 'float16' ? 'f16x2' : 'bf16x2'}`,
      lanes: { kind: 'b32', count: 4, vector: true },
    };
  }
  if (type === 'float32') return { name: `${combination}.v4.f32`, lanes: { kind: 'b32', count: 4, vector: true } };
  // Sums of signed numbers are those of unsigned ones, modulo 2^bits; PTX has no s64 for them.
  const sign = type.startsWith('int') && combination !== 'add' ? 's' : 'u';
  const name = type === 'float64' ? `${combination}.f64` : `${combination}.${sign}${type.endsWith('64') ? 64 : 32}`;
  return {
    name,
    lanes: type.endsWith('64') ? { kind: 'b64', count: 2, vector: false } : { kind: 'b32', count: 4, vector: false },
  };
}

interface MulticastLanes {
  readonly kind: 'b32' | 'b64';
  readonly count: 2 | 4;
  readonly vector: boolean;
}
