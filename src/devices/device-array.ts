import { describeValue } from '../describe-value.js';
import { InvalidArgumentError, InvalidUsageError } from '../errors.js';
import type { PlatformDisposable } from '../runtime/platform/declarations.js';
import { isArrayClass, type NumericArrayConstructor, type TypedArray } from '../runtime/device/types.js';
import type { Part } from './memory.js';

/** The memory of an array and of all its slices. */
export interface Place<Buffer> {
  readonly buffer: Buffer;
  /** Number of calls that use it now. */
  uses: number;
  isFree: boolean;
  /** Called when the program frees the array that `alloc` or `wrap` gave. */
  readonly release: () => void;
}

/** The part of a device that its arrays use. */
export interface Copies<Buffer> {
  readonly alignment: number;
  upload(array: DeviceArray<TypedArray, Buffer>, values: TypedArray): Promise<void>;
  download(array: DeviceArray<TypedArray, Buffer>, into: TypedArray): Promise<void>;
}

/** A typed array in a device's memory, or a part of one. */
// eslint-disable-next-line @typescript-eslint/no-unsafe-declaration-merging -- what it adds is defined below the class
export class DeviceArray<T extends TypedArray = TypedArray, Buffer = unknown> {
  /** Class of the elements' array on the host, such as Float32Array. */
  readonly type: NumericArrayConstructor<T>;
  /** Number of elements. */
  readonly length: number;
  /** First byte of the array in {@link buffer}. */
  readonly byteOffset: number;
  /** Its memory, for kernels of the program. */
  readonly buffer: Buffer;
  /** @internal */
  readonly place: Place<Buffer>;
  readonly #copies: Copies<Buffer>;
  readonly #isWhole: boolean;

  /** @internal Made by a device. */
  constructor(
    copies: Copies<Buffer>,
    place: Place<Buffer>,
    type: NumericArrayConstructor<T>,
    byteOffset: number,
    length: number,
    isWhole: boolean,
  ) {
    this.#copies = copies;
    this.#isWhole = isWhole;
    this.place = place;
    this.buffer = place.buffer;
    this.type = type;
    this.byteOffset = byteOffset;
    this.length = length;
  }

  get byteLength(): number {
    return this.length * this.type.BYTES_PER_ELEMENT;
  }

  /**
   * Copies elements of the host to the array. Resolves when `values` may change; work that is queued on the device afterwards
   * sees them.
   *
   * @param values as many elements, in an array of the same class
   * @throws InvalidArgumentError `ARGUMENT_TYPE`, `BUFFER_SIZE`, `BUFFER_DETACHED`
   */
  async upload(values: T): Promise<void> {
    this.#checkHost('upload', values);
    await this.#copies.upload(this, values);
  }

  /**
   * Copies the elements to the host, after all work that is queued on the device now.
   *
   * @param into array of the same class and length; without one, a new array
   * @throws as {@link upload}
   */
  async download(into?: T): Promise<T> {
    const array = into ?? new this.type(new ArrayBuffer(this.byteLength), 0, this.length);
    this.#checkHost('download', array);
    await this.#copies.download(this, array);
    return array;
  }

  /**
   * Elements from `start` up to, not including, `end`, in the same memory. With WebGPU, a part begins and ends at a multiple of
   * 4 bytes.
   *
   * @throws InvalidArgumentError `ARGUMENT_RANGE`
   */
  slice(start = 0, end = this.length): DeviceArray<T, Buffer> {
    this.checkUsable('slice');
    if (!(Number.isInteger(start) && Number.isInteger(end) && start >= 0 && start <= end && end <= this.length)) {
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `slice: start and end are whole numbers from 0 to ${this.length}, the array's length, not ${describeValue(start)} and ` +
          describeValue(end),
      );
    }
    const size = this.type.BYTES_PER_ELEMENT;
    const { alignment } = this.#copies;
    if ((start * size) % alignment !== 0 || (end * size) % alignment !== 0) {
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `slice: elements ${start} to ${end} of a ${this.type.name} do not begin and end at multiples of ${alignment} bytes, ` +
          'which is what the device copies',
      );
    }
    return new DeviceArray(this.#copies, this.place, this.type, this.byteOffset + start * size, end - start, false);
  }

  /**
   * Ends the use of the array and its slices, and frees the memory of `alloc`; a wrapped buffer stays. Of a slice, does nothing.
   *
   * @throws InvalidUsageError `ARGUMENT_TYPE` while a call uses the array
   */
  free(): void {
    const { place } = this;
    if (!this.#isWhole || place.isFree) return;
    if (place.uses > 0)
      throw new InvalidUsageError('ARGUMENT_TYPE', 'free: a call that uses the array is under way; await it first');
    place.isFree = true;
    place.release();
  }

  /** @internal Bytes of elements from `start` on. */
  part(start: number, length: number): Part<Buffer> {
    const size = this.type.BYTES_PER_ELEMENT;
    return { buffer: this.buffer, offset: this.byteOffset + start * size, bytes: length * size };
  }

  /** @internal True for an array of the device with these copies. */
  isOf(copies: Copies<Buffer>): boolean {
    return this.#copies === copies;
  }

  /** @internal Throws once the array was freed. */
  checkUsable(call: string): void {
    if (this.place.isFree)
      throw new InvalidArgumentError('BUFFER_DETACHED', `${call}: the array was freed; pass one that was not`);
  }

  #checkHost(call: string, values: TypedArray): void {
    this.checkUsable(call);
    if (!(values instanceof (this.type as unknown as new () => TypedArray)))
      throw new InvalidArgumentError('ARGUMENT_TYPE', `${call}: pass a ${this.type.name}, not ${describeValue(values)}`);
    if (values.length !== this.length) {
      throw new InvalidArgumentError(
        'BUFFER_SIZE',
        `${call}: the array of the host has ${values.length} elements, that of the device ${this.length}; pass one of that length`,
      );
    }
  }
}

/** `using x = await gpu.alloc(…)` frees it at the end of the block. */
// eslint-disable-next-line @typescript-eslint/no-empty-object-type, @typescript-eslint/no-unused-vars -- below
export interface DeviceArray<T extends TypedArray, Buffer> extends PlatformDisposable {}
const { dispose } = Symbol as { readonly dispose?: symbol };
if (dispose !== undefined) {
  Object.defineProperty(DeviceArray.prototype, dispose, {
    value(this: DeviceArray): void {
      this.free();
    },
  });
}

/** Throws unless `type` is a class of arrays that calls take. */
export function checkClass(call: string, type: unknown): void {
  if (isArrayClass(type)) return;
  const example = 'as in alloc(Float32Array, 1024)';
  throw new InvalidArgumentError('ARGUMENT_TYPE', `${call}: pass a class of typed arrays, ${example}, not ${nameOf(type)}`);
}

function nameOf(type: unknown): string {
  return typeof type === 'function' && type.name !== '' ? type.name : describeValue(type);
}
