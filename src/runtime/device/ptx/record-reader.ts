import type { Address, Builder, Double, Word } from './builder.js';
import { fields } from './step-record.js';

/** Reads the record of a step, wherever it is. */
export class RecordReader {
  readonly #ptx: Builder;
  readonly #address: Address;

  constructor(ptx: Builder, address: Address) {
    this.#ptx = ptx;
    this.#address = address;
  }

  word(field: keyof typeof fields): Word {
    return first(this.#ptx.load(this.#at(fields[field]), { bits: 32 }));
  }

  double(field: keyof typeof fields, offset = 0): Double {
    return first(this.#ptx.load(this.#at(fields[field] + offset), { bits: 64 }));
  }

  /** Entry of a table with 64-bit words, or with pairs of them. */
  entry(field: keyof typeof fields, index: Word, bytes: 8 | 16 = 8): [Double, Double] {
    const ptx = this.#ptx;
    const { space, base } = this.#address;
    const offset = ptx.make('mul.lo.u32', index, bytes);
    const at: Address =
      space === 'shared'
        ? { space, base: ptx.make('add.u32', base, offset), offset: fields[field] }
        : { space, base: ptx.make('add.u64', base, ptx.make('cvt.u64.u32', offset)), offset: fields[field] };
    const low = first(ptx.load(at, { bits: 64 }));
    return [low, bytes === 8 ? low : first(ptx.load({ ...at, offset: fields[field] + 8 }, { bits: 64 }))];
  }

  /** Entry of a table of addresses or scalars. */
  pointer(field: 'sources' | 'destinations' | 'scalars', index: Word): Double {
    return this.entry(field, index)[0];
  }

  #at(offset: number): Address {
    return { ...this.#address, offset };
  }
}

/** The threads that share the work of a step: those of one block, or of the whole grid. */
export interface Workers {
  /** This thread among them. */
  readonly index: Word;
  readonly count: Word;
}

export function blockWorkers(ptx: Builder): Workers {
  return { index: ptx.thread, count: ptx.threads };
}

export function gridWorkers(ptx: Builder): Workers {
  return {
    index: ptx.make('mad.lo.u32', ptx.block, ptx.threads, ptx.thread),
    count: ptx.make('mul.lo.u32', ptx.blocks, ptx.threads),
  };
}

export function first<T>(values: readonly T[]): T {
  const [value] = values;
  if (value === undefined) throw new RangeError('no register');
  return value;
}
