import type { Combining, PeerStep } from '../devices/memory.js';
import type { CudaContext } from '../runtime/device/cuda/context.js';
import { deviceAttributes, launchParameters } from '../runtime/device/cuda/functions.js';
import { results } from '../runtime/device/cuda/results.js';
import { canCombine, type ElementType, type Operator } from '../runtime/device/ptx/element-types.js';
import {
  elementTypes,
  kernelFor,
  kernelName,
  levelsOf,
  moduleText,
  operators,
  type KernelDescription,
} from '../runtime/device/ptx/kernels.js';
import { RECORD_BYTES, writeStep } from '../runtime/device/ptx/step-record.js';
import type { CudaBuffer } from './cuda-buffer.js';

/** Bytes that a thread combines in one turn of its loop: four vectors. */
const THREAD_BYTES = 64;
const WARP = 32;
/** All kernels have the registers for as many (docs/notes/cuda.md). */
const MOST_THREADS = 512;
/** Blocks of a multiprocessor: its threads hide the latency of memory from each other. */
const BLOCKS_EACH = 2;

interface Kernel {
  readonly module: bigint;
  readonly entry: bigint;
}

/** Kernels of a GPU, each loaded when a call needs it first. */
export class KernelModules {
  readonly multiprocessors: number;
  readonly #context: CudaContext;
  readonly #level: number;
  /** By name; undefined for those that the GPU or the driver does not have. */
  readonly #kernels = new Map<string, Kernel | undefined>();

  constructor(context: CudaContext) {
    this.#context = context;
    const { capabilityMajor, capabilityMinor, multiprocessors } = deviceAttributes;
    this.#level = 10 * context.attribute(capabilityMajor) + context.attribute(capabilityMinor);
    this.multiprocessors = context.attribute(multiprocessors);
  }

  /** The kernel's function, a `CUfunction`; undefined where the GPU or the driver does not have it. */
  entryOf(description: KernelDescription): bigint | undefined {
    const name = kernelName(description);
    if (!this.#kernels.has(name)) {
      const level = levelsOf(description).findLast((each) => each <= this.#level);
      this.#kernels.set(name, level === undefined ? undefined : this.#load(moduleText([description], level), name));
    }
    return this.#kernels.get(name)?.entry;
  }

  close(): void {
    this.#context.inAnyCase((driver) => {
      for (const kernel of this.#kernels.values()) if (kernel !== undefined) driver.cuModuleUnload(kernel.module);
    });
    this.#kernels.clear();
  }

  /** Undefined where the driver does not take the text: one that is older than the text's version of PTX. */
  #load(text: string, name: string): Kernel | undefined {
    const out = new BigUint64Array(1);
    return this.#context.run((driver) => {
      const image = new TextEncoder().encode(`${text}\0`);
      const loaded = driver.cuModuleLoadDataEx(out, image, 0, new Uint32Array(1), new BigUint64Array(1));
      if (loaded === results.UNSUPPORTED_PTX_VERSION) return undefined;
      this.#context.check('cuModuleLoadDataEx', loaded);
      const [module = 0n] = out;
      this.#context.check('cuModuleGetFunction', driver.cuModuleGetFunction(out, module, name));
      return { module, entry: out[0] ?? 0n };
    });
  }
}

/** Parameters of a kernel, in memory whose address launches have. */
export class LaunchParameters {
  readonly bytes: Uint8Array;
  /** The last argument of cuLaunchKernel. */
  readonly extra: BigUint64Array;
  readonly #length: BigUint64Array;

  constructor(context: CudaContext, length: number) {
    const { address, bytes, end } = launchParameters;
    this.bytes = new Uint8Array(length);
    this.#length = BigUint64Array.of(BigInt(length));
    const places = [this.bytes, this.#length].map((view) => context.driver.addressOf(view)) as [bigint, bigint];
    this.extra = BigUint64Array.of(BigInt(address), places[0], BigInt(bytes), places[1], BigInt(end));
  }
}

/** Kernels of a GPU that combine arrays of its own memory and of other GPUs', in the order of a stream. */
export class CudaKernels {
  readonly modules: KernelModules;
  readonly #context: CudaContext;
  readonly #parameters: LaunchParameters;

  constructor(context: CudaContext) {
    this.#context = context;
    this.modules = new KernelModules(context);
    this.#parameters = new LaunchParameters(context, RECORD_BYTES);
  }

  /** True if there is a kernel, which is loaded then. */
  has(combining: Combining): boolean {
    return this.#entryOf(combining) !== undefined;
  }

  /** Queues a step on a stream. The driver has read its record when this returns. */
  launch({ sources, destinations, combining }: PeerStep<CudaBuffer>, stream: bigint): void {
    const entry = combining && this.#entryOf(combining);
    const bytes = sources[0]?.bytes ?? 0;
    if (entry === undefined || combining === undefined) throw new RangeError('no kernel for the step');
    const addresses = (parts: PeerStep<CudaBuffer>['sources']): bigint[] =>
      parts.map(({ buffer, offset }) => buffer.pointer + BigInt(offset));
    writeStep(new DataView(this.#parameters.bytes.buffer), 0, {
      bytes,
      sources: addresses(sources),
      destinations: addresses(destinations),
      divisor: sources.length,
      scalars: combining.operator === 'premulSum' ? (combining.scalars ?? []) : [],
    });
    const { blocks, threads } = gridOf(bytes, this.modules.multiprocessors);
    this.#context.run((driver) => {
      const result = driver.cuLaunchKernel(entry, blocks, 1, 1, threads, 1, 1, 0, stream, 0n, this.#parameters.extra);
      this.#context.check('cuLaunchKernel', result);
    });
  }

  close(): void {
    this.modules.close();
  }

  #entryOf(combining: Combining): bigint | undefined {
    const elements = elementsOf(combining);
    return elements && this.modules.entryOf(kernelFor('stream', elements));
  }
}

/** Elements and operator as kernels have them; undefined where none combines them. */
export function elementsOf({ type, operator }: Combining): { type: ElementType; operator: Operator } | undefined {
  if (!(elementTypes as readonly string[]).includes(type) || !(operators as readonly string[]).includes(operator))
    return undefined;
  const elements = { type: type as ElementType, operator: operator as Operator };
  return canCombine(elements.type, elements.operator) ? elements : undefined;
}

/** Threads for bytes of each array: as many as have work in one turn, then as many as the GPU runs at a time. */
export function gridOf(bytes: number, multiprocessors: number): { readonly blocks: number; readonly threads: number } {
  const wanted = Math.max(Math.ceil(bytes / THREAD_BYTES), 1);
  const threads = Math.min(Math.ceil(wanted / WARP) * WARP, MOST_THREADS);
  return { blocks: Math.min(Math.ceil(wanted / threads), BLOCKS_EACH * multiprocessors), threads };
}
