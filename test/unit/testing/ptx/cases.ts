import { writeScalar, SCALAR_BYTES } from '../../../../src/runtime/device/scalar.js';
import { dataTypes, type DataType, type NumericArray } from '../../../../src/runtime/device/types.js';
import type { ElementType, Operator } from '../../../../src/runtime/device/ptx/element-types.js';
import type { DeviceMemory } from '../../../../testing/ptx/memory.js';
import {
  divideElement,
  elementsOf,
  reduceElements,
  scaledSum,
  smallFloat,
  type Element,
  type SmallFloat,
} from '../../runtime/device/reference.js';

export type Random = (below: number) => number;

/** The runtime's type of a name. */
export function dataType(name: ElementType): DataType {
  const type = dataTypes.find((each) => each.name === name);
  if (type === undefined) throw new Error(`no type ${name}`);
  return type;
}

/** An array in the memory of a device, `skew` bytes after a multiple of 256. */
export class DeviceArray {
  readonly address: bigint;
  readonly #memory: DeviceMemory;
  readonly #type: DataType;
  readonly #base: bigint;
  readonly #skew: number;
  readonly #count: number;

  constructor(memory: DeviceMemory, name: string, type: DataType, count: number, skew = 0) {
    this.#memory = memory;
    this.#type = type;
    this.#count = count;
    this.#skew = skew;
    this.#base = memory.allocate(name, skew + count * type.bytes);
    this.address = this.#base + BigInt(skew);
  }

  get elements(): NumericArray {
    const bytes = this.#memory.bytesAt(this.#base).slice(this.#skew);
    return new this.#type.array(bytes.buffer, 0, this.#count);
  }

  set elements(values: NumericArray) {
    this.bytes.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
  }

  get bytes(): Uint8Array {
    return this.#memory.bytesAt(this.address);
  }

  /** Any bits, or numbers of similar size, whose sums are rounded, or both. */
  fill(random: Random): void {
    const bytes = this.bytes;
    for (let i = 0; i < bytes.length; i++) bytes[i] = random(256);
    if (!this.#type.isFloat) return;
    const numbers = random(5) / 4;
    const elements = this.elements;
    for (let i = 0; i < elements.length; i++)
      if (random(1000) / 1000 < numbers) this.#type.write(elements, i, (random(1e6) / 1e6 - 0.5) * 8);
    this.elements = elements;
  }

  /** Makes some elements 0, and some of floats -0. */
  clearSome(random: Random): void {
    const { bytes } = this;
    const size = this.#type.bytes;
    for (let at = 0; at < bytes.length; at += size) {
      if (random(2) === 0) continue;
      bytes.fill(0, at, at + size);
      if (this.#type.isFloat && random(2) === 0) bytes[at + size - 1] = 0x80;
    }
  }

  /** Small whole numbers, whose sums are exact in any order. */
  fillSmall(random: Random): void {
    const elements = this.elements;
    for (let i = 0; i < elements.length; i++) {
      const value = random(7);
      this.#type.write(elements, i, this.#type.bytes === 8 && !this.#type.isFloat ? BigInt(value) : value);
    }
    this.elements = elements;
  }
}

/** Elements that a step has to give for those of its sources, by the runtime's reference. */
export function expectedElements(
  type: DataType,
  operator: Operator | undefined,
  inputs: readonly (readonly Element[])[],
  { divisor = 1, scalars = [], wide = false }: { divisor?: number; scalars?: readonly Element[]; wide?: boolean } = {},
): Element[] {
  return (inputs[0] ?? []).map((_, i) => {
    const elements = inputs.map((input) => input[i] ?? 0);
    if (operator === undefined) return elements[0] ?? 0;
    if (wide) return sumInFloat32(type.name as SmallFloat, elements, divisor);
    if (operator === 'premulSum') return scaledSum(type, elements, scalars);
    const combined = reduceElements(type, operator === 'avg' ? 'sum' : operator, elements);
    return operator === 'avg' && divisor > 1 ? divideElement(type, combined, divisor) : combined;
  });
}

/** A sum that is rounded to the format once. */
function sumInFloat32(name: SmallFloat, elements: readonly Element[], divisor: number): Element {
  const format = smallFloat(name);
  const sum = elements.map((bits) => format.decode(Number(bits))).reduce((a, b) => Math.fround(a + b));
  return format.encode(format.round(divisor > 1 ? Math.fround(sum / divisor) : sum));
}

/** One scalar for each source, as elements and as a step has them. */
export function makeScalars(type: DataType, count: number, random: Random): { elements: Element[]; packed: bigint[] } {
  const packed = new BigUint64Array(count);
  for (let i = 0; i < count; i++) {
    const value = type.isFloat ? (random(1000) - 500) / 100 : random(100);
    writeScalar(type, value, packed.buffer, SCALAR_BYTES * i);
  }
  const all = elementsOf(new type.array(packed.buffer, 0, (count * SCALAR_BYTES) / type.bytes));
  return { elements: all.filter((_, i) => i % (SCALAR_BYTES / type.bytes) === 0), packed: [...packed] };
}

/** The first place where arrays differ, as text. NaN equals NaN. */
export function difference(actual: readonly Element[], expected: readonly Element[]): string | undefined {
  const at = expected.findIndex((value, i) => !Object.is(actual[i], value));
  return at < 0 ? undefined : `at ${at}: ${actual[at]} instead of ${expected[at]}`;
}
