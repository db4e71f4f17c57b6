import type { CallLimits } from '../algorithms/arguments.js';
import { COMPARE, type DataType, type NumericArray, type TypedArray } from '../device/types.js';
import type { Change } from './element-changes.js';
import { checkAccumulated, checkComparable, checkElement, checkWindowOperator } from './window-arguments.js';
import type { WindowOperator } from './window-options.js';

const noResult = (): void => undefined;
const elementBefore = <E>({ before }: { readonly before: E }): E => before;

/**
 * Calls that change elements of another rank's part where they lie. Each element changes at once: of several ranks that change
 * it by these calls at the same time, each sees the result of the one before. A put or a store of the owner has no such order.
 *
 * Elements are of the window's type; those that are only moved (int16, uint16) can be replaced and compared.
 */
export abstract class WindowAtomics<T extends TypedArray> {
  /** @internal Type of the elements. */
  protected abstract readonly type: DataType;
  /** @internal Starts a change, and resolves with its result when it is done. */
  protected abstract startChange<C extends Change, R>(
    call: string,
    peer: number,
    targetOffset: number,
    options: CallLimits | undefined,
    checked: () => C,
    resultOf: (change: C) => R,
  ): Promise<R>;
  /** @internal Carries out a change before it returns. */
  protected abstract runChange<C extends Change>(call: string, peer: number, targetOffset: number, checked: () => C): C;

  /**
   * Combines each element of `source` into rank `peer`'s part, from `targetOffset` elements on. Resolves when `source` may be
   * changed again; a {@link signal} or {@link flush} after it covers it as it covers a put.
   *
   * @throws (rejects) BUFFER_SIZE if it exceeds the target's part, ARGUMENT_TYPE, ARGUMENT_RANGE, UNKNOWN_NAME, CLOSED
   */
  accumulate(source: T, peer: number, targetOffset = 0, operator: WindowOperator = 'sum', options?: CallLimits): Promise<void> {
    const call = 'accumulate';
    return this.startChange(call, peer, targetOffset, options, () => this.#accumulation(call, source, operator), noResult);
  }

  /** The blocking form of {@link accumulate}: where {@link CommunicatorConfig.blocking} allows it. */
  accumulateSync(source: T, peer: number, targetOffset = 0, operator: WindowOperator = 'sum'): void {
    this.runChange('accumulateSync', peer, targetOffset, () => this.#accumulation('accumulateSync', source, operator));
  }

  /**
   * Combines `value` with the element at `targetOffset` of rank `peer`'s part, and resolves to what the element was before: by
   * default, a fetch-and-add. With `replace` it exchanges them.
   *
   * @throws (rejects) as {@link accumulate}
   */
  fetchAndOp(
    value: T[number],
    peer: number,
    targetOffset = 0,
    operator: WindowOperator = 'sum',
    options?: CallLimits,
  ): Promise<T[number]> {
    const call = 'fetchAndOp';
    return this.startChange(call, peer, targetOffset, options, () => this.#fetch(call, value, operator), elementBefore);
  }

  /** The blocking form of {@link fetchAndOp}. */
  fetchAndOpSync(value: T[number], peer: number, targetOffset = 0, operator: WindowOperator = 'sum'): T[number] {
    return this.runChange('fetchAndOpSync', peer, targetOffset, () => this.#fetch('fetchAndOpSync', value, operator)).before;
  }

  /**
   * Stores `value` at `targetOffset` of rank `peer`'s part if the element there equals `expected`, and resolves to what the
   * element was before: it was stored if that equals `expected`. Only in windows of integers.
   *
   * @throws (rejects) as {@link accumulate}
   */
  compareAndSwap(
    expected: T[number],
    value: T[number],
    peer: number,
    targetOffset = 0,
    options?: CallLimits,
  ): Promise<T[number]> {
    const call = 'compareAndSwap';
    return this.startChange(call, peer, targetOffset, options, () => this.#swap(call, expected, value), elementBefore);
  }

  /** The blocking form of {@link compareAndSwap}. */
  compareAndSwapSync(expected: T[number], value: T[number], peer: number, targetOffset = 0): T[number] {
    const call = 'compareAndSwapSync';
    return this.runChange(call, peer, targetOffset, () => this.#swap(call, expected, value)).before;
  }

  #accumulation(call: string, source: T, operator: WindowOperator): Change & { readonly name: 'accumulate' } {
    checkAccumulated(call, source as NumericArray, this.type);
    return { name: 'accumulate', operator: checkWindowOperator(call, operator, this.type), source: source as NumericArray };
  }

  #fetch(call: string, value: T[number], operator: WindowOperator): Change & { readonly name: 'fetchAndOp' } {
    checkElement(call, 'value', value, this.type);
    return { name: 'fetchAndOp', operator: checkWindowOperator(call, operator, this.type), value, expected: 0, before: 0 };
  }

  #swap(call: string, expected: T[number], value: T[number]): Change & { readonly name: 'compareAndSwap' } {
    checkComparable(call, this.type);
    checkElement(call, 'expected element', expected, this.type);
    checkElement(call, 'value', value, this.type);
    return { name: 'compareAndSwap', operator: COMPARE, value, expected, before: 0 };
  }
}
