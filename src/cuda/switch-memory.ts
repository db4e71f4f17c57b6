import type { CudaContext } from '../runtime/device/cuda/context.js';
import {
  FILE_DESCRIPTOR,
  memoryAccess,
  memoryProperties,
  multicastObject,
  ON_DEVICE,
  RECOMMENDED,
  type Driver,
} from '../runtime/device/cuda/functions.js';

/**
 * Memory of a GPU that is bound to a multicast object, under two addresses:
 *
 *     own   this GPU's memory alone
 *     all   the memory of all GPUs: an NVSwitch combines what it reads there, and multiplies what is written
 *
 * Each step is a method, since all GPUs must have made one before a driver carries out the next: calls of others wait in the
 * driver, and with them the thread. What was made is ended in the opposite order, whatever is missing.
 */
export class SwitchMemory {
  readonly bytes: number;
  #own = 0n;
  #all = 0n;
  readonly #context: CudaContext;
  readonly #object: bigint;
  /** Ends of the steps that were made. */
  readonly #ends: ((driver: Driver) => number)[] = [];

  /** @param object handle of the multicast object, which this memory keeps */
  constructor(context: CudaContext, object: bigint, bytes: number) {
    this.#context = context;
    this.#object = object;
    this.bytes = bytes;
    this.#ends.push((driver) => driver.cuMemRelease(object));
  }

  /** Makes the object for `nDevices` GPUs of any processes, with `least` bytes of each. */
  static create(context: CudaContext, nDevices: number, least: number): SwitchMemory {
    const properties = new DataView(new ArrayBuffer(multicastObject.bytes));
    properties.setUint32(multicastObject.nDevices, nDevices, true);
    properties.setBigUint64(multicastObject.size, BigInt(least), true);
    properties.setBigUint64(multicastObject.handleTypes, BigInt(FILE_DESCRIPTOR), true);
    const of = result(context, 'cuMulticastGetGranularity', (driver, out) =>
      driver.cuMulticastGetGranularity(out, properties, RECOMMENDED),
    );
    const ofMemory = result(context, 'cuMemGetAllocationGranularity', (driver, out) =>
      driver.cuMemGetAllocationGranularity(out, propertiesOf(context), RECOMMENDED),
    );
    // Both are powers of 2.
    const unit = Number(of > ofMemory ? of : ofMemory);
    const bytes = Math.ceil(least / unit) * unit;
    properties.setBigUint64(multicastObject.size, BigInt(bytes), true);
    return new SwitchMemory(
      context,
      result(context, 'cuMulticastCreate', (driver, out) => driver.cuMulticastCreate(out, properties)),
      bytes,
    );
  }

  /** The object of another process, by a file descriptor, which stays the caller's. */
  static import(context: CudaContext, fd: number, bytes: number): SwitchMemory {
    const object = result(context, 'cuMemImportFromShareableHandle', (driver, out) =>
      driver.cuMemImportFromShareableHandle(out, BigInt(fd), FILE_DESCRIPTOR),
    );
    return new SwitchMemory(context, object, bytes);
  }

  /** A file descriptor of the object for other processes, which the caller closes. */
  export(): number {
    const fd = new Int32Array(1);
    this.#call('cuMemExportToShareableHandle', (driver) =>
      driver.cuMemExportToShareableHandle(fd, this.#object, FILE_DESCRIPTOR, 0n),
    );
    return fd[0] ?? -1;
  }

  /** Step 1: adds this GPU. */
  add(): void {
    this.#call('cuMulticastAddDevice', (driver) => driver.cuMulticastAddDevice(this.#object, this.#context.device));
  }

  /** Step 2, when all GPUs are added: binds memory of this GPU, whose bytes become 0 on a stream. */
  bind(stream: bigint): void {
    const { bytes } = this;
    const context = this.#context;
    const memory = result(context, 'cuMemCreate', (driver, out) => driver.cuMemCreate(out, bytes, propertiesOf(context), 0n));
    this.#ends.push((driver) => driver.cuMemRelease(memory));
    this.#own = this.#mapped(memory);
    this.#call('cuMemsetD8Async', (driver) => driver.cuMemsetD8Async(this.#own, 0, bytes, stream));
    this.#call('cuMulticastBindMem', (driver) => driver.cuMulticastBindMem(this.#object, 0, memory, 0, bytes, 0n));
    this.#ends.push((driver) => driver.cuMulticastUnbind(this.#object, context.device, 0, bytes));
  }

  /** Step 3, when all memory is bound: gives the object its address. */
  map(): void {
    this.#all = this.#mapped(this.#object);
  }

  get own(): bigint {
    return this.#own;
  }

  get all(): bigint {
    return this.#all;
  }

  /** Ends everything, after the work of all GPUs. */
  close(): void {
    this.#context.inAnyCase((driver) => {
      for (const end of this.#ends.splice(0).reverse()) end(driver);
    });
  }

  /** An address of memory or of the object, which this GPU may access. */
  #mapped(handle: bigint): bigint {
    const { bytes } = this;
    const pointer = result(this.#context, 'cuMemAddressReserve', (driver, out) =>
      driver.cuMemAddressReserve(out, bytes, 0, 0n, 0n),
    );
    this.#ends.push((driver) => driver.cuMemAddressFree(pointer, bytes));
    this.#call('cuMemMap', (driver) => driver.cuMemMap(pointer, bytes, 0, handle, 0n));
    this.#ends.push((driver) => driver.cuMemUnmap(pointer, bytes));
    const access = new DataView(new ArrayBuffer(memoryAccess.bytes));
    access.setUint32(memoryAccess.locationType, ON_DEVICE, true);
    access.setUint32(memoryAccess.locationId, this.#context.device, true);
    access.setUint32(memoryAccess.flags, memoryAccess.readAndWrite, true);
    this.#call('cuMemSetAccess', (driver) => driver.cuMemSetAccess(pointer, bytes, access, 1));
    return pointer;
  }

  #call(name: string, call: (driver: Driver) => number): void {
    this.#context.run((driver) => {
      this.#context.check(name, call(driver));
    });
  }
}

/** Properties of memory of a GPU that other processes can open. */
function propertiesOf(context: CudaContext): DataView {
  const view = new DataView(new ArrayBuffer(memoryProperties.bytes));
  view.setUint32(memoryProperties.type, ON_DEVICE, true);
  view.setUint32(memoryProperties.handleTypes, FILE_DESCRIPTOR, true);
  view.setUint32(memoryProperties.locationType, ON_DEVICE, true);
  view.setUint32(memoryProperties.locationId, context.device, true);
  return view;
}

function result(context: CudaContext, name: string, call: (driver: Driver, out: BigUint64Array) => number): bigint {
  const out = new BigUint64Array(1);
  context.run((driver) => {
    context.check(name, call(driver, out));
  });
  return out[0] ?? 0n;
}
