import { describeValue } from '../describe-value.js';
import type { DeviceArray } from '../devices/device-array.js';
import type { Device } from '../devices/device.js';
import { InvalidArgumentError } from '../errors.js';
import type { NumericArray, NumericArrayConstructor } from '../runtime/device/types.js';
import { copy, type Tensors } from './tensors.js';

/** WebGPU copies multiples of so many bytes. */
const COPY_BYTES = 4;

/**
 * Arrays of a device as tensors of one dimension. New ones are the caller's to free.
 *
 * @param device as `webgpu(comm)` gives it
 * @throws InvalidArgumentError `ARGUMENT_TYPE`
 */
export function deviceTensors<Buffer>(device: Device<Buffer>): Tensors<DeviceArray<NumericArray, Buffer>> {
  checkDevice('deviceTensors', device, 'deviceTensors(gpu)');
  return {
    read: (array, into) => {
      if (typeof (array as Partial<DeviceArray> | null | undefined)?.download === 'function')
        return array.download(fits(into, array.type, array.length) ? into : undefined);
      throw new InvalidArgumentError('ARGUMENT_TYPE', `deviceTensors: pass an array of the device, not ${describeValue(array)}`);
    },
    typeOf: () => undefined,
    make: (array, like) => uploaded(device, array, like.type),
    write: (tensor, array) => tensor.upload(array),
    shapeOf: ({ length }) => [length],
  };
}

/** A new array of the device with these elements, and zeros up to a multiple of `bytes`. */
export async function uploaded<Buffer>(
  device: Device<Buffer>,
  array: NumericArray,
  type: NumericArrayConstructor,
  bytes = COPY_BYTES,
): Promise<DeviceArray<NumericArray, Buffer>> {
  const values = padded(array, type, bytes);
  const made = await device.alloc(type, values.length);
  await made.upload(values);
  return made;
}

/** Overwrites the first elements of a buffer. */
export function overwrite<Buffer>(
  device: Device<Buffer>,
  buffer: Buffer,
  array: NumericArray,
  type: NumericArrayConstructor,
): Promise<void> {
  const values = padded(array, type);
  return device.wrap(buffer, type).slice(0, values.length).upload(values);
}

/** The first `length` elements of a buffer; in `into` if it is of their class and length. */
export async function downloaded<Buffer>(
  device: Device<Buffer>,
  buffer: Buffer,
  type: NumericArrayConstructor,
  length: number,
  into?: NumericArray,
): Promise<NumericArray> {
  const array = device.wrap(buffer, type).slice(0, paddedLength(length, type));
  if (array.length === length) return array.download(fits(into, type, length) ? into : undefined);
  return (await array.download()).subarray(0, length);
}

function padded(array: NumericArray, type: NumericArrayConstructor, bytes = COPY_BYTES): NumericArray {
  const length = paddedLength(array.length, type, bytes);
  if (length === array.length) return array;
  const longer = new type(new ArrayBuffer(length * type.BYTES_PER_ELEMENT), 0, length);
  copy(array, longer);
  return longer;
}

function paddedLength(length: number, { BYTES_PER_ELEMENT }: NumericArrayConstructor, bytes = COPY_BYTES): number {
  return (Math.ceil((length * BYTES_PER_ELEMENT) / bytes) * bytes) / BYTES_PER_ELEMENT;
}

function fits(into: NumericArray | undefined, type: NumericArrayConstructor, length: number): boolean {
  return into?.constructor === type && into.length === length;
}

export function checkDevice(call: string, device: unknown, example: string): void {
  if (typeof (device as Partial<Device<unknown>> | null | undefined)?.wrap === 'function') return;
  throw new InvalidArgumentError(
    'ARGUMENT_TYPE',
    `${call}: pass a device, as in ${example} after const gpu = await webgpu(comm), not ${describeValue(device)}`,
  );
}
