import { makeRegion, MemoryError, type DeviceMemory, type Region } from './memory.js';
import type { AccessOrder, Clock, OrderedThread } from './order.js';
import type { Kernel } from './parse.js';
import { StoreBuffer } from './store-buffer.js';

/** Position of a thread: at an instruction, at a barrier, or past the end. */
export type State = 'runs' | 'waits' | 'done';

export class Thread implements OrderedThread {
  readonly id: number;
  /** In its block. */
  readonly index: number;
  readonly clock: Clock;
  place = 0;
  state: State = 'runs';
  /** At a barrier that combines predicates: the thread's own. */
  predicate = 0;
  readonly #block: Block;

  constructor(block: Block, id: number, index: number, nThreads: number) {
    this.#block = block;
    this.id = id;
    this.index = index;
    this.clock = new Int32Array(nThreads);
    this.clock[id] = 1;
  }

  describe(): string {
    return `'${this.instruction(this.place)}' of ${this.#block.kernel.name}, thread ${this.index} of ${this.#block.name}`;
  }

  instruction(place: number): string {
    return this.#block.kernel.code[place]?.text ?? 'the end';
  }

  /** Begins a new event, after those that others may have taken over. */
  tick(): void {
    this.clock[this.id] = (this.clock[this.id] ?? 0) + 1;
  }
}

/** Parts that all blocks of a run share. */
export interface System {
  readonly memory: DeviceMemory;
  readonly order: () => AccessOrder;
  readonly random: (below: number) => number;
  /** Stores, and barriers that threads have reached. */
  nChanges: number;
}

/** Threads that share registers of the interpreter, a barrier and shared memory, and the memory as they see it. */
export class Block {
  readonly name: string;
  readonly kernel: Kernel;
  readonly system: System;
  readonly threads: Thread[];
  readonly parameters: DataView;
  readonly shared: Region;
  /** Its number in the grid, the number of blocks, and that of threads. */
  readonly index: number;
  readonly nBlocks: number;
  readonly nThreads: number;
  readonly stores: StoreBuffer;

  // Registers, those of one thread after those of another, 8 bytes each; the views are of the same bytes.
  readonly nRegisters: number;
  readonly words: Uint32Array;
  readonly signedWords: Int32Array;
  readonly floats: Float32Array;
  readonly doubles: BigUint64Array;
  readonly signedDoubles: BigInt64Array;
  readonly floats64: Float64Array;

  constructor(
    system: System,
    kernel: Kernel,
    parameters: DataView,
    place: { name: string; index: number; nBlocks: number; nThreads: number; firstId: number; nAllThreads: number },
  ) {
    this.system = system;
    this.kernel = kernel;
    this.parameters = parameters;
    this.name = place.name;
    this.index = place.index;
    this.nBlocks = place.nBlocks;
    this.nThreads = place.nThreads;
    this.threads = Array.from({ length: place.nThreads }, (_, i) => new Thread(this, place.firstId + i, i, place.nAllThreads));
    this.stores = new StoreBuffer(place.nThreads);
    this.shared = makeRegion(`shared memory of ${place.name}`, kernel.sharedBytes);
    this.nRegisters = kernel.registers.size;
    const registers = new ArrayBuffer(8 * this.nRegisters * place.nThreads);
    this.words = new Uint32Array(registers);
    this.signedWords = new Int32Array(registers);
    this.floats = new Float32Array(registers);
    this.doubles = new BigUint64Array(registers);
    this.signedDoubles = new BigInt64Array(registers);
    this.floats64 = new Float64Array(registers);
    // Neither registers nor shared memory begin with zeros.
    for (let i = 0; i < this.words.length; i++) this.words[i] = system.random(0x100000000);
    for (let i = 0; i < this.shared.length; i++) this.shared.bytes[i] = system.random(256);
  }

  get isDone(): boolean {
    return this.threads.every(({ state }) => state === 'done');
  }

  /** A thread has reached a barrier; the last one lets all of them go on. */
  arrive(thread: Thread, resultRegister: number | undefined): void {
    this.system.nChanges++;
    thread.state = 'waits';
    const others = this.threads.filter(({ state }) => state !== 'waits');
    const elsewhere = this.threads.find(({ state, place }) => state === 'done' || (state === 'waits' && place !== thread.place));
    if (elsewhere !== undefined) this.#diverged(thread, elsewhere);
    if (others.length > 0) return;
    this.stores.shareInBlock();
    const together: Clock = thread.clock.slice();
    for (const { clock } of this.threads)
      for (let i = 0; i < clock.length; i++) if ((clock[i] ?? 0) > (together[i] ?? 0)) together[i] = clock[i] ?? 0;
    const any = this.threads.some(({ predicate }) => predicate === 1);
    for (const each of this.threads) {
      each.clock.set(together);
      each.tick();
      each.state = 'runs';
      each.place++;
      if (resultRegister !== undefined) this.words[2 * (each.index * this.nRegisters + resultRegister)] = Number(any);
    }
  }

  /** A thread has left the kernel, which makes visible all that it has stored. */
  leave(thread: Thread): void {
    thread.state = 'done';
    const waiting = this.threads.find(({ state }) => state === 'waits');
    if (waiting !== undefined) this.#diverged(waiting, thread);
    this.stores.releaseBy(thread.index);
  }

  #diverged(thread: Thread, other: Thread): never {
    const where = other.state === 'done' ? `thread ${other.index} has left the kernel` : `thread ${other.index} waits elsewhere`;
    throw new MemoryError(`threads of a block diverge at a barrier: ${thread.describe()} waits, and ${where}`);
  }
}
