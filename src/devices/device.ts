import {
  checkCallOptions,
  checkLimits,
  checkPeer,
  checkTag,
  timedOptionNames,
  type CallLimits,
  type TagOption,
  type TimedCallOptions,
} from '../runtime/algorithms/arguments.js';
import type { Communicator } from '../runtime/communicator/communicator.js';
import { checkBody } from '../runtime/communicator/group.js';
import { misplaced } from '../runtime/communicator/misplaced.js';
import { closeAtEndOfBlock, type PlatformAsyncDisposable } from '../runtime/platform/declarations.js';
import {
  bytesOf,
  movedTypeOf,
  type NumericArray,
  type NumericArrayConstructor,
  type ReductionOperator,
  type TypedArray,
} from '../runtime/device/types.js';
import { isTimed, limitedInGroup } from '../runtime/messages/timed-call.js';
import type { OwnOperator } from '../runtime/operators/operator.js';
import { describeValue } from '../describe-value.js';
import { InvalidArgumentError, InvalidUsageError, ofCall, RemoteError, SystemError, TcclError } from '../errors.js';
import {
  checkQueued,
  Collective,
  type Arguments,
  type CollectiveName,
  type DeviceCallOptions,
  type QueuedOption,
} from './collectives.js';
import { checkClass, DeviceArray, type Copies } from './device-array.js';
import { reasonOf } from './lost.js';
import type { DeviceMemory } from './memory.js';
import { limitsFrom } from './limits.js';
import { PeerCalls } from './peer-calls.js';
import { PeerMessages } from './peer-messages.js';
import { CopyError, Pipeline, type Step } from './pipeline.js';
import { Turns, type Side } from './turns.js';

/** Options of messages between arrays of devices. */
export interface DeviceMessageOptions extends TimedCallOptions, TagOption, QueuedOption {}

const messageOptionNames: readonly (keyof DeviceMessageOptions)[] = [...timedOptionNames, 'tag', 'queued'];

type Arrays<Buffer> = readonly DeviceArray<TypedArray, Buffer>[];

type Operator<T extends TypedArray> = T extends NumericArray ? ReductionOperator | OwnOperator<T> : never;

/** A send or a receive: the host's call, or one between peers with the limits of a group. */
interface Message<Buffer> {
  readonly call: Side;
  readonly step: Step<Buffer>;
  readonly array: DeviceArray<TypedArray, Buffer>;
  readonly direct: ((group?: CallLimits) => Promise<void>) | undefined;
}

/** Operations of a group, until its body has returned. */
interface Collected<Buffer> {
  readonly collectives: Collective<Buffer>[];
  readonly messages: Message<Buffer>[];
  readonly result: Promise<void>;
}

/**
 * A device's memory and calls on it, on one rank. The calls are those of a communicator, on arrays of the device; they are made
 * of calls on copies in memory that ranks share. A call reads its arrays after all work that the program queued before it, and
 * its promise resolves when work that is queued later sees the result. Calls without `await` between them are carried out in
 * order; messages at once, beside them.
 *
 * Errors of arguments reject before data are exchanged, and leave the device usable. All other errors end the calls of all ranks
 * and the communicator that the device was opened with.
 */
// eslint-disable-next-line @typescript-eslint/no-unsafe-declaration-merging -- what it adds is defined below the class
export class Device<Buffer> {
  /** This rank's number. */
  readonly rank: number;
  /** Number of ranks. */
  readonly nRanks: number;
  readonly #parent: Communicator;
  /** Calls of the devices alone, so that other calls of the program do not get between those of one call here. */
  readonly #comm: Communicator;
  readonly #memory: DeviceMemory<Buffer>;
  readonly #pipeline: Pipeline<Buffer>;
  readonly #peerCalls: PeerCalls<Buffer> | undefined;
  readonly #peerMessages: PeerMessages<Buffer> | undefined;
  readonly #copies: Copies<Buffer>;
  /** Settles when the calls so far have ended. */
  #last: Promise<unknown> = Promise.resolve();
  readonly #messages = new Set<Promise<unknown>>();
  /** Messages that go through the host match in the order of their calls, whatever is copied first. */
  readonly #turns = new Turns();
  #collected: Collected<Buffer> | undefined;
  #lost: SystemError | undefined;
  #closing: Promise<void> | undefined;

  /**
   * @internal
   * @param answers of messages between peers
   */
  constructor(parent: Communicator, comm: Communicator, memory: DeviceMemory<Buffer>, answers?: Communicator) {
    this.#parent = parent;
    this.#comm = comm;
    this.#memory = memory;
    ({ rank: this.rank, nRanks: this.nRanks } = comm);
    this.#pipeline = new Pipeline(comm, memory);
    this.#peerCalls = memory.peers && new PeerCalls(comm, memory, memory.peers);
    this.#peerMessages = memory.peers && answers && new PeerMessages(comm, answers, memory, memory.peers);
    this.#copies = {
      alignment: memory.alignment,
      upload: (array, values) => this.#copy('upload', array, () => memory.write([array.part(0, array.length)], bytesOf(values))),
      download: (array, into) => this.#copy('download', array, () => memory.read([array.part(0, array.length)], bytesOf(into))),
    };
    void memory.lost.then((why) => {
      if (this.#closing !== undefined) return;
      const reason = `its ${memory.name} device was lost: ${why}`;
      this.#lost = new SystemError('DEVICE_LOST', `rank ${this.rank} lost its ${memory.name} device: ${why}`, {
        rank: this.rank,
      });
      this.#abort(reason);
    });
  }

  /**
   * A new array of `length` zeros.
   *
   * @param length in elements; their bytes are a multiple of 4 with WebGPU
   * @throws InvalidArgumentError `ARGUMENT_TYPE`, `ARGUMENT_RANGE`; SystemError `OUT_OF_MEMORY`
   */
  async alloc<T extends TypedArray>(type: NumericArrayConstructor<T>, length: number): Promise<DeviceArray<T, Buffer>> {
    this.#checkUsable('alloc');
    checkClass('alloc', type);
    if (!(Number.isSafeInteger(length) && length >= 0))
      throw new InvalidArgumentError('ARGUMENT_RANGE', `alloc: length is a whole number, not ${describeValue(length)}`);
    const bytes = length * type.BYTES_PER_ELEMENT;
    if (!Number.isSafeInteger(bytes))
      throw new InvalidArgumentError('ARGUMENT_RANGE', `alloc: no memory has the bytes of ${length} elements of ${type.name}`);
    this.#checkAligned('alloc', bytes, `${length} elements of ${type.name}`);
    const buffer = await this.#memory.allocate(bytes).catch(async (error: unknown) => {
      throw await this.#lastError(error, 'alloc');
    });
    const release = (): void => this.#memory.release(buffer);
    return new DeviceArray(this.#copies, { buffer, uses: 0, isFree: false, release }, type, 0, length, true);
  }

  /**
   * The elements of a buffer that the program made on this device; the program keeps it, unmapped, while calls use it.
   *
   * @throws InvalidArgumentError `ARGUMENT_TYPE`, `ARGUMENT_RANGE`
   */
  wrap<T extends TypedArray>(buffer: Buffer, type: NumericArrayConstructor<T>): DeviceArray<T, Buffer> {
    return this.wrapFor('wrap', buffer, type);
  }

  /** @internal {@link wrap} for a call of another name. */
  protected wrapFor<T extends TypedArray>(
    call: string,
    buffer: Buffer,
    type: NumericArrayConstructor<T>,
  ): DeviceArray<T, Buffer> {
    this.#checkUsable(call);
    checkClass(call, type);
    const bytes = this.#memory.sizeOf(buffer, call, type.BYTES_PER_ELEMENT);
    this.#checkAligned(call, bytes, 'the buffer');
    const length = bytes / type.BYTES_PER_ELEMENT;
    if (!Number.isInteger(length)) {
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `${call}: the buffer's ${bytes} bytes are no whole number of elements of ${type.name}, of ${type.BYTES_PER_ELEMENT} bytes each`,
      );
    }
    return new DeviceArray(this.#copies, { buffer, uses: 0, isFree: false, release: () => undefined }, type, 0, length, true);
  }

  // ── collectives ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Combines `send` of all ranks element by element into `recv` of every rank. Without `recv`, in place. */
  allReduce<T extends TypedArray>(
    send: DeviceArray<T, Buffer>,
    recv = send,
    operator: Operator<T> = 'sum' as Operator<T>,
    options?: DeviceCallOptions,
  ): Promise<void> {
    return this.#collective('allReduce', send, recv, options, 0, operator);
  }

  /** Combines `send` of all ranks into `recv` of rank `root`; other ranks may pass null. Without `recv`, in place. */
  reduce<T extends TypedArray>(
    send: DeviceArray<T, Buffer>,
    recv: DeviceArray<T, Buffer> | null = send,
    operator: Operator<T> = 'sum' as Operator<T>,
    root = 0,
    options?: DeviceCallOptions,
  ): Promise<void> {
    return this.#collective('reduce', send, recv, options, root, operator);
  }

  /** Copies `send` of rank `root` into `recv` of every rank; other ranks may pass null as `send`. Without `recv`, in place. */
  broadcast<T extends TypedArray>(
    send: DeviceArray<T, Buffer> | null,
    recv: DeviceArray<T, Buffer> | null = send,
    root = 0,
    options?: DeviceCallOptions,
  ): Promise<void> {
    return this.#collective('broadcast', send, recv, options, root);
  }

  /** Concatenates `send` of all ranks into `recv`, which is nRanks times as long. In place if `send` is this rank's slice. */
  allGather<T extends TypedArray>(
    send: DeviceArray<T, Buffer>,
    recv: DeviceArray<T, Buffer>,
    options?: DeviceCallOptions,
  ): Promise<void> {
    return this.#collective('allGather', send, recv, options);
  }

  /** Combines `send` of all ranks, and writes part r of the result to `recv` of rank r. In place if `recv` is that slice. */
  reduceScatter<T extends TypedArray>(
    send: DeviceArray<T, Buffer>,
    recv: DeviceArray<T, Buffer>,
    operator: Operator<T> = 'sum' as Operator<T>,
    options?: DeviceCallOptions,
  ): Promise<void> {
    return this.#collective('reduceScatter', send, recv, options, 0, operator);
  }

  /** Sends part r of `send` to rank r, and receives its part into part r of `recv`. Without `recv`, in place. */
  allToAll<T extends TypedArray>(send: DeviceArray<T, Buffer>, recv = send, options?: DeviceCallOptions): Promise<void> {
    return this.#collective('allToAll', send, recv, options);
  }

  /** Concatenates `send` of all ranks into `recv` of rank `root`; other ranks may pass null. */
  gather<T extends TypedArray>(
    send: DeviceArray<T, Buffer>,
    recv: DeviceArray<T, Buffer> | null,
    root = 0,
    options?: DeviceCallOptions,
  ): Promise<void> {
    return this.#collective('gather', send, recv, options, root);
  }

  /** Copies part r of `send` of rank `root` into `recv` of rank r; other ranks may pass null as `send`. */
  scatter<T extends TypedArray>(
    send: DeviceArray<T, Buffer> | null,
    recv: DeviceArray<T, Buffer>,
    root = 0,
    options?: DeviceCallOptions,
  ): Promise<void> {
    return this.#collective('scatter', send, recv, options, root);
  }

  // ── messages and groups ─────────────────────────────────────────────────────────────────────────────────────────────

  /** Sends the array to rank `peer`, whose device receives it. Resolves when the array may be changed. */
  send(array: DeviceArray<TypedArray, Buffer>, peer: number, options?: DeviceMessageOptions): Promise<void> {
    return this.#message('send', array, peer, options);
  }

  /** Receives an array of the same type and length from rank `peer`. */
  recv(array: DeviceArray<TypedArray, Buffer>, peer: number, options?: DeviceMessageOptions): Promise<void> {
    return this.#message('recv', array, peer, options);
  }

  /**
   * Starts all operations of this device that `body` calls together, and resolves when all are done. Arrays of calls that
   * go through the host are staged whole. `body` must not be asynchronous, and no operation may write an array that another
   * one uses.
   *
   * @throws as the operations; nothing starts then
   */
  group(body: () => unknown, options?: CallLimits): Promise<void> {
    const outer = this.#collected;
    if (outer !== undefined) {
      checkGroup(body, options, true);
      body();
      return outer.result;
    }
    let start: (run: Promise<void>) => void = () => undefined;
    const result = new Promise<void>((resolve) => (start = resolve));
    result.catch(() => undefined);
    const collected: Collected<Buffer> = (this.#collected = { collectives: [], messages: [], result });
    try {
      checkGroup(body, options, false);
      body();
    } catch (error) {
      start(Promise.reject(error));
      return result.then();
    } finally {
      this.#collected = undefined;
    }
    start(this.#runGroup(collected, options));
    // The program may ignore the promises of operations, but not that of the group.
    return result.then();
  }

  /** Waits for all calls, then releases what they use. Every rank calls it; arrays stay until they are freed. */
  close(): Promise<void> {
    this.#closing ??= (async () => {
      await Promise.allSettled([this.#last, ...this.#messages]);
      this.#pipeline.close();
      await this.#peerMessages?.close();
      await this.#peerCalls?.close();
      this.#memory.close();
      await this.#comm.close();
    })();
    return this.#closing;
  }

  #collective(
    name: CollectiveName,
    send: unknown,
    recv: unknown,
    options?: DeviceCallOptions,
    root = 0,
    operator: unknown = 'sum',
  ): Promise<void> {
    return this.#orRefused(() => {
      this.#checkUsable(name);
      const elsewhere = recv instanceof DeviceArray ? undefined : misplaced(name, recv, 1);
      if (elsewhere !== undefined) throw elsewhere;
      for (const array of [send, recv]) if (array !== null) this.#checkArray(name, array);
      const given = { send, recv, operator, root, options } as Arguments<Buffer>;
      this.#checkLimited(name, options);
      const collective = new Collective(this.#comm, name, given, this.#memory.alignment);
      if (this.#collected === undefined) return this.#inTurn(() => this.#runCollective(collective, options), collective.arrays);
      this.#collected.collectives.push(collective);
      return this.#collected.result;
    });
  }

  #message(
    call: 'send' | 'recv',
    array: DeviceArray<TypedArray, Buffer>,
    peer: number,
    given?: DeviceMessageOptions,
  ): Promise<void> {
    return this.#orRefused(() => {
      this.#checkUsable(call);
      this.#checkArray(call, array);
      checkPeer(call, peer, this.nRanks);
      if (given !== undefined) checkCallOptions(call, given, messageOptionNames);
      checkTag(call, given?.tag);
      this.#checkLimited(call, given);
      const { queued, ...options } = given ?? {};
      checkQueued(call, queued);
      const Type = array.type as unknown as new (buffer: ArrayBufferLike, offset: number, length: number) => NumericArray;
      const type = movedTypeOf(new Type(new ArrayBuffer(0), 0, 0), options.type, call);
      const whole = array.part(0, array.length);
      const part = array.length === 0 ? [] : [whole];
      const step: Step<Buffer> = {
        reads: call === 'send' ? part : [],
        writes: call === 'recv' ? part : [],
        sendBytes: array.byteLength,
        recvBytes: 0,
        run: ({ buffer, byteOffset }) => this.#comm[call](new Type(buffer, byteOffset, array.length), peer, options),
      };
      const peers = this.#peerMessages;
      const direct =
        peers &&
        ((group?: CallLimits) => {
          const ready = this.#memory.check([array.buffer], call);
          const limits = limitsFrom({ ...options, ...group });
          const { tag } = options;
          const of = { array: whole, type, count: array.length, peer, ready, isQueued: queued === true, tag: { tag }, limits };
          const { signal } = { ...options, ...group };
          return this.#ending(call, () => (call === 'send' ? peers.send(of) : peers.receive(of)), signal);
        });
      if (this.#collected !== undefined) {
        this.#collected.messages.push({ call, step, array, direct });
        return this.#collected.result;
      }
      return this.#beside(
        () => direct?.() ?? this.#together(call, [step], [array], [call], (calls) => calls(), options),
        [array],
      );
    });
  }

  async #runCollective(collective: Collective<Buffer>, options: TimedCallOptions | undefined): Promise<void> {
    const { name, count } = collective;
    const ready = this.#memory.check(buffersOf(collective.arrays), name);
    const peers = this.#peerCalls;
    if (peers !== undefined) {
      const made = async (): Promise<boolean> => {
        await ready;
        return peers.run(collective, limitsFrom(options));
      };
      if (await this.#ending(name, made, options?.signal)) return;
    }
    const steps = collective.steps();
    const [first, ...others] = steps;
    const signal = options?.signal;
    if (first === undefined || others.length === 0)
      return this.#ending(name, () => this.#pipeline.inChunks(steps, ready), signal);
    // Ranks with other lengths make other numbers of steps, whose first ones may be alike.
    const timed = limitsFrom(options);
    let agreed = Promise.resolve();
    const agree = async (send: Uint8Array, recv: Uint8Array): Promise<void> => {
      const lengths = Float64Array.of(count, -count);
      await this.#comm.group(() => {
        void first.run(send, recv, { type: options?.type });
        void this.#comm.allReduce(lengths, lengths, 'max');
      }, timed());
      const [most = 0, least = 0] = lengths;
      if (most === -least) return;
      // All ranks have the lengths before one of them ends the calls.
      await this.#comm.barrier(timed()).catch(() => undefined);
      throw this.#mismatch(name, count, -least, most);
    };
    const run: Step<Buffer>['run'] = (send, recv) => (agreed = agree(send, recv));
    const limited = others.map((step) => ({
      ...step,
      run: async (send: Uint8Array, recv: Uint8Array) => {
        await agreed;
        await step.run(send, recv, { type: options?.type, ...timed() });
      },
    }));
    return this.#ending(name, () => this.#pipeline.inChunks([{ ...first, run }, ...limited], ready), signal);
  }

  /** Messages begin now, collectives after the calls before: as alone, both match those of other ranks in the order of calls. */
  async #runGroup({ collectives, messages }: Collected<Buffer>, options: CallLimits | undefined): Promise<void> {
    const ofHost = messages.filter(({ direct }) => direct === undefined);
    // The calls reject as the group does.
    const join = (calls: () => Promise<unknown>): Promise<unknown> =>
      this.#comm.group(() => void calls().catch(() => undefined), options);
    const together = (steps: readonly Step<Buffer>[], arrays: Arrays<Buffer>, sides: readonly Side[] = []): Promise<void> =>
      this.#together('group', steps, arrays, sides, join, options);
    const calls: Promise<void>[] = [];
    for (const { array, direct } of messages) if (direct !== undefined) calls.push(this.#beside(() => direct(options), [array]));
    if (ofHost.length > 0) {
      const arrays = ofHost.map(({ array }) => array);
      const sides = new Set(ofHost.map(({ call }) => call));
      const steps = ofHost.map(({ step }) => step);
      calls.push(this.#beside(() => together(steps, arrays, [...sides]), arrays));
    }
    if (collectives.length > 0) {
      const arrays = collectives.flatMap((collective) => collective.arrays);
      const steps = collectives.map((collective) => collective.step());
      calls.push(this.#inTurn(() => together(steps, arrays), arrays));
    }
    for (const each of await Promise.allSettled(calls)) if (each.status === 'rejected') throw each.reason;
  }

  /** @param sides of the messages among the steps */
  #together(
    call: string,
    steps: readonly Step<Buffer>[],
    arrays: Arrays<Buffer>,
    sides: readonly Side[],
    join: (calls: () => Promise<unknown>) => Promise<unknown>,
    options: CallLimits | undefined,
  ): Promise<void> {
    const ready = this.#memory.check(buffersOf(arrays), call);
    const turn = this.#turns.take(sides);
    const run = async (): Promise<void> => {
      try {
        await this.#pipeline.together(steps, ready, (calls) => turn.begin(() => join(calls)));
      } finally {
        turn.giveUp();
      }
    };
    return this.#ending(call, run, options?.signal);
  }

  async #copy(call: string, array: DeviceArray<TypedArray, Buffer>, copy: () => Promise<void>): Promise<void> {
    this.#checkUsable(call);
    if (array.length === 0) return;
    return this.#beside(async () => {
      try {
        await this.#memory.check([array.buffer], call);
        await copy();
      } catch (error) {
        throw await this.#lastError(error, call);
      }
    }, [array]);
  }

  /** The error of a call that other ranks know nothing of. A failure of the device ends the communicators. */
  async #lastError(error: unknown, call: string): Promise<TcclError> {
    const reason = await this.#reasonOf(error, call);
    if (reason.code === 'DEVICE_LOST' && this.#lost === undefined) this.#abort(reason.message);
    return reason;
  }

  /** Runs `run` after the calls before. */
  #inTurn(run: () => Promise<void>, arrays: Arrays<Buffer>): Promise<void> {
    const result = this.#using(arrays, this.#last.then(run));
    this.#last = result.catch(() => undefined);
    return result;
  }

  /** Runs `run` now. */
  #beside(run: () => Promise<void>, arrays: Arrays<Buffer>): Promise<void> {
    const result = this.#using(arrays, run());
    this.#messages.add(result);
    result
      .catch(() => undefined)
      .then(() => this.#messages.delete(result))
      .catch(() => undefined);
    return result;
  }

  async #using(arrays: Arrays<Buffer>, run: Promise<void>): Promise<void> {
    for (const { place } of arrays) place.uses++;
    try {
      await run;
    } finally {
      for (const { place } of arrays) place.uses--;
    }
  }

  /** Runs calls of the host; ends the communicators for errors of copies that other ranks would wait for. */
  async #ending<T>(call: string, run: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    try {
      return await run();
    } catch (error) {
      // The program has cancelled the call, and gets its own reason.
      if (signal?.aborted === true && error === signal.reason) throw error;
      const reason = await this.#reasonOf(error, call);
      // The other ranks would wait for a call that the system refused on this rank.
      const isOwn = (error instanceof CopyError && !(reason instanceof RemoteError)) || reason instanceof SystemError;
      if (isOwn && this.#lost === undefined) this.#abort(reason.message);
      throw reason;
    }
  }

  /** The error of a call: what a copy threw may come before the device's own reason. */
  async #reasonOf(error: unknown, call: string): Promise<TcclError> {
    const cause = error instanceof CopyError ? error.cause : error;
    if (!(cause instanceof TcclError)) await reasonOf(this.#memory.lost);
    if (this.#lost !== undefined) return this.#lost;
    if (cause instanceof TcclError) return error instanceof CopyError ? ofCall(cause, call) : cause;
    const why = cause instanceof Error ? cause.message : String(cause);
    return new SystemError('DEVICE_LOST', `${call}: a copy of the ${this.#memory.name} device failed: ${why}`, {
      rank: this.rank,
      cause,
    });
  }

  #mismatch(call: string, count: number, least: number, most: number): InvalidUsageError {
    const reason = `ranks pass different lengths, from ${least} to ${most} elements a part`;
    this.#abort(`${call}: ${reason}`);
    return new InvalidUsageError('CALL_MISMATCH', `${call}: ${reason}, this rank ${count}; pass equal ones on all ranks`, {
      rank: this.rank,
    });
  }

  #abort(reason: string): void {
    this.#comm.abort(reason);
    this.#parent.abort(reason);
  }

  /** Returns the result of `start`; what it throws is that of the group whose body calls it. */
  #orRefused(start: () => Promise<void>): Promise<void> {
    if (this.#collected !== undefined) return start();
    try {
      return start();
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #checkUsable(call: string): void {
    if (this.#lost !== undefined) throw this.#lost;
    if (this.#closing === undefined) return;
    throw new InvalidUsageError('CLOSED', `${call}: rank ${this.rank} has closed the ${this.#memory.name} device`, {
      rank: this.rank,
    });
  }

  /** The limits of a group are those of all its calls. */
  #checkLimited(call: string, options: CallLimits | undefined): void {
    if (this.#collected !== undefined && isTimed(options)) throw limitedInGroup(call, this.rank);
  }

  #checkArray(call: string, array: unknown): void {
    if (!(array instanceof DeviceArray)) {
      throw new InvalidArgumentError(
        'ARGUMENT_TYPE',
        `${call}: pass an array of this device, as alloc and wrap make it, not ${describeValue(array)}`,
      );
    }
    array.checkUsable(call);
    if (!array.isOf(this.#copies))
      throw new InvalidArgumentError('ARGUMENT_TYPE', `${call}: the array is of another device; pass one of this device`);
  }

  #checkAligned(call: string, bytes: number, what: string): void {
    const { alignment, name } = this.#memory;
    if (bytes % alignment === 0) return;
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `${call}: ${what} ${what.endsWith('buffer') ? 'has' : 'are'} ${bytes} bytes, and ${name} copies multiples of ${alignment}; ` +
        `make it ${Math.ceil(bytes / alignment) * alignment} bytes`,
    );
  }
}

/** `await using gpu = await webgpu(comm)` closes it at the end of the block. */
// eslint-disable-next-line @typescript-eslint/no-empty-object-type, @typescript-eslint/no-unused-vars -- below
export interface Device<Buffer> extends PlatformAsyncDisposable {}
closeAtEndOfBlock(Device.prototype);

/** A device of rank `comm.rank`, whose calls run on `comm`; `parent` ends with it. */
export function openDevice<Buffer>(parent: Communicator, comm: Communicator, memory: DeviceMemory<Buffer>): Device<Buffer> {
  return new Device(parent, comm, memory);
}

/** Throws for a wrong group. @param isInside the body of another one */
function checkGroup(body: unknown, options: CallLimits | undefined, isInside: boolean): void {
  checkBody('group', body);
  checkLimits('group', options);
  if (isInside && isTimed(options)) throw limitedInGroup('group');
}

function buffersOf<Buffer>(arrays: Arrays<Buffer>): readonly Buffer[] {
  return [...new Set(arrays.map(({ buffer }) => buffer))];
}
