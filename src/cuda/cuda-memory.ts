import { describeValue } from '../describe-value.js';
import type { DeviceMemory, Part } from '../devices/memory.js';
import { InvalidArgumentError } from '../errors.js';
import type { CudaBuffer } from './cuda-buffer.js';
import type { CudaPeers } from './cuda-peers.js';
import { stuckOn } from './gpu-work.js';
import type { CudaContext } from '../runtime/device/cuda/context.js';
import { DEVICE_MEMORY } from '../runtime/device/cuda/functions.js';
import { isFault, results } from '../runtime/device/cuda/results.js';

/** Memory of a GPU, copied to and from memory of the host by its copy engines: a stream for each direction. */
export class CudaMemory implements DeviceMemory<CudaBuffer> {
  readonly name = 'CUDA';
  readonly alignment = 1;
  readonly lost: Promise<string>;
  readonly context: CudaContext;
  /** GPUs of the other ranks, once they are connected. */
  peers: CudaPeers | undefined;
  /** Stream that the program queues its work on. */
  readonly #program: bigint;
  readonly #reading: bigint;
  readonly #writing: bigint;
  #nArrays = 0;
  #isClosed = false;

  constructor(context: CudaContext, program: bigint) {
    this.context = context;
    this.#program = program;
    this.lost = context.lost;
    this.#reading = context.makeStream();
    this.#writing = context.makeStream();
  }

  async allocate(bytes: number): Promise<CudaBuffer> {
    const pointer = this.context.run((driver) => {
      const out = new BigUint64Array(1);
      // The driver refuses to allocate nothing.
      this.context.check(`alloc: cuMemAlloc of ${bytes} bytes`, driver.cuMemAlloc_v2(out, Math.max(bytes, 1)));
      const [address = 0n] = out;
      this.#nArrays++;
      this.peers?.allocated(address);
      return address;
    });
    try {
      this.context.run((driver) => {
        if (bytes > 0) this.context.check('cuMemsetD8Async', driver.cuMemsetD8Async(pointer, 0, bytes, this.#writing));
      });
      await this.context.reached(this.#writing);
    } catch (error) {
      this.release({ pointer, bytes });
      throw error;
    }
    return { pointer, bytes };
  }

  release({ pointer }: CudaBuffer): void {
    if (this.peers?.retire(pointer) !== true) this.free(pointer);
  }

  /** Frees memory that no other rank has open. It stays where the driver would wait for a rank that has died. */
  free(pointer: bigint): void {
    if (stuckOn(this.context) !== undefined) return;
    this.context.inAnyCase((driver) => {
      const result = driver.cuMemFree_v2(pointer);
      if (!isFault(result)) this.context.check('cuMemFree', result);
    });
    this.#nArrays--;
    this.#closeContext();
  }

  sizeOf(buffer: CudaBuffer, call: string, elementBytes: number): number {
    const given = buffer as Partial<CudaBuffer> | null | undefined;
    const { pointer, bytes = -1 } = given ?? {};
    const isAddress = typeof pointer === 'bigint' && pointer === BigInt.asUintN(64, pointer);
    if (!isAddress || !Number.isSafeInteger(bytes) || bytes < 0) {
      throw new InvalidArgumentError(
        'ARGUMENT_TYPE',
        `${call}: pass memory as { pointer: 0x7f0000000000n, bytes: 4096 }, not ${describeValue(buffer)}`,
      );
    }
    this.#checkPlace(buffer, call);
    if (pointer % BigInt(elementBytes) !== 0n) {
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `${call}: elements of ${elementBytes} bytes begin at multiples of ${elementBytes}, and 0x${pointer.toString(16)} is none; pass a copy`,
      );
    }
    return bytes;
  }

  check(buffers: readonly CudaBuffer[], call: string): Promise<void> {
    return new Promise((resolve) => {
      for (const buffer of buffers) this.#checkPlace(buffer, call);
      resolve();
    });
  }

  async read(parts: readonly Part<CudaBuffer>[], to: Uint8Array): Promise<void> {
    // A copy to memory that is not page-locked blocks until it is done: the stream must not have to wait for the program.
    await this.#programReached();
    this.#queue(this.#reading, 'cuMemcpyDtoHAsync', parts, (driver, pointer, at, bytes) =>
      driver.cuMemcpyDtoHAsync_v2(to.subarray(at, at + bytes), pointer, bytes, this.#reading),
    );
    await this.context.reached(this.#reading);
  }

  async write(parts: readonly Part<CudaBuffer>[], from: Uint8Array): Promise<void> {
    await this.#programReached();
    this.#queue(this.#writing, 'cuMemcpyHtoDAsync', parts, (driver, pointer, at, bytes) =>
      driver.cuMemcpyHtoDAsync_v2(pointer, from.subarray(at, at + bytes), bytes, this.#writing),
    );
    // The program may queue work on streams that have no order with this one.
    await this.context.reached(this.#writing);
  }

  /** Page-locks memory, so that copies run beside the program. Where the system refuses, the driver copies twice. */
  pin(host: Uint8Array): () => void {
    const isPinned = this.context.run((driver) => driver.cuMemHostRegister_v2(host, host.length, 0) === results.SUCCESS);
    if (!isPinned) return () => undefined;
    return () => {
      // After a fault, nothing is registered any more. Work that may never end would end no call that waits for it.
      if (stuckOn(this.context) === undefined) this.context.inAnyCase((driver) => driver.cuMemHostUnregister(host));
    };
  }

  close(): void {
    this.#isClosed = true;
    // The driver may wait for all work before it ends a context.
    if (stuckOn(this.context) !== undefined) return;
    this.peers?.close();
    this.#closeContext();
  }

  /** Arrays stay when the device is closed, and with them the context. */
  #closeContext(): void {
    if (this.#isClosed && this.#nArrays === 0) this.context.close();
  }

  /** Resolves when the program's work until now is done. Throws the ranks' failure if it waits for one that may be gone. */
  async #programReached(): Promise<void> {
    await this.context.reached(this.#program, () => stuckOn(this.context) !== undefined);
    const failure = stuckOn(this.context);
    if (failure !== undefined) throw failure;
  }

  /** Queues copies of parts, one after the other on the host. If one of them fails, none is under way afterwards. */
  #queue(
    stream: bigint,
    call: string,
    parts: readonly Part<CudaBuffer>[],
    copy: (driver: CudaContext['driver'], pointer: bigint, at: number, bytes: number) => number,
  ): void {
    this.context.run((driver) => {
      let at = 0;
      for (const { buffer, offset, bytes } of parts) {
        const result = copy(driver, buffer.pointer + BigInt(offset), at, bytes);
        if (result !== results.SUCCESS) driver.cuStreamSynchronize(stream);
        if (result === results.INVALID_VALUE) this.#checkPlace(buffer, 'a copy');
        this.context.check(call, result);
        at += bytes;
      }
    });
  }

  #checkPlace({ pointer, bytes }: CudaBuffer, call: string): void {
    // Libraries give tensors without elements the address 0.
    if (bytes === 0) return;
    const facts = this.context.factsOf(pointer);
    const address = `0x${pointer.toString(16)}`;
    if (facts === undefined) {
      throw new InvalidArgumentError(
        'BUFFER_DETACHED',
        `${call}: the driver knows no memory at ${address}; it was freed, or is not of a GPU`,
      );
    }
    if (facts.memoryType !== DEVICE_MEMORY)
      throw new InvalidArgumentError('ARGUMENT_TYPE', `${call}: ${address} is memory of the host; pass memory of a GPU`);
    const { ordinal } = this.context;
    if (facts.device !== ordinal) {
      throw new InvalidArgumentError(
        'ARGUMENT_TYPE',
        `${call}: ${address} is memory of GPU ${facts.device}, and this device is GPU ${ordinal}; pass memory of GPU ${ordinal}`,
      );
    }
    const room = facts.rangeBytes - Number(pointer - facts.rangeStart);
    if (bytes > room) {
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `${call}: there are ${room} bytes at ${address}, not ${bytes}; the memory was freed, or is shorter`,
      );
    }
  }
}
