import { InvalidUsageError, SystemError } from '../../../errors.js';
import { clockMs, setImmediate, setTimeout } from '../../platform/platform.js';
import {
  deviceAttributes,
  EVENT_WITHOUT_TIMING,
  NON_BLOCKING_STREAM,
  pointerAttributes,
  UUID_BYTES,
  type Driver,
  type FunctionName,
} from './functions.js';
import { isFault, openingError, reasonOf, results } from './results.js';
import { defined } from '../../../defined.js';

/** Time for which each turn of the event loop polls an event, milliseconds. Later, a timer polls it each millisecond. */
const POLLS_MS = 5;

/** Facts that the driver knows about an address. */
interface PointerFacts {
  readonly memoryType: number;
  readonly device: number;
  /** Allocation that the address is in. */
  readonly rangeStart: bigint;
  readonly rangeBytes: number;
}

/** Number of GPUs that the process can use. Starts the driver. @throws InvalidUsageError `UNSUPPORTED` */
export function countDevices(driver: Driver): number {
  const started = driver.cuInit(0);
  if (started !== results.SUCCESS) throw openingError(driver, 'cuInit', started);
  const count = new Int32Array(1);
  const counted = driver.cuDeviceGetCount(count);
  if (counted !== results.SUCCESS || count[0] === 0)
    throw openingError(driver, 'cuDeviceGetCount', counted === results.SUCCESS ? results.NO_DEVICE : counted);
  return defined(count[0]);
}

/**
 * The primary context of a GPU, which other libraries of the process share. It is current only while `run` runs, so that a
 * library's own choice of a GPU stays.
 */
export class CudaContext {
  readonly driver: Driver;
  /** Number of the GPU among those of the process. */
  readonly ordinal: number;
  /** Resolves with the reason after a fault, which ends the context. */
  readonly lost: Promise<string>;
  #lose: (why: string) => void = () => undefined;
  /** The GPU, a `CUdevice`. */
  readonly device: number;
  /** The context, a `CUcontext`. */
  readonly handle: bigint;
  readonly #events: bigint[] = [];
  readonly #streams: bigint[] = [];
  readonly #popped = new BigUint64Array(1);
  readonly #out = new BigUint64Array(1);

  /**
   * @param ordinal below the number of GPUs
   * @throws InvalidUsageError `UNSUPPORTED`; SystemError `OUT_OF_MEMORY`
   */
  constructor(driver: Driver, ordinal: number) {
    this.driver = driver;
    this.ordinal = ordinal;
    this.lost = new Promise((resolve) => (this.#lose = resolve));
    const device = new Int32Array(1);
    const opening = (call: FunctionName, result: number): void => {
      if (result !== results.SUCCESS) throw openingError(driver, call, result);
    };
    opening('cuDeviceGet', driver.cuDeviceGet(device, ordinal));
    this.device = defined(device[0]);
    opening('cuDevicePrimaryCtxRetain', driver.cuDevicePrimaryCtxRetain(this.#out, this.device));
    this.handle = defined(this.#out[0]);
  }

  get name(): string {
    return this.#text('cuDeviceGetName');
  }

  /** Place in the PCI tree, as /sys names it: `0000:1b:00.0`. */
  get busId(): string {
    return this.#text('cuDeviceGetPCIBusId').toLowerCase();
  }

  /** Compute capability × 10. */
  get sm(): number {
    return 10 * this.attribute(deviceAttributes.capabilityMajor) + this.attribute(deviceAttributes.capabilityMinor);
  }

  get uuid(): Uint8Array {
    const uuid = new Uint8Array(UUID_BYTES);
    this.check('cuDeviceGetUuid', this.driver.cuDeviceGetUuid_v2(uuid, this.device));
    return uuid;
  }

  get memoryBytes(): number {
    this.check('cuDeviceTotalMem', this.driver.cuDeviceTotalMem_v2(this.#out, this.device));
    return Number(this.#out[0]);
  }

  /** @param attribute of `deviceAttributes` */
  attribute(attribute: number): number {
    const value = new Int32Array(1);
    this.check('cuDeviceGetAttribute', this.driver.cuDeviceGetAttribute(value, attribute, this.device));
    return defined(value[0]);
  }

  /** Runs calls of the driver while the context is current. They must not wait for promises. */
  run<Result>(work: (driver: Driver) => Result): Result {
    this.check('cuCtxPushCurrent', this.driver.cuCtxPushCurrent_v2(this.handle));
    try {
      return work(this.driver);
    } finally {
      this.driver.cuCtxPopCurrent_v2(this.#popped);
    }
  }

  /** The same for calls that release something: a context that faulted has released it. */
  inAnyCase(work: (driver: Driver) => unknown): void {
    if (this.driver.cuCtxPushCurrent_v2(this.handle) !== results.SUCCESS) return;
    work(this.driver);
    this.driver.cuCtxPopCurrent_v2(this.#popped);
  }

  /**
   * Throws unless a call succeeded.
   * @throws SystemError `OUT_OF_MEMORY`, `DEVICE_LOST`
   */
  check(call: string, result: number): void {
    if (result === results.SUCCESS) return;
    const reason = reasonOf(this.driver, call, result);
    if (isFault(result)) this.#lose(reason);
    throw new SystemError(result === results.OUT_OF_MEMORY ? 'OUT_OF_MEMORY' : 'DEVICE_LOST', reason);
  }

  /** A stream without implicit order with others. */
  makeStream(): bigint {
    return this.run((driver) => {
      this.check('cuStreamCreate', driver.cuStreamCreate(this.#out, NON_BLOCKING_STREAM));
      const stream = defined(this.#out[0]);
      this.#streams.push(stream);
      return stream;
    });
  }

  /** Resolves when a stream has done all that it was given until now, or `isOver` says that nobody waits any more. */
  async reached(stream: bigint, isOver = () => false): Promise<void> {
    const event = this.run(() => this.#events.pop() ?? this.#makeEvent());
    try {
      this.run((driver) => {
        this.check('cuEventRecord', driver.cuEventRecord(event, stream));
      });
      const startMs = clockMs();
      while (!isOver() && !this.#isReached(event)) {
        const isEarly = clockMs() - startMs < POLLS_MS;
        await new Promise<void>((resolve) => {
          if (isEarly) setImmediate(resolve);
          else setTimeout(resolve, 1);
        });
      }
    } finally {
      this.#events.push(event);
    }
  }

  #isReached(event: bigint): boolean {
    return this.run((driver) => {
      const result = driver.cuEventQuery(event);
      if (result === results.NOT_READY) return false;
      this.check('cuEventQuery', result);
      return true;
    });
  }

  /** Facts of an address of device memory; undefined for memory that the driver does not know, or not any more. */
  factsOf(pointer: bigint): PointerFacts | undefined {
    return this.run((driver) => {
      const out = this.#out;
      const ask = (attribute: number): bigint | undefined => {
        out[0] = 0n;
        const result = driver.cuPointerGetAttribute(out, attribute, pointer);
        if (result === results.INVALID_VALUE) return undefined;
        this.check('cuPointerGetAttribute', result);
        return out[0];
      };
      const memoryType = ask(pointerAttributes.memoryType);
      if (memoryType === undefined) return undefined;
      return {
        memoryType: Number(memoryType),
        device: Number(ask(pointerAttributes.device) ?? -1),
        rangeStart: ask(pointerAttributes.rangeStart) ?? 0n,
        rangeBytes: Number(ask(pointerAttributes.rangeSize) ?? 0n),
      };
    });
  }

  /** Releases streams, events and the context. After a fault, they are gone already. */
  close(): void {
    this.inAnyCase((driver) => {
      for (const event of this.#events.splice(0)) driver.cuEventDestroy_v2(event);
      for (const stream of this.#streams.splice(0)) driver.cuStreamDestroy_v2(stream);
    });
    this.driver.cuDevicePrimaryCtxRelease_v2(this.device);
  }

  #text(call: 'cuDeviceGetName' | 'cuDeviceGetPCIBusId'): string {
    const bytes = new Uint8Array(256);
    this.check(call, this.driver[call](bytes, bytes.length, this.device));
    return new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)));
  }

  #makeEvent(): bigint {
    this.check('cuEventCreate', this.driver.cuEventCreate(this.#out, EVENT_WITHOUT_TIMING));
    return defined(this.#out[0]);
  }
}

/** The GPU that an option names, or that of a rank on its host. */
export function chooseDevice(count: number, localRank: number, wanted: number | undefined): number {
  if (wanted === undefined) return localRank % count;
  if (wanted >= 0 && wanted < count) return wanted;
  throw new InvalidUsageError(
    'UNSUPPORTED',
    `cuda: there is no GPU ${wanted}; the process has ${count}, from 0 to ${count - 1}: ` +
      'CUDA_VISIBLE_DEVICES chooses and numbers them',
  );
}
