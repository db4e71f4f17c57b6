import { Block, type System } from './block.js';
import { compile, STAYS, type Operation } from './execute.js';
import { DeviceMemory, MemoryError } from './memory.js';
import { AccessOrder } from './order.js';
import type { Kernel } from './parse.js';

/** A kernel on a device, as cuLaunchKernel takes it. */
export interface Launch {
  readonly kernel: Kernel;
  readonly device?: string;
  readonly blocks: number;
  readonly threads: number;
  /** Contents of the parameters by their names. */
  readonly parameters: Readonly<Record<string, number | bigint | Uint8Array>>;
}

export interface RunOptions {
  /** Decides the order of threads, when stores become visible, and what registers begin with. */
  readonly seed?: number;
  /** Most instructions that a thread executes before another has its turn. */
  readonly quantum?: number;
  /** Instructions after which a run counts as endless. */
  readonly maxSteps?: number;
}

/** Instructions without a store or a barrier after which threads count as waiting. */
const MOST_IDLE = 1000;

/** Kernels that run at the same time, as on devices of their own, with all blocks resident. */
export class Running {
  /** Instructions so far. */
  steps = 0;
  readonly #random: (below: number) => number;
  readonly #quantum: number;
  readonly #system: System;
  readonly #maxSteps: number;
  readonly #alive: { readonly block: Block; readonly code: readonly Operation[] }[];

  constructor(memory: DeviceMemory, launches: readonly Launch[], options: RunOptions = {}) {
    const { seed = 1, quantum = 40, maxSteps = 20_000_000 } = options;
    const random = (this.#random = generator(seed));
    this.#quantum = quantum;
    this.#maxSteps = maxSteps;
    const nAllThreads = launches.reduce((sum, { blocks, threads }) => sum + blocks * threads, 0);
    const blocks: Block[] = [];
    const system: System = (this.#system = { memory, random, order: () => order, nChanges: 0 });
    let firstId = 0;
    for (const { kernel, device = 'gpu', blocks: nBlocks, threads: nThreads, parameters } of launches) {
      const written = writeParameters(kernel, parameters);
      for (let index = 0; index < nBlocks; index++) {
        const place = { name: `block ${index} on ${device}`, index, nBlocks, nThreads, firstId, nAllThreads };
        blocks.push(new Block(system, kernel, written, place));
        firstId += nThreads;
      }
    }
    const order = new AccessOrder(blocks.flatMap(({ threads }) => threads));
    this.#alive = blocks.map((block) => ({ block, code: compile(block) }));
  }

  /**
   * Executes some `most` instructions, or fewer if threads only wait for those of another run. Throws MemoryError for what PTX
   * leaves undefined or a GPU refuses.
   * @returns true when all kernels have ended
   */
  advance(most = Infinity): boolean {
    const random = this.#random;
    const alive = this.#alive;
    const end = this.steps + most;
    let seen = this.#system.nChanges;
    let idleEnd = this.steps + MOST_IDLE;
    while (alive.length > 0 && this.steps < end) {
      if (this.#system.nChanges !== seen) {
        seen = this.#system.nChanges;
        idleEnd = this.steps + MOST_IDLE;
      } else if (most < Infinity && this.steps > idleEnd) return false;
      const at = random(alive.length);
      const one = alive[at];
      if (one === undefined) break;
      this.steps += runThread(one.block, one.code, random, 1 + random(this.#quantum));
      // Stores that nothing releases become visible some time.
      const { stores } = one.block;
      if (random(4) === 0) for (let shown = random(1 + (stores.size >> 2)); shown >= 0; shown--) stores.showOne(random);
      if (one.block.isDone) alive.splice(at, 1);
      if (this.steps > this.#maxSteps) {
        const where = alive.map(({ block }) => block.threads.find(({ state }) => state !== 'done')?.describe());
        throw new MemoryError(`no end after ${this.steps} instructions; at ${where.join('; ')}`);
      }
    }
    return alive.length === 0;
  }
}

/** Runs kernels to their end, and counts instructions. Throws as `advance`, and PtxError for what it does not know. */
export function runKernels(memory: DeviceMemory, launches: readonly Launch[], options: RunOptions = {}): number {
  const running = new Running(memory, launches, options);
  running.advance();
  return running.steps;
}

function runThread(block: Block, code: readonly Operation[], random: (below: number) => number, most: number): number {
  const first = random(block.nThreads);
  let thread = block.threads[first];
  for (let i = 1; i < block.nThreads && thread?.state !== 'runs'; i++) thread = block.threads[(first + i) % block.nThreads];
  if (thread?.state !== 'runs') return 0;
  let steps = 0;
  while (steps < most) {
    const operation = code[thread.place];
    if (operation === undefined) throw new MemoryError(`${thread.describe()}: a kernel ends with ret`);
    steps++;
    try {
      const next = operation(thread);
      if (next === STAYS) break;
      thread.place = next;
    } catch (error) {
      if (error instanceof MemoryError && !error.message.includes(' of block ')) error.message += `, at ${thread.describe()}`;
      throw error;
    }
  }
  return steps;
}

function writeParameters(kernel: Kernel, values: Launch['parameters']): DataView {
  const view = new DataView(new ArrayBuffer(kernel.parameterBytes));
  const missing = new Set(kernel.parameters.keys());
  for (const [name, value] of Object.entries(values)) {
    const variable = kernel.parameters.get(name);
    if (variable === undefined) throw new MemoryError(`${kernel.name} has no parameter ${name}`);
    missing.delete(name);
    if (typeof value === 'object') {
      if (value.length !== variable.bytes) throw new MemoryError(`${name} has ${variable.bytes} bytes, not ${value.length}`);
      new Uint8Array(view.buffer).set(value, variable.offset);
    } else if (variable.bytes === 8) view.setBigUint64(variable.offset, BigInt(value), true);
    else view.setUint32(variable.offset, Number(value), true);
  }
  if (missing.size > 0) throw new MemoryError(`${kernel.name} needs ${[...missing].join(', ')}`);
  return view;
}

/** Whole numbers below a limit, the same for a seed: xorshift of 32 bits. */
export function generator(seed: number): (below: number) => number {
  let state = (Math.imul(seed, 0x9e3779b1) ^ 0x5bd1e995) >>> 0 || 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    // The upper bits: the lower ones of consecutive numbers depend on each other.
    return Math.floor((state / 2 ** 32) * below);
  };
}
