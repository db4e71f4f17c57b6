import type { Builder, Double, Lane, Word } from './builder.js';
import { isNarrow, type ElementType, type Operator } from './element-types.js';
import { assign, combine, divide, divideFloats, makeDivisor } from './elements.js';
import { round, widen } from './narrow.js';
import type { RecordReader } from './record-reader.js';

/** Work of a kernel on the elements of its sources: it copies those of the only one, or combines them. */
export interface Arithmetic {
  /** Size of an element, to which arrays are aligned. */
  readonly bytes: 1 | 2 | 4 | 8;
  readonly type?: ElementType;
  readonly operator?: Operator;
  /** `float32` where a narrow format is rounded once, after all sources. */
  readonly accumulator?: 'float32';
}

/** Combines registers with elements of all sources of a step. */
export class Reduction {
  readonly nSources: Word;
  readonly #ptx: Builder;
  readonly #record: RecordReader;
  readonly #arithmetic: Arithmetic;
  readonly #nDestinations: Word;
  readonly #nScaled: Word | undefined;
  readonly #divisor: { readonly count: Word; readonly lane: Lane } | undefined;

  constructor(ptx: Builder, record: RecordReader, arithmetic: Arithmetic) {
    this.#ptx = ptx;
    this.#record = record;
    this.#arithmetic = arithmetic;
    this.nSources = record.word('nSources');
    this.#nDestinations = record.word('nDestinations');
    if (arithmetic.operator === 'premulSum') this.#nScaled = record.word('nScaled');
    if (arithmetic.operator === 'avg' && arithmetic.type !== undefined) {
      const count = record.word('divisor');
      this.#divisor = { count, lane: makeDivisor(ptx, arithmetic.type, count) };
    }
  }

  /** Emits loads of all sources, and returns the registers that have their combination. */
  emit(load: (base: Double, index: Word | 0) => Lane[]): Lane[] {
    const { operator, accumulator, type } = this.#arithmetic;
    const ptx = this.#ptx;
    const loaded = load(this.#record.double('sources'), 0);
    if (operator === undefined || type === undefined) return loaded;
    if (accumulator === 'float32') return this.#emitWide(loaded, load);
    if (operator === 'premulSum') this.#scale(loaded, 0);
    const results = loaded.map((lane) => copyOf(ptx, lane));
    ptx.count(1, this.nSources, (index) => {
      const others = load(this.#record.pointer('sources', index), index);
      if (operator === 'premulSum') this.#scale(others, index);
      const combination = operator === 'avg' || operator === 'premulSum' ? 'sum' : operator;
      results.forEach((result, i) => assign(ptx, result, combine(ptx, type, combination, result, others[i] ?? result)));
    });
    this.divide(results);
    return results;
  }

  /** Emits a loop over the destinations in memory. */
  eachDestination(store: (base: Double, index: Word) => void): void {
    this.#ptx.count(0, this.#nDestinations, (index) => store(this.#record.pointer('destinations', index), index));
  }

  /** Divides a complete sum by the number of ranks, where the step says one. */
  divide(results: readonly Lane[]): void {
    const { type } = this.#arithmetic;
    const divisor = this.#divisor;
    if (divisor === undefined || type === undefined) return;
    const ptx = this.#ptx;
    ptx.when(ptx.make('setp.gt.u32', divisor.count, 1), () => {
      for (const result of results) assign(ptx, result, divide(ptx, type, result, divisor.lane));
    });
  }

  /** Sums of a narrow format in float32, as NCCL's kernels for symmetric memory have them. */
  #emitWide(loaded: readonly Lane[], load: (base: Double, index: Word) => Lane[]): Lane[] {
    const { type } = this.#arithmetic;
    if (type === undefined || !isNarrow(type)) throw new TypeError('only narrow formats are summed in float32');
    const ptx = this.#ptx;
    const sums = loaded.map((lane) => widen(ptx, type, lane as Word).map((value) => ptx.make('mov.b32', value)));
    ptx.count(1, this.nSources, (index) => {
      const others = load(this.#record.pointer('sources', index), index);
      others.forEach((lane, i) =>
        widen(ptx, type, lane as Word).forEach((value, at) => {
          const sum = sums[i]?.[at];
          if (sum !== undefined) ptx.into(sum, 'add.rn.f32', sum, value);
        }),
      );
    });
    const divisor = this.#divisor;
    if (divisor !== undefined)
      ptx.when(ptx.make('setp.gt.u32', divisor.count, 1), () => {
        for (const values of sums)
          divideFloats(ptx, values, divisor.lane as Word).forEach((value, i) => assign(ptx, values[i] ?? value, value));
      });
    return sums.map((values) => round(ptx, type, values));
  }

  /** Multiplies the elements of a source by its scalar, if it has one. */
  #scale(lanes: readonly Lane[], index: Word | 0): void {
    const { type } = this.#arithmetic;
    if (this.#nScaled === undefined || type === undefined) return;
    const ptx = this.#ptx;
    ptx.when(ptx.make('setp.lt.u32', index === 0 ? ptx.make('mov.b32', 0) : index, this.#nScaled), () => {
      const scalar = index === 0 ? this.#record.double('scalars') : this.#record.pointer('scalars', index);
      for (const lane of lanes) {
        const factor = lane.kind === 'b64' ? scalar : ptx.make('cvt.u32.u64', scalar);
        assign(ptx, lane, combine(ptx, type, 'prod', lane, factor));
      }
    });
  }
}

function copyOf(ptx: Builder, lane: Lane): Lane {
  const copy = ptx.register(lane.kind);
  assign(ptx, copy, lane);
  return copy;
}
