import { InvalidArgumentError, SystemError, type TcclError } from '../errors.js';
import { describeValue } from '../describe-value.js';
import { reasonOf } from '../devices/lost.js';
import type { DeviceMemory, Part } from '../devices/memory.js';
import { MAP_READ, MAP_WRITE, usages, type GpuBuffer, type GpuDevice } from './gpu.js';

/** Bytes of a staging buffer. Larger ones overlap less, smaller ones cost more commands. */
const RING_BYTES = 1 << 20;
/** Staging buffers of each direction. */
const RING_BUFFERS = 4;

/** Buffers of a GPUDevice, copied through rings of buffers that the host can map. */
export class GpuMemory implements DeviceMemory<GpuBuffer> {
  readonly name = 'WebGPU';
  readonly alignment = 4;
  readonly lost: Promise<string>;
  readonly #device: GpuDevice;
  readonly #reading: Ring;
  readonly #writing: Ring;

  constructor(device: GpuDevice) {
    this.#device = device;
    this.lost = device.lost.then(({ reason, message }) => message || (reason ?? 'for no given reason'));
    // Buffers for reading wait unmapped, those for writing wait mapped.
    const make = (usage: number, mappedAtCreation: boolean) => (): GpuBuffer =>
      device.createBuffer({ size: RING_BYTES, usage, mappedAtCreation, label: 'tccl staging' });
    this.#reading = new Ring(make(usages.mapRead | usages.copyDst, false));
    this.#writing = new Ring(make(usages.mapWrite | usages.copySrc, true));
  }

  /** Throws SystemError `DEVICE_LOST` if the device was lost before: it maps no buffer then. */
  async checkLives(call: string): Promise<void> {
    try {
      const staging = await this.#reading.take();
      await staging.mapAsync(MAP_READ);
      staging.unmap();
      this.#reading.give(staging);
    } catch (error) {
      const why = firstLine((await reasonOf(this.lost)) ?? (error as Error).message);
      throw new SystemError('DEVICE_LOST', `${call}: the GPUDevice was lost before: ${why}; pass a new one`);
    }
  }

  async allocate(bytes: number): Promise<GpuBuffer> {
    const usage = usages.storage | usages.copySrc | usages.copyDst;
    this.#device.pushErrorScope('out-of-memory');
    this.#device.pushErrorScope('validation');
    let buffer: GpuBuffer | undefined;
    let thrown: unknown;
    try {
      buffer = this.#device.createBuffer({ size: bytes, usage });
    } catch (error) {
      thrown = error;
    }
    const errors = await Promise.all([this.#device.popErrorScope(), this.#device.popErrorScope()]);
    const problem = errors.find((error) => error !== null)?.message ?? (thrown instanceof Error ? thrown.message : undefined);
    if (buffer !== undefined && problem === undefined) return buffer;
    throw new SystemError('OUT_OF_MEMORY', `alloc: the device refused a buffer of ${bytes} bytes: ${firstLine(problem)}`);
  }

  release(buffer: GpuBuffer): void {
    buffer.destroy();
  }

  sizeOf(buffer: GpuBuffer, call: string): number {
    const given = buffer as Partial<GpuBuffer> | null | undefined;
    if (typeof given?.size !== 'number' || typeof given.usage !== 'number' || typeof given.mapAsync !== 'function')
      throw new InvalidArgumentError('ARGUMENT_TYPE', `${call}: pass a GPUBuffer, not ${describeValue(buffer)}`);
    const missing = [
      ...(given.usage & usages.copySrc ? [] : ['COPY_SRC']),
      ...(given.usage & usages.copyDst ? [] : ['COPY_DST']),
    ];
    if (missing.length > 0) {
      throw new InvalidArgumentError(
        'ARGUMENT_TYPE',
        `${call}: the GPUBuffer was made without the usage${missing.length > 1 ? 's' : ''} ${missing.join(' and ')}; make it with ` +
          'GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST',
      );
    }
    return given.size;
  }

  async check(buffers: readonly GpuBuffer[], call: string): Promise<void> {
    for (const { mapState } of buffers) {
      if (mapState !== 'unmapped')
        throw new InvalidArgumentError('ARGUMENT_TYPE', `${call}: the GPUBuffer is mapped; call its unmap() before`);
    }
    // An encoder refuses buffers of other devices, a queue those that were destroyed: copies of nothing show both.
    const target = await this.#reading.take();
    this.#device.pushErrorScope('validation');
    const encoder = this.#device.createCommandEncoder();
    for (const buffer of buffers) encoder.copyBufferToBuffer(buffer, 0, target, 0, 0);
    const commands = encoder.finish();
    const ofEncoder = this.#device.popErrorScope();
    this.#device.pushErrorScope('validation');
    this.#device.queue.submit([commands as never]);
    const ofQueue = this.#device.popErrorScope();
    this.#reading.give(target);
    if ((await ofEncoder) !== null) {
      throw new InvalidArgumentError(
        'ARGUMENT_TYPE',
        `${call}: the GPUBuffer is of another GPUDevice than that of webgpu(); pass a buffer that this device made`,
      );
    }
    if ((await ofQueue) !== null)
      throw new InvalidArgumentError('BUFFER_DETACHED', `${call}: the GPUBuffer was destroyed; pass one that is in use`);
  }

  async read(parts: readonly Part<GpuBuffer>[], to: Uint8Array): Promise<void> {
    await Promise.all(
      piecesOf(parts).map(async ({ at, bytes, parts: own }) => {
        const staging = await this.#reading.take();
        const valid = this.#submit((encoder) => {
          for (const { buffer, offset, bytes: length, at: start } of own)
            encoder.copyBufferToBuffer(buffer, offset, staging, start, length);
        });
        await staging.mapAsync(MAP_READ, 0, bytes).catch((error: unknown) => this.#reading.fail(error));
        to.set(new Uint8Array(staging.getMappedRange(0, bytes)), at);
        staging.unmap();
        this.#reading.give(staging);
        await valid;
      }),
    );
  }

  async write(parts: readonly Part<GpuBuffer>[], from: Uint8Array): Promise<void> {
    await Promise.all(
      piecesOf(parts).map(async ({ at, bytes, parts: own }) => {
        const staging = await this.#writing.take();
        // Dawn for Node crashes on a writeBuffer from shared memory.
        new Uint8Array(staging.getMappedRange(0, bytes)).set(from.subarray(at, at + bytes));
        staging.unmap();
        const valid = this.#submit((encoder) => {
          for (const { buffer, offset, bytes: length, at: start } of own)
            encoder.copyBufferToBuffer(staging, start, buffer, offset, length);
        });
        staging.mapAsync(MAP_WRITE).then(
          () => this.#writing.give(staging),
          (error: unknown) => this.#writing.end(error),
        );
        await valid;
      }),
    );
  }

  close(): void {
    this.#reading.close();
    this.#writing.close();
  }

  /** Queues copies; the promise rejects if the queue refuses them, maybe before the caller awaits it. */
  #submit(encode: (encoder: ReturnType<GpuDevice['createCommandEncoder']>) => void): Promise<void> {
    this.#device.pushErrorScope('validation');
    const encoder = this.#device.createCommandEncoder();
    encode(encoder);
    this.#device.queue.submit([encoder.finish() as never]);
    const valid = this.#device.popErrorScope().then((error) => {
      if (error !== null) throw refused(error.message);
    });
    valid.catch(() => undefined);
    return valid;
  }
}

function refused(message: string): TcclError {
  return new InvalidArgumentError(
    'BUFFER_DETACHED',
    `a GPUBuffer was destroyed or mapped while a call used it: ${firstLine(message)}`,
  );
}

function firstLine(text = 'it gave no reason'): string {
  return text.split('\n', 1)[0] ?? text;
}

interface Piece {
  /** First byte in host memory. */
  readonly at: number;
  readonly bytes: number;
  /** Parts of buffers, each with its first byte in the staging buffer. */
  readonly parts: (Part<GpuBuffer> & { readonly at: number })[];
}

/** Parts, one after the other, as pieces that each fit into a staging buffer. */
function piecesOf(parts: readonly Part<GpuBuffer>[]): readonly Piece[] {
  const pieces: { at: number; bytes: number; parts: Piece['parts'] }[] = [];
  let at = 0;
  for (const { buffer, offset, bytes } of parts) {
    for (let done = 0; done < bytes;) {
      let last = pieces.at(-1);
      if (last === undefined || last.bytes === RING_BYTES) pieces.push((last = { at, bytes: 0, parts: [] }));
      const length = Math.min(bytes - done, RING_BYTES - last.bytes);
      last.parts.push({ buffer, offset: offset + done, bytes: length, at: last.bytes });
      last.bytes += length;
      done += length;
      at += length;
    }
  }
  return pieces;
}

/** Staging buffers that are made when they are needed, and taken in turn. */
class Ring {
  readonly #make: () => GpuBuffer;
  readonly #all: GpuBuffer[] = [];
  readonly #free: GpuBuffer[] = [];
  readonly #waiting: { readonly resolve: (buffer: GpuBuffer) => void; readonly reject: (error: unknown) => void }[] = [];
  #failure: { readonly error: unknown } | undefined;

  constructor(make: () => GpuBuffer) {
    this.#make = make;
  }

  take(): Promise<GpuBuffer> | GpuBuffer {
    if (this.#failure !== undefined) throw this.#failure.error;
    const free = this.#free.pop();
    if (free !== undefined) return free;
    if (this.#all.length < RING_BUFFERS) {
      const made = this.#make();
      this.#all.push(made);
      return made;
    }
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  give(buffer: GpuBuffer): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free.push(buffer);
    else next.resolve(buffer);
  }

  /** Ends all waits, since the device does no more copies. */
  end(error: unknown): void {
    this.#failure ??= { error };
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }

  fail(error: unknown): never {
    this.end(error);
    throw error;
  }

  close(): void {
    for (const buffer of this.#all.splice(0)) buffer.destroy();
    this.#free.length = 0;
  }
}
