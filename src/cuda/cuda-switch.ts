import type { Combining, DeviceSwitch, SwitchedCall } from '../devices/memory.js';
import type { CudaContext } from '../runtime/device/cuda/context.js';
import type { Driver } from '../runtime/device/cuda/functions.js';
import { isNarrow } from '../runtime/device/ptx/element-types.js';
import { kernelFor, type KernelDescription } from '../runtime/device/ptx/kernels.js';
import { RECORD_BYTES, writeStep } from '../runtime/device/ptx/step-record.js';
import { hasMulticast } from '../runtime/device/ptx/wires.js';
import type { CudaBuffer } from './cuda-buffer.js';
import { elementsOf, LaunchParameters, type KernelModules } from './cuda-kernels.js';
import type { SwitchMemory } from './switch-memory.js';
import { isOnSwitch, roundsOf, SLOT_BYTES, switchSteps, type SwitchCall, type SwitchView } from './switch-steps.js';

/** Bytes of a part for which another block is worth its start. */
const BLOCK_BYTES = 1 << 14;
/** Steps of a block in a launch: more would need more memory for their records. */
const LAUNCH_STEPS = 48;
/** Launches whose records wait on the host. */
const RECORDS = 4;
const PARAMETER_BYTES = 24;
const WARP = 32;
const MOST_THREADS = 512;
/** Bytes that a thread moves in one turn of its loop: four vectors. */
const THREAD_BYTES = 64;
const PAGE_BYTES = 65536;

/**
 * Collectives of GPUs on an NVSwitch, each rank on a GPU of its own: NVLS. A call is a kernel of each rank, whose blocks wait for
 * those of the other ranks by counters. All ranks have agreed on the call before any of them launches it, so all kernels come; if
 * a rank ends before, a word in memory ends the kernels of the others.
 */
export class CudaSwitch implements DeviceSwitch<CudaBuffer> {
  readonly #context: CudaContext;
  readonly #modules: KernelModules;
  readonly #memory: SwitchMemory;
  readonly #view: SwitchView;
  readonly #stream: bigint;
  /** Stream of the copy that ends kernels which wait. */
  readonly #aborting: bigint;
  /** Memory of the GPU: the records of a launch, then the word that ends kernels. */
  #records = 0n;
  readonly #recordBytes: number;
  /** Rounds of a launch, whose turns have at most a step for each part, and two more. */
  readonly #launchRounds: number;
  /** Page-locked memory of the host, with records of some launches. */
  readonly #host: Uint8Array;
  #nLaunches = 0;
  /** Work was queued that nobody has waited for. */
  isPending = false;
  /** Rounds that each block has made, the same on all ranks. */
  readonly #rounds: number[];
  readonly #parameters: LaunchParameters;
  readonly #one = Uint32Array.of(1);
  #isOver = false;

  /**
   * @param stream of the calls
   * @param memory which this closes
   */
  constructor(
    context: CudaContext,
    modules: KernelModules,
    stream: bigint,
    memory: SwitchMemory,
    { rank, nRanks, nBlocks }: { readonly rank: number; readonly nRanks: number; readonly nBlocks: number },
  ) {
    this.#context = context;
    this.#modules = modules;
    this.#stream = stream;
    this.#memory = memory;
    const { own, all } = memory;
    const slotBytes = Math.floor(SLOT_BYTES / nRanks / 16) * 16 * nRanks;
    this.#view = { own, all, rank, nRanks, nBlocks, slotBytes };
    this.#rounds = new Array<number>(nBlocks).fill(0);
    this.#launchRounds = Math.max(Math.floor(LAUNCH_STEPS / (nRanks + 2)), 1);
    this.#recordBytes = nBlocks * this.#launchRounds * (nRanks + 2) * RECORD_BYTES;
    // Memory of WebAssembly is whole pages, which nothing else uses.
    const pages = Math.ceil((RECORDS * this.#recordBytes) / PAGE_BYTES);
    this.#host = new Uint8Array(new WebAssembly.Memory({ initial: pages, maximum: pages }).buffer);
    this.#aborting = context.makeStream();
    this.#parameters = new LaunchParameters(context, PARAMETER_BYTES);
    const out = new BigUint64Array(1);
    this.#call('cuMemHostRegister', (driver) => driver.cuMemHostRegister_v2(this.#host, this.#host.length, 0));
    try {
      this.#call('cuMemAlloc', (driver) => driver.cuMemAlloc_v2(out, this.#recordBytes + 8));
      this.#records = out[0] ?? 0n;
      this.#call('cuMemsetD8Async', (driver) => driver.cuMemsetD8Async(this.#abort, 0, 8, stream));
    } catch (error) {
      this.#end();
      throw error;
    }
  }

  takes({ name, combining, elementBytes, count }: SwitchedCall<CudaBuffer>): boolean {
    if (this.#isOver || count === 0 || !isOnSwitch(name)) return false;
    const kernel = kernelOf(combining, elementBytes);
    return kernel !== undefined && this.#modules.entryOf(kernel) !== undefined;
  }

  async queue(call: SwitchedCall<CudaBuffer>): Promise<void> {
    const { combining, elementBytes, input, output } = call;
    const kernel = kernelOf(combining, elementBytes);
    const entry = kernel && this.#modules.entryOf(kernel);
    if (entry === undefined) throw new RangeError('no kernel for the call');
    const addressOf = (part: typeof input): bigint | undefined => part && part.buffer.pointer + BigInt(part.offset);
    this.isPending = true;
    const divisor = combining?.operator === 'avg' ? this.#view.nRanks : 1;
    const onSwitch: SwitchCall = { ...call, input: addressOf(input), output: addressOf(output), divisor };
    const rounds = roundsOf(this.#view, onSwitch, BLOCK_BYTES);
    const before = [...this.#rounds];
    for (let block = 0; block < rounds.nBlocks; block++) this.#rounds[block] = (before[block] ?? 0) + rounds.nRounds;
    const wanted = Math.ceil((rounds.length * elementBytes) / THREAD_BYTES);
    const threads = Math.min(Math.ceil(wanted / WARP) * WARP, MOST_THREADS);
    for (let first = 0; first < rounds.nRounds; first += this.#launchRounds) {
      const end = Math.min(first + this.#launchRounds, rounds.nRounds);
      const lists = switchSteps(this.#view, onSwitch, rounds, first, end, before);
      // The host writes what the copies of some launches before have read.
      if (this.#nLaunches > 0 && this.#nLaunches % RECORDS === 0) await this.#context.reached(this.#stream, () => this.#isOver);
      if (this.#isOver) return;
      this.#launch(entry, threads, lists);
    }
  }

  /** Ends kernels that wait for other ranks. No call is made afterwards. */
  abandon(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    // The kernel that waits holds the stream of calls.
    this.#context.inAnyCase((driver) => driver.cuMemcpyHtoDAsync_v2(this.#abort, this.#one, 4, this.#aborting));
  }

  /** Ends the memory, after the calls of all ranks. */
  close(): void {
    this.#isOver = true;
    this.#end();
    this.#memory.close();
  }

  get #abort(): bigint {
    return this.#records + BigInt(this.#recordBytes);
  }

  #launch(entry: bigint, threads: number, lists: ReturnType<typeof switchSteps>): void {
    const nSteps = lists[0]?.length ?? 0;
    const at = (this.#nLaunches++ % RECORDS) * this.#recordBytes;
    const bytes = lists.length * nSteps * RECORD_BYTES;
    const records = this.#host.subarray(at, at + bytes);
    const view = new DataView(records.buffer, records.byteOffset, bytes);
    records.fill(0);
    lists.forEach((list, block) => list.forEach((step, i) => writeStep(view, (block * nSteps + i) * RECORD_BYTES, step)));
    const parameters = new DataView(this.#parameters.bytes.buffer);
    parameters.setBigUint64(0, this.#records, true);
    parameters.setUint32(8, nSteps, true);
    parameters.setBigUint64(16, this.#abort, true);
    this.#call('cuMemcpyHtoDAsync', (driver) => driver.cuMemcpyHtoDAsync_v2(this.#records, records, bytes, this.#stream));
    this.#call('cuLaunchKernel', (driver) =>
      driver.cuLaunchKernel(entry, lists.length, 1, 1, threads, 1, 1, 0, this.#stream, 0n, this.#parameters.extra),
    );
  }

  #end(): void {
    this.#context.inAnyCase((driver) => {
      driver.cuMemHostUnregister(this.#host);
      if (this.#records !== 0n) driver.cuMemFree_v2(this.#records);
    });
  }

  #call(name: string, call: (driver: Driver) => number): void {
    this.#context.run((driver) => {
      this.#context.check(name, call(driver));
    });
  }
}

/** The kernel of a call; undefined where a switch does not combine the elements as other ways do. */
function kernelOf(combining: Combining | undefined, elementBytes: number): KernelDescription | undefined {
  if (combining === undefined) return kernelFor('multicast', { bytes: elementBytes as 1 | 2 | 4 | 8 });
  const elements = elementsOf(combining);
  if (elements === undefined || !hasMulticast(elements.type, elements.operator)) return undefined;
  // Nobody says what a switch makes of a NaN in a minimum or maximum.
  const isOrdered = elements.operator === 'min' || elements.operator === 'max';
  return isOrdered && isNarrow(elements.type) ? undefined : kernelFor('multicast', elements);
}
