import type { TimedCallOptions } from '../runtime/algorithms/arguments.js';
import type { Communicator } from '../runtime/communicator/communicator.js';
import type { DeviceMemory, Part } from './memory.js';

/** A call of the host, with the parts of the device's arrays that it reads and writes. */
export interface Step<Buffer> {
  readonly reads: readonly Part<Buffer>[];
  readonly writes: readonly Part<Buffer>[];
  /** Bytes of its arrays on the host; 0 for a second array that is the first. */
  readonly sendBytes: number;
  readonly recvBytes: number;
  /** Calls the host with arrays that have these bytes at their beginning. */
  run(send: Uint8Array, recv: Uint8Array, options?: TimedCallOptions): Promise<unknown>;
}

/** Steps that are under way at the same time: one is read, one exchanged, one written, and one waits for its turn. */
const STEPS_AT_ONCE = 4;

/** Thrown copies, whose errors end the communicator if other ranks wait for this one. */
export class CopyError extends Error {}

/** Carries out calls of the host on copies of a device's memory, in arrays that ranks of this host share. */
export class Pipeline<Buffer> {
  readonly #comm: Communicator;
  readonly #memory: DeviceMemory<Buffer>;
  readonly #slots: HostArrays[] = [];

  constructor(comm: Communicator, memory: DeviceMemory<Buffer>) {
    this.#comm = comm;
    this.#memory = memory;
  }

  /**
   * Runs steps in order, so that reads, calls and writes of several overlap:
   *
   *     step 0   read  call  write
   *     step 1         read  call  write
   *     step 2               read  call  write
   *
   * Steps may read and write the same memory only if they are one step. Settles when none is under way.
   *
   * @param ready resolves when the first call may begin
   */
  async inChunks(steps: readonly Step<Buffer>[], ready: Promise<void>): Promise<void> {
    const done: Promise<void>[] = [];
    // Resolves when the call of the step before has begun: calls begin in the same order on all ranks.
    let begun = ready;
    try {
      for (const [index, step] of steps.entries()) {
        await done[index - STEPS_AT_ONCE];
        const { send, recv } = (this.#slots[index % STEPS_AT_ONCE] ??= new HostArrays(this.#comm, this.#memory)).atLeast(step);
        const read = this.#read(step, send);
        let call: Promise<unknown> | undefined;
        read.catch(() => undefined);
        begun = begun
          .then(() => read)
          .then(() => {
            call = step.run(send, recv);
          });
        const written = begun.then(() => call).then(() => this.#write(step, recv));
        written.catch(() => undefined);
        done.push(written);
      }
      await Promise.all(done);
    } finally {
      // No copy may use an array when the next call does.
      await Promise.allSettled([begun, ...done]);
    }
  }

  /** Runs steps together: reads all, makes their calls with `together`, and writes all. Their arrays are theirs alone. */
  async together(
    steps: readonly Step<Buffer>[],
    ready: Promise<void>,
    together: (calls: () => Promise<unknown>) => Promise<unknown>,
  ): Promise<void> {
    const arrays: HostArrays[] = [];
    try {
      const given = steps.map((step) => {
        const own = new HostArrays(this.#comm);
        arrays.push(own);
        return { step, ...own.atLeast(step) };
      });
      const read = await Promise.allSettled([ready, ...given.map(({ step, send }) => this.#read(step, send))]);
      for (const each of read) if (each.status === 'rejected') throw each.reason;
      await together(() => Promise.all(given.map(({ step, send, recv }) => step.run(send, recv))));
      await Promise.all(given.map(({ step, recv }) => this.#write(step, recv)));
    } finally {
      for (const own of arrays) own.free();
    }
  }

  /** Frees the arrays that calls in chunks use again and again. */
  close(): void {
    for (const slot of this.#slots.splice(0)) slot.free();
  }

  #read({ reads, sendBytes }: Step<Buffer>, send: Uint8Array): Promise<void> {
    return reads.length === 0 ? Promise.resolve() : copied(this.#memory.read(reads, send.subarray(0, sendBytes)));
  }

  #write({ writes, sendBytes, recvBytes }: Step<Buffer>, recv: Uint8Array): Promise<void> {
    return writes.length === 0
      ? Promise.resolve()
      : copied(this.#memory.write(writes, recv.subarray(0, recvBytes === 0 ? sendBytes : recvBytes)));
  }
}

/** Rejects with CopyError if a copy fails. */
export async function copied(copy: Promise<void>): Promise<void> {
  try {
    await copy;
  } catch (cause) {
    throw new CopyError('a copy failed', { cause });
  }
}

/** Bytes of the largest pages of host memory: what is pinned shares none with other arrays. */
const PAGE_BYTES = 1 << 16;

interface HostArray {
  /** As the communicator allocated it. */
  readonly whole: Uint8Array;
  /** The part of it that calls use. */
  readonly bytes: Uint8Array;
  readonly unpin: () => void;
}

/** Memory that ranks of this host share, for the input and the output of a call. */
class HostArrays {
  readonly #comm: Communicator;
  readonly #pin: ((host: Uint8Array) => () => void) | undefined;
  #send: HostArray | undefined;
  #recv: HostArray | undefined;

  /** @param memory pins arrays that are used again and again */
  constructor(comm: Communicator, memory?: Pick<DeviceMemory<unknown>, 'pin'>) {
    this.#comm = comm;
    this.#pin = memory?.pin?.bind(memory);
  }

  atLeast({ sendBytes, recvBytes }: { sendBytes: number; recvBytes: number }): { send: Uint8Array; recv: Uint8Array } {
    const { bytes: send } = (this.#send = this.#grown(this.#send, sendBytes));
    if (recvBytes === 0) return { send, recv: send };
    return { send, recv: (this.#recv = this.#grown(this.#recv, recvBytes)).bytes };
  }

  free(): void {
    for (const array of [this.#send, this.#recv]) if (array !== undefined) this.#free(array);
    this.#send = this.#recv = undefined;
  }

  #grown(array: HostArray | undefined, bytes: number): HostArray {
    if (array !== undefined && array.bytes.length >= bytes) return array;
    if (array !== undefined) this.#free(array);
    // Typed arrays of any class begin here, and a call of no elements needs an address.
    const least = Math.max(bytes, 8);
    if (this.#pin === undefined) {
      const whole = this.#comm.alloc(Uint8Array, least);
      return { whole, bytes: whole, unpin: () => undefined };
    }
    const pages = Math.ceil(least / PAGE_BYTES) * PAGE_BYTES;
    const whole = this.#comm.alloc(Uint8Array, pages + PAGE_BYTES);
    const skipped = (PAGE_BYTES - (whole.byteOffset % PAGE_BYTES)) % PAGE_BYTES;
    const own = whole.subarray(skipped, skipped + pages);
    return { whole, bytes: own, unpin: this.#pin(own) };
  }

  /** After a failure, other ranks may still write the arrays: they stay. */
  #free({ whole, unpin }: HostArray): void {
    unpin();
    if (this.#comm.isUsable) this.#comm.free(whole);
  }
}
