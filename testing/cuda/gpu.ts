import { CudaContext } from '../../src/runtime/device/cuda/context.js';
import { DEVICE_MAP, jitOptions, launchParameters, type Driver } from '../../src/runtime/device/cuda/functions.js';
import { results } from '../../src/runtime/device/cuda/results.js';
import { RECORD_BYTES, writeStep, type Step } from '../../src/runtime/device/ptx/step-record.js';

const LOG_BYTES = 8192;

/** A GPU for checks: every call waits until it is done, unless its name says otherwise. */
export class Gpu {
  readonly context: CudaContext;
  readonly stream: bigint;
  readonly #out = new BigUint64Array(1);

  constructor(driver: Driver, ordinal: number) {
    this.context = new CudaContext(driver, ordinal);
    this.stream = this.context.makeStream();
  }

  allocate(bytes: number): bigint {
    return this.#run('cuMemAlloc', (driver) => driver.cuMemAlloc_v2(this.#out, bytes), true);
  }

  free(pointer: bigint): void {
    this.#run('cuMemFree', (driver) => driver.cuMemFree_v2(pointer));
  }

  upload(pointer: bigint, from: Uint8Array): void {
    this.queueUpload(pointer, from);
    this.synchronize();
  }

  download(pointer: bigint, to: Uint8Array): void {
    this.queueDownload(pointer, to);
    this.synchronize();
  }

  queueUpload(pointer: bigint, from: Uint8Array): void {
    this.#run('cuMemcpyHtoDAsync', (driver) => driver.cuMemcpyHtoDAsync_v2(pointer, from, from.length, this.stream));
  }

  queueDownload(pointer: bigint, to: Uint8Array): void {
    this.#run('cuMemcpyDtoHAsync', (driver) => driver.cuMemcpyDtoHAsync_v2(to, pointer, to.length, this.stream));
  }

  queueCopy(to: bigint, from: bigint, bytes: number): void {
    this.#run('cuMemcpyDtoDAsync', (driver) => driver.cuMemcpyDtoDAsync_v2(to, from, bytes, this.stream));
  }

  synchronize(stream = this.stream): void {
    this.#run('cuStreamSynchronize', (driver) => driver.cuStreamSynchronize(stream));
  }

  /** Page-locks memory of the host, and gives its address in kernels. */
  mapHost(host: Uint8Array): bigint {
    this.#run('cuMemHostRegister', (driver) => driver.cuMemHostRegister_v2(host, host.length, DEVICE_MAP));
    return this.#run('cuMemHostGetDevicePointer', (driver) => driver.cuMemHostGetDevicePointer_v2(this.#out, host, 0), true);
  }

  unmapHost(host: Uint8Array): void {
    this.#run('cuMemHostUnregister', (driver) => driver.cuMemHostUnregister(host));
  }

  /** Compiles a module for this GPU. Throws with the compiler's messages. */
  load(text: string): bigint {
    const log = new Uint8Array(LOG_BYTES);
    const { driver } = this.context;
    return this.context.run(() => {
      const image = new TextEncoder().encode(`${text}\0`);
      const options = Uint32Array.of(jitOptions.errorLog, jitOptions.errorLogBytes);
      const values = BigUint64Array.of(driver.addressOf(log), BigInt(LOG_BYTES));
      const result = driver.cuModuleLoadDataEx(this.#out, image, options.length, options, values);
      if (result === results.INVALID_PTX) throw new Error(new TextDecoder().decode(log.subarray(0, log.indexOf(0))));
      this.context.check('cuModuleLoadDataEx', result);
      return this.#out[0] ?? 0n;
    });
  }

  unload(module: bigint): void {
    this.#run('cuModuleUnload', (driver) => driver.cuModuleUnload(module));
  }

  functionOf(module: bigint, name: string): bigint {
    return this.#run('cuModuleGetFunction', (driver) => driver.cuModuleGetFunction(this.#out, module, name), true);
  }

  /** Compiles a text, and gives its kernel of a name. */
  kernel(text: string, name: string): bigint {
    return this.functionOf(this.load(text), name);
  }

  /** A launch that can be queued many times. @param parameters as the kernel lays them out */
  launcher(kernel: bigint, blocks: number, threads: number, parameters: Uint8Array, stream = this.stream): () => void {
    const { driver } = this.context;
    const bytes = BigUint64Array.of(BigInt(parameters.length));
    const { address, bytes: length, end } = launchParameters;
    const extra = BigUint64Array.of(
      BigInt(address),
      driver.addressOf(parameters),
      BigInt(length),
      driver.addressOf(bytes),
      BigInt(end),
    );
    const kept = { parameters, bytes };
    return () => {
      // The driver reads them at each launch.
      if (kept.parameters.length !== Number(kept.bytes[0])) throw new Error('parameters have changed');
      this.#run('cuLaunchKernel', () => driver.cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, 0n, extra));
    };
  }

  /** A launch of lists of steps, one for each block, by a kernel that waits for flags. */
  stepsLauncher(kernel: bigint, threads: number, lists: readonly (readonly Step[])[]): () => void {
    const nSteps = lists[0]?.length ?? 0;
    const records = new Uint8Array(lists.length * nSteps * RECORD_BYTES);
    const view = new DataView(records.buffer);
    lists.forEach((list, block) => list.forEach((step, i) => writeStep(view, (block * nSteps + i) * RECORD_BYTES, step)));
    const [steps, abort] = [this.allocate(records.length), this.allocate(8)];
    this.upload(steps, records);
    this.upload(abort, new Uint8Array(8));
    const parameters = new DataView(new ArrayBuffer(24));
    parameters.setBigUint64(0, steps, true);
    parameters.setUint32(8, nSteps, true);
    parameters.setBigUint64(16, abort, true);
    return this.launcher(kernel, lists.length, threads, new Uint8Array(parameters.buffer));
  }

  /** Another call of the driver, which must succeed. */
  call(name: string, work: (driver: Driver) => number): void {
    this.#run(name, work);
  }

  /** The same for one that writes 64 bits. */
  result(name: string, work: (driver: Driver, out: BigUint64Array) => number): bigint {
    return this.#run(name, (driver) => work(driver, this.#out), true);
  }

  close(): void {
    this.context.close();
  }

  #run(call: string, work: (driver: Driver) => number, hasResult?: boolean): bigint {
    return this.context.run((driver) => {
      this.context.check(call, work(driver));
      return hasResult === true ? (this.#out[0] ?? 0n) : 0n;
    });
  }
}
