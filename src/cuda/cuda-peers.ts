import type { Combining, DevicePeers, PeerPoint, PeerStep } from '../devices/memory.js';
import type { TcclError } from '../errors.js';
import type { CudaContext } from '../runtime/device/cuda/context.js';
import { EVENT_WITHOUT_TIMING, IPC_BYTES, IPC_PEER_ACCESS, type Driver } from '../runtime/device/cuda/functions.js';
import { results } from '../runtime/device/cuda/results.js';
import { CudaKernels, type KernelModules } from './cuda-kernels.js';
import type { CudaBuffer } from './cuda-buffer.js';
import type { CudaSwitch } from './cuda-switch.js';
import { checkNotStuck, stuckOn, workOn, type GpuWork } from './gpu-work.js';

/** Events of a rank, as this process reaches them. */
export type PeerEvents = Readonly<Record<PeerPoint, bigint>>;

/** Events of this rank. */
export interface OwnEvents extends PeerEvents {
  readonly betweenStreams: bigint;
  /** Of all work that was queued before a failure. */
  readonly end: bigint;
}

/** Another rank on this host. */
export interface CudaPeer {
  /** True for a thread of this process, whose addresses and events are valid here. */
  readonly isThread: boolean;
  readonly events: PeerEvents;
}

/** Memory of this rank's that others may have opened. */
interface Shared {
  readonly number: number;
  readonly handle: Uint8Array;
}

/** Bytes before the driver's handle: the number and the address of the memory. */
const HEADER_BYTES = 16;

/**
 * GPUs of ranks of one host that reach each other's memory, or are one. Processes open memory and events by the driver's
 * handles; threads of a process have the same addresses.
 */
export class CudaPeers implements DevicePeers<CudaBuffer>, GpuWork {
  readonly handleBytes = HEADER_BYTES + IPC_BYTES;
  /** NVSwitch that combines, if the GPUs are on one. */
  switch: CudaSwitch | undefined;
  /** Stream of the calls. */
  readonly stream: bigint;
  readonly #context: CudaContext;
  readonly #program: bigint;
  readonly #own: OwnEvents;
  /** By rank; this rank's own is missing. */
  readonly #peers: readonly (CudaPeer | undefined)[];
  readonly #kernels: CudaKernels;
  /** Memory of this rank's by address, and how to free it. */
  readonly #allocated = new Map<bigint, Shared | undefined>();
  readonly #free: (pointer: bigint) => void;
  /** Released memory: to name in the next call, named in the last one, and named before. */
  #released: { readonly pointer: bigint; readonly number: number | undefined }[] = [];
  #named: bigint[] = [];
  #closed: bigint[] = [];
  #nextNumber = 1;
  /** Memory of each other rank, by number. */
  readonly #opened: readonly Map<number, CudaBuffer>[];
  /** Waits for other ranks that were queued, and those of them that are known to be over. */
  #nWaits = 0;
  #nDone = 0;
  #failure: TcclError | undefined;
  #isClosing = false;
  /** All ranks have closed what they had opened. */
  #isOver = false;

  /**
   * @param program stream of the program
   * @param own those of each point have other ranks, too
   * @param free frees memory of this rank's
   */
  constructor(
    context: CudaContext,
    program: bigint,
    own: OwnEvents,
    peers: readonly (CudaPeer | undefined)[],
    free: (pointer: bigint) => void,
  ) {
    this.#context = context;
    this.#program = program;
    this.#own = own;
    this.#peers = peers;
    this.#free = free;
    this.stream = context.makeStream();
    this.#opened = peers.map(() => new Map());
    this.#kernels = new CudaKernels(context);
    workOn(context).add(this);
  }

  get modules(): KernelModules {
    return this.#kernels.modules;
  }

  canCombine(combining: Combining): boolean {
    return this.#kernels.has(combining);
  }

  /** Notes memory that other ranks can open. */
  allocated(pointer: bigint): void {
    this.#allocated.set(pointer, undefined);
  }

  canShare({ pointer }: CudaBuffer): boolean {
    return this.#allocated.has(pointer);
  }

  share({ pointer }: CudaBuffer, handle: Uint8Array): void {
    let shared = this.#allocated.get(pointer);
    if (shared === undefined) {
      shared = { number: this.#nextNumber++, handle: memoryHandle(this.#context, pointer) };
      this.#allocated.set(pointer, shared);
    }
    const view = new DataView(handle.buffer, handle.byteOffset);
    view.setFloat64(0, shared.number, true);
    view.setBigUint64(8, pointer, true);
    handle.set(shared.handle, HEADER_BYTES);
  }

  open(rank: number, handle: Uint8Array): CudaBuffer {
    const view = new DataView(handle.buffer, handle.byteOffset);
    const opened = this.#openedOf(rank);
    const number = view.getFloat64(0, true);
    let buffer = opened.get(number);
    if (buffer === undefined) {
      const pointer =
        this.#peers[rank]?.isThread === true
          ? view.getBigUint64(8, true)
          : openMemory(this.#context, handle.slice(HEADER_BYTES, HEADER_BYTES + IPC_BYTES));
      opened.set(number, (buffer = { pointer, bytes: 0 }));
    }
    return buffer;
  }

  /**
   * Takes memory that is released here. Returns false if it can be freed now: no other rank has it open, and no work on the GPU
   * waits for other ranks. The driver may wait for all work before it frees memory, which may never end.
   */
  retire(pointer: bigint): boolean {
    const shared = this.#allocated.get(pointer);
    this.#allocated.delete(pointer);
    const isInUse = [...workOn(this.#context)].some(({ isBusy }) => isBusy);
    if (this.#isOver || (shared === undefined && !isInUse)) return false;
    this.#released.push({ pointer, number: shared?.number });
    return true;
  }

  get hasRetired(): boolean {
    return this.#released.length > 0;
  }

  retired(most: number): readonly number[] {
    const now = this.#released.splice(0, most);
    this.#closed = this.#named;
    this.#named = now.map(({ pointer }) => pointer);
    return now.flatMap(({ number }) => number ?? []);
  }

  closeRetired(rank: number, numbers: readonly number[]): void {
    for (const number of numbers) this.#close(rank, number);
  }

  freeRetired(): void {
    for (const pointer of this.#closed.splice(0)) this.#free(pointer);
    if (!this.#isClosing) return;
    this.#isOver = true;
    this.switch?.close();
    for (const pointer of this.#named.splice(0)) this.#free(pointer);
    for (const { pointer } of this.#released.splice(0)) this.#free(pointer);
  }

  afterProgram(): void {
    this.#follow(this.stream, this.#program);
  }

  beforeProgram(): void {
    this.#follow(this.#program, this.stream);
  }

  mark(point: PeerPoint): void {
    this.#call('cuEventRecord', (driver) => driver.cuEventRecord(this.#own[point], this.stream));
  }

  waitFor(point: PeerPoint, rank: number): void {
    const peer = this.#peers[rank];
    if (peer === undefined) throw new RangeError(`no other rank ${rank}`);
    this.#nWaits++;
    this.#call('cuStreamWaitEvent', (driver) => driver.cuStreamWaitEvent(this.stream, peer.events[point], 0));
  }

  queue(step: PeerStep<CudaBuffer>): void {
    if (step.combining !== undefined) {
      this.#kernels.launch(step, this.stream);
      return;
    }
    const [source] = step.sources;
    if (source === undefined) return;
    const from = source.buffer.pointer + BigInt(source.offset);
    for (const { buffer, offset } of step.destinations)
      this.#call('cuMemcpyDtoDAsync', (driver) =>
        driver.cuMemcpyDtoDAsync_v2(buffer.pointer + BigInt(offset), from, source.bytes, this.stream),
      );
  }

  async reached(isOver: () => boolean): Promise<void> {
    const hasGivenUp = (): boolean => isOver() || stuckOn(this.#context) !== undefined;
    const nWaits = this.#nWaits;
    await this.#context.reached(this.stream, hasGivenUp);
    if (hasGivenUp()) {
      // The failure of other ranks is that of this device's calls, too, unless another device's work is stuck.
      if (this.#failure === undefined && !isOver()) checkNotStuck(this.#context);
      return;
    }
    this.#nDone = nWaits;
    if (this.switch !== undefined) this.switch.isPending = false;
  }

  abandon(failure: TcclError): void {
    this.#failure = failure;
    this.switch?.abandon();
    this.#context.inAnyCase((driver) => driver.cuEventRecord(this.#own.end, this.stream));
  }

  get stuck(): TcclError | undefined {
    return this.#failure !== undefined && this.#isWaiting() ? this.#failure : undefined;
  }

  closeOpened(): void {
    this.#isClosing = true;
    // Work that waits for a rank that died may come to it yet.
    if (stuckOn(this.#context) !== undefined) return;
    for (const [rank, opened] of this.#opened.entries()) for (const number of [...opened.keys()]) this.#close(rank, number);
    this.#kernels.close();
  }

  /** Ends events, after all ranks have ended their calls. */
  close(): void {
    workOn(this.#context).delete(this);
    this.#context.inAnyCase((driver) => {
      const opened = this.#peers.flatMap((peer) => (peer === undefined || peer.isThread ? [] : Object.values(peer.events)));
      for (const event of [...opened, ...(Object.values(this.#own) as bigint[])]) driver.cuEventDestroy_v2(event);
    });
  }

  get isBusy(): boolean {
    return this.#isPending || this.switch?.isPending === true;
  }

  get #isPending(): boolean {
    return this.#nDone < this.#nWaits;
  }

  /** True until work that was queued before the failure is done. After a fault, there is none. */
  #isWaiting(): boolean {
    if (this.#isPending)
      this.#context.inAnyCase((driver) => {
        if (driver.cuEventQuery(this.#own.end) !== results.NOT_READY) this.#nDone = this.#nWaits;
      });
    return this.#isPending;
  }

  #close(rank: number, number: number): void {
    const opened = this.#openedOf(rank);
    const buffer = opened.get(number);
    opened.delete(number);
    if (buffer === undefined || this.#peers[rank]?.isThread === true) return;
    this.#context.inAnyCase((driver) => driver.cuIpcCloseMemHandle(buffer.pointer));
  }

  #openedOf(rank: number): Map<number, CudaBuffer> {
    const opened = this.#opened[rank];
    if (opened === undefined) throw new RangeError(`no rank ${rank}`);
    return opened;
  }

  /** Lets later work of a stream wait for what another one has now. */
  #follow(later: bigint, earlier: bigint): void {
    this.#call('cuEventRecord', (driver) => driver.cuEventRecord(this.#own.betweenStreams, earlier));
    this.#call('cuStreamWaitEvent', (driver) => driver.cuStreamWaitEvent(later, this.#own.betweenStreams, 0));
  }

  #call(name: string, call: (driver: Driver) => number): void {
    this.#context.run((driver) => {
      this.#context.check(name, call(driver));
    });
  }
}

export function makeEvent(context: CudaContext, flags = EVENT_WITHOUT_TIMING): bigint {
  const out = new BigUint64Array(1);
  context.run((driver) => {
    context.check('cuEventCreate', driver.cuEventCreate(out, flags));
  });
  return out[0] ?? 0n;
}

/** Handle of memory for other processes. */
export function memoryHandle(context: CudaContext, pointer: bigint): Uint8Array {
  const handle = new Uint8Array(IPC_BYTES);
  context.run((driver) => {
    context.check('cuIpcGetMemHandle', driver.cuIpcGetMemHandle(handle, pointer));
  });
  return handle;
}

export function openMemory(context: CudaContext, handle: Uint8Array): bigint {
  const out = new BigUint64Array(1);
  context.run((driver) => {
    context.check('cuIpcOpenMemHandle', driver.cuIpcOpenMemHandle_v2(out, { reserved: handle }, IPC_PEER_ACCESS));
  });
  return out[0] ?? 0n;
}
