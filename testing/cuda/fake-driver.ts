import {
  DEVICE_MEMORY,
  deviceAttributes,
  EVENT_OF_PROCESSES,
  EVENT_WITHOUT_TIMING,
  functions,
  jitOptions,
  launchParameters,
  NON_BLOCKING_STREAM,
  pointerAttributes,
  UUID_BYTES,
  type Driver,
  type FunctionName,
} from '../../src/runtime/device/cuda/functions.js';
import { MemoryError } from '../ptx/memory.js';
import { parseModule, type Kernel } from '../ptx/parse.js';
import { generator, Running } from '../ptx/run.js';
import { checkValues, put, putLong } from './fake-arguments.js';
import { bytesIn, FakeHost } from './fake-host.js';
import { FakeMachine, FakeMemory } from './fake-machine.js';
import { ofProcesses } from './fake-processes.js';
import { texts, type FakeResult } from './fake-results.js';
import { FakeStreams, type Stream } from './fake-streams.js';
import { ofVirtualMemory } from './fake-virtual.js';

export { FakeMachine, MACHINE_BYTES } from './fake-machine.js';

export interface FakeOptions {
  readonly devices?: number;
  /** Of each device. */
  readonly memoryBytes?: number;
  /** Decides the order of streams and of the threads of kernels. */
  readonly seed?: number;
  /** GPUs that processes share; without it, the driver has its own. */
  readonly machine?: FakeMachine;
  /** Pairs of GPUs that reach each other's memory. */
  readonly isPeer?: (from: number, to: number) => boolean;
  /** The GPUs are on an NVSwitch that combines and multiplies. */
  readonly hasMulticast?: boolean;
}

/** Handles of events: their numbers in the machine are added. */
const FIRST_EVENT = 0x5600_0000_0000n;

/** Instructions of a kernel before other work has its turn, and those after which it counts as endless. */
const SLICE_STEPS = 20_000;
const MAX_STEPS = 100_000_000;

const CAPABILITY = { major: 9, minor: 0 };
/** Functions that work without a context, or after a fault of it. */
const always: readonly FunctionName[] = (Object.keys(functions) as FunctionName[]).filter((name) =>
  /^cu(Init|Driver|GetError|Device|CtxP)/.test(name),
);

/**
 * A driver without a GPU. Its memory is the host's; work of streams is done late, in an order of the seed's choice; kernels are
 * interpreted. What a driver leaves undefined or refuses is an error here: arguments of other kinds, host memory of which
 * a part is page-locked, handles that were destroyed, calls without a context.
 */
// eslint-disable-next-line @typescript-eslint/no-unsafe-declaration-merging -- the constructor adds the functions
export class FakeDriver {
  /** Numbers of calls of each function. */
  readonly calls = new Map<FunctionName, number>();
  readonly host = new FakeHost();
  readonly #machine: FakeMachine;
  /** As the driver's own copies reach it, and as kernels of each GPU do. */
  readonly #memory: FakeMemory;
  readonly #memories: readonly FakeMemory[];
  readonly #streams: FakeStreams;
  readonly #random: (below: number) => number;
  readonly #options: Required<FakeOptions>;
  readonly #failures = new Map<FunctionName, { result: number; after: number }>();
  /** Memory that was allocated, that was opened, and events, by this driver. */
  readonly #allocated = new Set<bigint>();
  readonly #opened: bigint[] = [];
  readonly #events = new Set<bigint>();
  /** Of memory apart from its addresses, what was not given back. */
  readonly #virtual = new Set<string>();
  /** Everything else that has a handle. */
  readonly #handles = new Map<bigint, unknown>();
  readonly #contexts = new Map<bigint, { readonly device: number; retained: number }>();
  readonly #current: bigint[] = [];
  #nextHandle = 0x5500_0000_0000n;
  #fault = 0;
  #isStarted = false;
  #isGoingOn = false;

  constructor(options: FakeOptions = {}) {
    const machine = options.machine ?? new FakeMachine();
    this.#options = { devices: 1, memoryBytes: 2 ** 30, seed: 1, machine, isPeer: () => true, hasMulticast: false, ...options };
    this.#machine = machine;
    this.#memory = new FakeMemory(machine, this.host);
    this.#memories = Array.from({ length: this.#options.devices }, (_, device) => new FakeMemory(machine, this.host, device));
    this.#random = generator(this.#options.seed);
    this.#streams = new FakeStreams(this.#options.devices, this.#random, () => machine.pause());
    const own = {
      ...this.#ofDevices(),
      ...this.#ofMemory(),
      ...ofVirtualMemory({
        machine,
        devices: this.#options.devices,
        hasMulticast: this.#options.hasMulticast,
        hasRoom: (device, bytes) => this.#hasRoom(device, bytes),
        left: this.#virtual,
      }),
      ...this.#ofStreams(),
      ...this.#ofEvents(),
      ...ofProcesses({
        machine,
        isPeer: this.#options.isPeer,
        opened: this.#opened,
        device: () => this.#device,
        deviceOf: (context) => this.#contexts.get(context)?.device,
        eventOf: (handle) => this.#eventOf(handle),
        addEvent: (event) => this.#addEvent(event),
      }),
      ...this.#ofKernels(),
    };
    for (const [name, call] of Object.entries(own) as [FunctionName, (...values: never[]) => FakeResult][])
      Object.assign(this, { [name]: (...values: never[]) => this.#begin(name, values) ?? call(...values) });
  }

  /** Lets a function return a result once, after so many further calls of it. */
  fail(name: FunctionName, result: FakeResult, after = 0): void {
    this.#failures.set(name, { result, after });
  }

  /** Ends the context, as a fault of a kernel does. */
  lose(result: FakeResult): void {
    this.#fault = result;
    this.#streams.clear();
  }

  /** Lets GPUs do no more work of this process, as if it took long. */
  halt(): void {
    this.#streams.isHalted = true;
  }

  addressOf(view: ArrayBufferView): bigint {
    return this.host.addressOf(view);
  }

  /** The memory behind an address. */
  bytesAt(pointer: bigint, bytes: number): Uint8Array {
    const all = this.#memory.bytesAt(pointer);
    if (bytes > all.length) throw new MemoryError(`${bytes} bytes at 0x${pointer.toString(16)}, where ${all.length} are`);
    return all.subarray(0, bytes);
  }

  /** Numbers of things that were not given back. */
  get left(): Record<'allocations' | 'virtual' | 'opened' | 'locked' | 'handles' | 'contexts' | 'current', number> {
    const contexts = [...this.#contexts.values()].filter(({ retained }) => retained > 0).length;
    const [locked, current, handles] = [this.host.nLocked, this.#current.length, this.#handles.size + this.#events.size];
    const [allocations, virtual, opened] = [this.#allocated.size, this.#virtual.size, this.#opened.length];
    return { allocations, virtual, opened, locked, handles, contexts, current };
  }

  /** The result of a call that does not take place. */
  #begin(name: FunctionName, values: readonly unknown[]): number | undefined {
    this.calls.set(name, (this.calls.get(name) ?? 0) + 1);
    checkValues(name, values);
    const failure = this.#failures.get(name);
    if (failure !== undefined && failure.after-- === 0) {
      this.#failures.delete(name);
      return failure.result;
    }
    if (!this.#isStarted && name !== 'cuInit' && !/^cu(GetError|DriverGetVersion)/.test(name)) return 3;
    if (always.includes(name)) return undefined;
    if (this.#fault !== 0) return this.#fault;
    return this.#current.length === 0 ? 201 : undefined;
  }

  #ofDevices(): Pick<Driver, Extract<FunctionName, `cu${'Init' | 'Driver' | 'GetError' | 'Device' | 'CtxP'}${string}`>> {
    const isDevice = (device: number): boolean => device >= 0 && device < this.#options.devices;
    const textOf = (result: number, out: [string | null], which: 0 | 1): FakeResult => {
      out[0] = (texts as Partial<Record<number, readonly [string, string]>>)[result]?.[which] ?? null;
      return out[0] === null ? 1 : 0;
    };
    return {
      cuInit: () => {
        this.#isStarted = true;
        return this.#options.devices === 0 ? 100 : 0;
      },
      cuDriverGetVersion: (out) => put(out, 13000),
      cuGetErrorName: (result, out) => textOf(result, out, 0),
      cuGetErrorString: (result, out) => textOf(result, out, 1),
      cuDeviceGetCount: (out) => put(out, this.#options.devices),
      cuDeviceGet: (out, ordinal) => (isDevice(ordinal) ? put(out, ordinal) : 101),
      cuDeviceGetName: (out, bytes, device) => {
        bytesIn(out, bytes).set(new TextEncoder().encode(`fake GPU ${device}\0`));
        return 0;
      },
      cuDeviceGetUuid_v2: (out, device) => {
        bytesIn(out, UUID_BYTES).fill(device + 1);
        return 0;
      },
      cuDeviceGetPCIBusId: (out, bytes, device) => {
        bytesIn(out, bytes).set(new TextEncoder().encode(`0000:${(16 + device).toString(16).toUpperCase()}:00.0\0`));
        return 0;
      },
      cuDeviceGetAttribute: (out, attribute) => {
        const { multiprocessors, capabilityMajor, capabilityMinor, virtualMemory, fileDescriptors, multicast } = deviceAttributes;
        const known = new Map<number, number>([
          [multiprocessors, 4],
          [capabilityMajor, CAPABILITY.major],
          [capabilityMinor, CAPABILITY.minor],
          [virtualMemory, 1],
          [fileDescriptors, 1],
          [multicast, Number(this.#options.hasMulticast)],
        ]);
        const value = known.get(attribute);
        return value === undefined ? 1 : put(out, value);
      },
      cuDeviceCanAccessPeer: (out, from, to) => put(out, Number(from !== to && this.#options.isPeer(from, to))),
      cuDeviceTotalMem_v2: (out) => putLong(out, this.#options.memoryBytes),
      cuDevicePrimaryCtxRetain: (out, device) => {
        if (!isDevice(device)) return 101;
        let [handle] = [...this.#contexts].find(([, context]) => context.device === device) ?? [];
        if (handle === undefined) this.#contexts.set((handle = this.#nextHandle++), { device, retained: 0 });
        const context = this.#contexts.get(handle);
        if (context !== undefined) context.retained++;
        return putLong(out, handle);
      },
      cuDevicePrimaryCtxRelease_v2: (device) => {
        const context = [...this.#contexts.values()].find((each) => each.device === device);
        if (context === undefined || context.retained === 0) return 201;
        context.retained--;
        return 0;
      },
      cuCtxPushCurrent_v2: (context) => {
        if ((this.#contexts.get(context)?.retained ?? 0) === 0) return 201;
        this.#current.push(context);
        return 0;
      },
      cuCtxPopCurrent_v2: (out) => {
        const context = this.#current.pop();
        return context === undefined ? 201 : putLong(out, context);
      },
    };
  }

  #ofMemory(): Pick<
    Driver,
    Extract<FunctionName, `cu${'MemAlloc' | 'MemFree' | 'Memset' | 'MemHost' | 'Memcpy' | 'Pointer'}${string}`>
  > {
    return {
      cuMemAlloc_v2: (out, bytes) => {
        if (bytes === 0) return 1;
        const device = this.#device;
        if (!this.#hasRoom(device, bytes)) return 2;
        const pointer = this.#machine.allocate(device, bytes);
        // Memory begins with what others left in it.
        this.#memory.bytesAt(pointer).fill(1 + this.#random(255));
        this.#allocated.add(pointer);
        return putLong(out, pointer);
      },
      cuMemFree_v2: (pointer) => {
        if (!this.#allocated.has(pointer)) return 1;
        this.#mayWait();
        const pids = this.#machine.openedBy(pointer);
        if (pids.length > 0)
          throw new Error(`processes ${pids.join(', ')} have memory open that is freed: CUDA leaves this undefined`);
        this.#allocated.delete(pointer);
        this.#machine.free(pointer);
        return this.#afterWork();
      },
      cuMemsetD8Async: (pointer, value, bytes, stream) =>
        this.#queue(stream, [[pointer, bytes]], () => this.bytesAt(pointer, bytes).fill(value)),
      cuMemHostRegister_v2: (view, bytes) => (this.host.lock(bytesIn(view, bytes)) ? 0 : 712),
      cuMemHostUnregister: (view) => {
        this.#work(() => this.#streams.finishAll(this.#device));
        return this.host.unlock(bytesIn(view)) ? this.#afterWork() : 713;
      },
      cuMemHostGetDevicePointer_v2: (out, view) => {
        const bytes = bytesIn(view);
        return this.host.isLocked(bytes) === true ? putLong(out, this.host.map(bytes)) : 1;
      },
      cuPointerGetAttribute: (out, attribute, pointer) => {
        const found = this.#machine.rangeAt(pointer);
        if (found === undefined) return 1;
        const { memoryType, device, rangeStart, rangeSize } = pointerAttributes;
        if (attribute === memoryType) return put(out, DEVICE_MEMORY);
        if (attribute === device) return put(out, found.device);
        if (attribute === rangeStart) return putLong(out, found.pointer);
        return attribute === rangeSize ? putLong(out, found.bytes) : 1;
      },
      cuMemcpyHtoDAsync_v2: (pointer, view, bytes, stream) => {
        const from = bytesIn(view, bytes);
        const isLocked = this.host.isLocked(from);
        if (isLocked === undefined) return 1;
        // Pageable memory is copied before the call returns; page-locked memory when the stream is there.
        const values = isLocked ? from : from.slice();
        return this.#queue(stream, [[pointer, bytes]], () => this.bytesAt(pointer, bytes).set(values));
      },
      cuMemcpyDtoHAsync_v2: (view, pointer, bytes, stream) => {
        const to = bytesIn(view, bytes);
        const isLocked = this.host.isLocked(to);
        if (isLocked === undefined) return 1;
        const result = this.#queue(stream, [[pointer, bytes]], () => to.set(this.bytesAt(pointer, bytes)));
        if (result !== 0 || isLocked) return result;
        this.#finish(stream);
        return this.#afterWork();
      },
      cuMemcpyDtoDAsync_v2: (to, from, bytes, stream) =>
        this.#queue(
          stream,
          [
            [to, bytes],
            [from, bytes],
          ],
          () => this.bytesAt(to, bytes).set(this.bytesAt(from, bytes)),
        ),
    };
  }

  #ofStreams(): Pick<Driver, Extract<FunctionName, `cuStream${string}`>> {
    return {
      cuStreamCreate: (out, flags) => putLong(out, this.#add(this.#streams.open(this.#device, flags !== NON_BLOCKING_STREAM))),
      cuStreamDestroy_v2: (handle) => {
        const stream = this.#handles.get(handle) as Stream | undefined;
        if (stream === undefined) return 400;
        this.#streams.close(stream);
        this.#handles.delete(handle);
        return 0;
      },
      cuStreamSynchronize: (handle) => {
        if (this.#streamOf(handle) === undefined) return 400;
        this.#finish(handle);
        return this.#afterWork();
      },
      cuStreamWaitEvent: (handle, event, flags) => {
        const [stream, source] = [this.#streamOf(handle), this.#eventOf(event)?.source];
        if (stream === undefined || source === undefined) return 400;
        if (flags !== 0) return 1;
        const wanted = this.#machine.recorded(source);
        this.#streams.queue(
          stream,
          () => true,
          () => this.#machine.hasReached(source, wanted),
        );
        this.#goOn();
        return 0;
      },
    };
  }

  #ofEvents(): Pick<Driver, Extract<FunctionName, `cuEvent${string}`>> {
    return {
      cuEventCreate: (out, flags) => {
        // An event of several processes has no times.
        const isShared = (flags & EVENT_OF_PROCESSES) !== 0;
        if (isShared && (flags & EVENT_WITHOUT_TIMING) === 0) return 1;
        return putLong(out, this.#addEvent(this.#machine.makeEvent(isShared)));
      },
      cuEventDestroy_v2: (handle) => {
        if (this.#eventOf(handle) === undefined) return 400;
        this.#machine.endEvent(Number(handle - FIRST_EVENT));
        this.#events.delete(handle);
        return 0;
      },
      cuEventRecord: (handle, stream) => {
        const [source, given] = [this.#eventOf(handle)?.source, this.#streamOf(stream)];
        if (source === undefined || given === undefined) return 400;
        const record = this.#machine.record(source);
        this.#streams.queue(given, () => {
          this.#machine.reach(source, record);
          return true;
        });
        this.#goOn();
        return 0;
      },
      cuEventQuery: (handle) => {
        const source = this.#eventOf(handle)?.source;
        if (source === undefined) return 400;
        this.#work(() => this.#streams.progress());
        if (this.#fault !== 0) return this.#fault;
        return this.#machine.hasReached(source, this.#machine.recorded(source)) ? 0 : 600;
      },
    };
  }

  #ofKernels(): Pick<Driver, Extract<FunctionName, `cu${'Module' | 'Launch'}${string}`>> {
    return {
      cuModuleLoadDataEx: (out, image, nOptions, options, values) => {
        const bytes = bytesIn(image);
        if (bytes.at(-1) !== 0) throw new Error('the text of a module ends with a byte of 0');
        const text = new TextDecoder().decode(bytes.subarray(0, -1));
        if (Number(/\.target sm_(\d+)/.exec(text)?.[1]) > 10 * CAPABILITY.major + CAPABILITY.minor) return 209;
        try {
          return putLong(out, this.#add(parseModule(text)));
        } catch (error) {
          const words = new Uint32Array(options.buffer, options.byteOffset, nOptions);
          const addresses = new BigUint64Array(values.buffer, values.byteOffset, nOptions);
          const log = this.host.viewAt(addresses[words.indexOf(jitOptions.errorLog)] ?? 0n);
          new TextEncoder().encodeInto(`ptxas: ${(error as Error).message}\0`, log);
          return 218;
        }
      },
      cuModuleUnload: (module) => {
        const kernels = this.#handles.get(module) as ReadonlyMap<string, Kernel> | undefined;
        if (kernels === undefined) return 400;
        this.#mayWait();
        for (const kernel of [module, ...this.#handlesOf(kernels)]) this.#handles.delete(kernel);
        return 0;
      },
      cuModuleGetFunction: (out, module, name) => {
        const kernel = (this.#handles.get(module) as ReadonlyMap<string, Kernel> | undefined)?.get(name);
        return kernel === undefined ? 500 : putLong(out, this.#add(kernel));
      },
      cuLaunchKernel: (handle, blocks, gridY, gridZ, threads, blockY, blockZ, shared, stream, list, extra) => {
        const kernel = this.#handles.get(handle) as Kernel | undefined;
        if (kernel === undefined) return 400;
        if (gridY * gridZ * blockY * blockZ !== 1 || shared !== 0 || list !== 0n || blocks < 1 || threads < 1 || threads > 1024)
          return 1;
        const given = this.#launchBytes(extra);
        if (given.length !== kernel.parameterBytes) return 1;
        const parameters = Object.fromEntries(
          [...kernel.parameters].map(([name, { offset, bytes }]) => [name, given.subarray(offset, offset + bytes)]),
        );
        const memory = this.#memories[this.#device] ?? this.#memory;
        const seed = 1 + this.#random(1000);
        let running: Running | undefined;
        return this.#queue(stream, [], () => {
          running ??= new Running(memory, [{ kernel, blocks, threads, parameters }], { seed, maxSteps: MAX_STEPS });
          return running.advance(SLICE_STEPS);
        });
      },
    };
  }

  /** A copy of the parameters that cuLaunchKernel's last argument leads to. */
  #launchBytes(extra: ArrayBufferView): Uint8Array {
    const words = new BigUint64Array(extra.buffer, extra.byteOffset, extra.byteLength / 8);
    const [address, at = 0n, bytes, length = 0n, end] = words;
    if (Number(address) !== launchParameters.address || Number(bytes) !== launchParameters.bytes || end !== 0n)
      throw new Error('parameters of a launch are its address, its length, and the end');
    const size = this.host.viewAt(length);
    return this.host.viewAt(at).slice(0, Number(new DataView(size.buffer, size.byteOffset).getBigUint64(0, true)));
  }

  #hasRoom(device: number, bytes: number): boolean {
    return this.#machine.used(device) + bytes <= this.#options.memoryBytes;
  }

  /** GPU of the current context. */
  get #device(): number {
    return this.#contexts.get(this.#current.at(-1) ?? 0n)?.device ?? 0;
  }

  #eventOf(handle: bigint): ReturnType<FakeMachine['event']> {
    return this.#machine.event(Number(handle - FIRST_EVENT));
  }

  #addEvent(event: number): bigint {
    const handle = FIRST_EVENT + BigInt(event);
    this.#events.add(handle);
    return handle;
  }

  #handlesOf(kernels: ReadonlyMap<string, Kernel>): bigint[] {
    const own = new Set<unknown>(kernels.values());
    return [...this.#handles].filter(([, value]) => own.has(value)).map(([handle]) => handle);
  }

  #add(value: unknown): bigint {
    const handle = this.#nextHandle++;
    this.#handles.set(handle, value);
    return handle;
  }

  #streamOf(handle: bigint): Stream | undefined {
    return handle === 0n ? this.#streams.legacy(this.#device) : (this.#handles.get(handle) as Stream | undefined);
  }

  /** Gives work on parts of memory to a stream; it returns false while it is not done. */
  #queue(handle: bigint, parts: readonly (readonly [bigint, number])[], run: () => unknown): FakeResult {
    const stream = this.#streamOf(handle);
    if (stream === undefined) return 400;
    const isInside = ([pointer, bytes]: readonly [bigint, number]): boolean => {
      const found = this.#machine.rangeAt(pointer);
      return found !== undefined && pointer + BigInt(bytes) <= found.pointer + BigInt(found.bytes);
    };
    if (!parts.every(isInside)) return 1;
    this.#streams.queue(stream, () => run() !== false);
    this.#goOn();
    return 0;
  }

  /** Lets work go on between calls, where processes share GPUs. */
  #goOn(): void {
    if (this.#isGoingOn || !this.#machine.isShared) return;
    this.#isGoingOn = true;
    setTimeout(() => {
      this.#isGoingOn = false;
      this.#work(() => this.#streams.progress());
      if (this.#streams.hasWork) this.#goOn();
    }, 1).unref();
  }

  /** Waits for all work, or not: «this API may perform implicit synchronization». */
  #mayWait(): void {
    if (this.#random(2) === 0) this.#work(() => this.#streams.finishAll(this.#device));
  }

  #finish(handle: bigint): void {
    const stream = this.#streamOf(handle);
    if (stream !== undefined) this.#work(() => this.#streams.finish(stream));
  }

  /** Does work of streams; a fault of a kernel ends the context. */
  #work(run: () => void): void {
    try {
      run();
    } catch (error) {
      if (!(error instanceof MemoryError)) throw error;
      const isBeyond = /^(out of bounds|no memory)/.test(error.message);
      this.lose(isBeyond ? 700 : error.message.startsWith('misaligned') ? 716 : 719);
    }
  }

  #afterWork(): FakeResult {
    return this.#fault as FakeResult;
  }
}

// eslint-disable-next-line @typescript-eslint/no-unsafe-declaration-merging, @typescript-eslint/no-empty-object-type -- above
export interface FakeDriver extends Driver {}
