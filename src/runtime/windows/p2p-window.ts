import type { Libc } from '../device/libc.js';
import type { Segment } from '../device/segment.js';
import type { NumericArray } from '../device/types.js';
import { InternalError } from '../../errors.js';
import { Operand } from '../algorithms/operand.js';
import type { WakeSources } from '../progress/parking.js';
import { LazyReceiver, LazySender, type Dialling } from '../messages/p2p-connection.js';
import { defined } from '../../defined.js';

/** Header in front of the data of each slice: the command. A line of its own keeps data aligned. */
const HEADER_BYTES = 64;
const KIND = 0;
/** Index of the offset in the window, in bytes. */
const OFFSET = 1;
/** Put: 1 if a signal follows its last slice. Flush or get, and their answers: number of the command. */
const VALUE = 2;
/** Get: number of bytes. Fetch: code of its operator. Put: the same and 1 more if it combines; otherwise 0. */
const LENGTH = 3;

const PUT = 1;
const SIGNAL = 2;
const FLUSH = 3;
const FLUSHED = 4;
const GET = 5;
/** A slice of the answer to a get; the offset is in the getter's array. */
const GOT = 6;
/** Changes an element by the operands that it carries, and answers like a get with what it was before. */
const FETCH = 7;

/** Bytes of a fetch's operands: an element, and 8 bytes behind it the one that is expected. */
export const OPERAND_BYTES = 16;

/** A command of this rank for another. */
export interface WindowCommand {
  /**
   * Put or signal: true if the array may be changed again. Flush: true if everything before it is done. Get: true if the
   * array is filled.
   */
  done: boolean;
  /** Called when it is done, or with the error for which it failed. */
  ended: ((error?: Error) => void) | undefined;
}

/** Starts a command, whose end is also reported to its observer. */
export function observed(begin: () => WindowCommand, ended: WindowCommand['ended']): WindowCommand {
  try {
    const command = begin();
    if (command.done) ended?.();
    else command.ended = ended;
    return command;
  } catch (error) {
    ended?.(error as Error);
    throw error;
  }
}

/** Marks a command as done. */
function endCommand(command: WindowCommand): void {
  command.done = true;
  command.ended?.();
}

interface Command extends WindowCommand {
  readonly kind: number;
  readonly value: number;
  /** Array that is sent, or filled by a get. */
  readonly operand: Operand | undefined;
  readonly bytes: number;
  readonly offset: number;
  readonly length: number;
  moved: number;
}

const emptyCommand: Omit<Command, 'kind'> = {
  value: 0,
  operand: undefined,
  bytes: 0,
  offset: 0,
  length: 0,
  moved: 0,
  done: false,
  ended: undefined,
};

interface WindowLaneOptions {
  readonly segment: Segment;
  readonly libc: Libc | undefined;
  readonly peer: number;
  /** Address of this rank's part of the window, which the other writes. */
  readonly address: number;
  readonly bytes: number;
  /** Code of the elements' type, and their size. */
  readonly type: number;
  readonly elementBytes: number;
  readonly dialling: Dialling;
  /** Called when the other rank signals this one. */
  readonly onSignal: () => void;
}

/**
 * One-sided access between two ranks that share no memory, in both directions: commands go over a connection, and the target
 * carries them out in order, whenever its thread waits, in the event loop or in a call. Connections are made at the first
 * command in either direction, or when both ends request it.
 */
export class WindowLane {
  readonly #options: WindowLaneOptions;
  readonly #words: Uint32Array;
  readonly #commands: Command[] = [];
  readonly #inlet: LazyReceiver;
  #outlet: LazySender | undefined;
  #flushes: Command[] = [];
  #flushNumber = 0;
  /** Gets that are not answered yet, in order. */
  readonly #gets: Command[] = [];
  #getNumber = 0;
  /** Messages sent and carried out so far. */
  #messages = 0;
  /** Error about a malformed message or a detached array. */
  #broken: Error | undefined;

  constructor(options: WindowLaneOptions) {
    this.#options = options;
    this.#words = new Uint32Array(options.segment.buffer);
    this.#inlet = new LazyReceiver(options.peer, options.dialling);
    this.#inlet.listen(true);
  }

  /** Connects with the other rank, which also calls it. */
  async connect(): Promise<void> {
    await Promise.all([this.#inlet.met(), this.#opened().met()]);
  }

  /** True if news is found only by polling. */
  get polled(): boolean {
    return (this.#inlet.connection?.fd ?? -1) >= 0 || (this.#outlet?.connection?.fd ?? -1) >= 0;
  }

  /** True if both connections use system calls, so that a rank can wait without its event loop. */
  get canBlock(): boolean {
    return this.#inlet.polled && this.#outlet?.polled === true;
  }

  /** Adds the wake sources of both connections. */
  wakeOn(sources: WakeSources): void {
    this.#inlet.wakeOn(sources);
    this.#outlet?.wakeOn(sources);
  }

  /** Writes all of `array` to the other's part, `offset` bytes from its beginning, and signals if wanted. */
  put(array: NumericArray, bytes: number, offset: number, signals: boolean): WindowCommand {
    return this.#add({ kind: PUT, value: signals ? 1 : 0, operand: this.#operand(array), bytes, offset });
  }

  /** Combines all of `array` with the other's part, from byte `offset` on, by the operator of a code. */
  accumulate(array: NumericArray, bytes: number, offset: number, operator: number): WindowCommand {
    return this.#add({ kind: PUT, value: 0, operand: this.#operand(array), bytes, offset, length: operator + 1 });
  }

  /** Fills all of `array` from the other's part, from byte `offset` on. */
  get(array: NumericArray, bytes: number, offset: number): WindowCommand {
    return this.#ask({ kind: GET, value: ++this.#getNumber, operand: this.#operand(array), bytes, offset, length: bytes });
  }

  /** Changes the element at byte `offset` by the operands in `array`, whose first element is then the one before the change. */
  fetch(array: NumericArray, bytes: number, offset: number, operator: number): WindowCommand {
    return this.#ask({ kind: FETCH, value: ++this.#getNumber, operand: this.#operand(array), bytes, offset, length: operator });
  }

  signal(): WindowCommand {
    return this.#add({ kind: SIGNAL });
  }

  /** Done when the other has carried out all commands before. */
  flush(): WindowCommand {
    const flush = this.#add({ kind: FLUSH, value: ++this.#flushNumber });
    this.#flushes.push(flush);
    return flush;
  }

  /** True if the other could have anything to flush. */
  get isUsed(): boolean {
    return this.#outlet !== undefined;
  }

  /** Progresses without waiting. Returns true if a message was sent or carried out. */
  progress(): boolean {
    const before = this.#messages;
    try {
      this.#carryOut();
      this.#post();
    } catch {
      // The connection has ended; failure() returns the reason.
    }
    return this.#messages !== before;
  }

  /** Reason why the other rank carries out no more commands, if there is one. Waits call this repeatedly. */
  failure(): Error | undefined {
    try {
      this.#inlet.check();
      this.#outlet?.check();
      return this.#broken;
    } catch (error) {
      return this.#broken ?? (error as Error);
    }
  }

  abort(reason: Error): void {
    this.#inlet.abort(reason);
    this.#outlet?.abort(reason);
  }

  async close(): Promise<void> {
    await Promise.all([this.#inlet.close(), this.#outlet?.close()]);
  }

  #operand(array: NumericArray): Operand {
    const operand = new Operand(this.#options.segment, this.#options.libc);
    operand.use(array);
    return operand;
  }

  #add(order: Partial<Command> & Pick<Command, 'kind'>): Command {
    const command: Command = { ...emptyCommand, ...order };
    this.#opened();
    this.#commands.push(command);
    this.#post();
    return command;
  }

  /** Adds a command that is answered. */
  #ask(order: Partial<Command> & Pick<Command, 'kind'>): Command {
    const command = this.#add(order);
    this.#gets.push(command);
    return command;
  }

  #opened(): LazySender {
    if (this.#outlet === undefined) {
      this.#outlet = new LazySender(this.#options.peer, this.#options.dialling);
      this.#outlet.listen(true);
    }
    return this.#outlet;
  }

  #post(): void {
    const connection = this.#outlet?.connection;
    if (connection === undefined || this.#outlet?.failure() !== undefined) return;
    for (let command = this.#commands[0]; command !== undefined; command = this.#commands[0]) {
      const slot = connection.acquire();
      if (slot < 0) return;
      const asks = command.kind === GET || command.kind === FETCH;
      const left = command.kind === GET ? 0 : command.kind === FETCH ? OPERAND_BYTES : command.bytes - command.moved;
      const bytes = Math.min(left, connection.size.slotBytes - HEADER_BYTES);
      const isLast = asks || bytes === left;
      const words = this.#words;
      words[slot / 4 + KIND] = command.kind;
      words[slot / 4 + OFFSET] = command.offset + command.moved;
      words[slot / 4 + VALUE] = command.kind === PUT && !isLast ? 0 : command.value;
      words[slot / 4 + LENGTH] = command.length;
      if (!this.#moves(() => bytes > 0 && command.operand?.copyTo(slot + HEADER_BYTES, command.moved, bytes))) return;
      connection.post(HEADER_BYTES + bytes);
      this.#messages++;
      // Of those that are answered, it counts the answer.
      if (!asks) command.moved += bytes;
      if (!isLast) continue;
      this.#commands.shift();
      if (command.kind !== FLUSH && !asks) endCommand(command);
    }
  }

  #carryOut(): void {
    const connection = this.#inlet.connection;
    if (connection === undefined || this.#inlet.failure() !== undefined) return;
    for (let slot = connection.peek(); slot >= 0; slot = connection.peek()) {
      this.#carryOutOne(slot, connection.messageBytes - HEADER_BYTES);
      connection.release();
      this.#messages++;
      if (this.#inlet.failure() !== undefined) return;
    }
  }

  #carryOutOne(slot: number, bytes: number): void {
    const { address, bytes: room, type, segment, onSignal, peer } = this.#options;
    const words = this.#words;
    const offset = defined(words[slot / 4 + OFFSET]);
    const value = defined(words[slot / 4 + VALUE]);
    const length = defined(words[slot / 4 + LENGTH]);
    const data = slot + HEADER_BYTES;
    switch (words[slot / 4 + KIND]) {
      case PUT:
        if (offset + bytes > room)
          this.#broken = new InternalError('INTERNAL', `rank ${peer} put ${bytes} bytes at ${offset} of a window of ${room}`);
        else if (length > 0) segment.kernels.accumulate(type, length - 1, address + offset, data, bytes, 0);
        else if (bytes > 0) segment.kernels.copy(address + offset, data, bytes);
        if (value !== 0) onSignal();
        return;
      case SIGNAL:
        onSignal();
        return;
      case FLUSH:
        this.#add({ kind: FLUSHED, value });
        return;
      case FLUSHED:
        for (const flush of this.#flushes) if (flush.value <= value) endCommand(flush);
        this.#flushes = this.#flushes.filter((flush) => !flush.done);
        return;
      case GET:
        if (offset + length > room)
          this.#broken = new InternalError('INTERNAL', `rank ${peer} gets ${length} bytes at ${offset} of a window of ${room}`);
        else this.#answer(value, new Uint8Array(segment.buffer, address + offset, length));
        return;
      case FETCH: {
        const size = this.#options.elementBytes;
        if (offset + size > room || bytes !== OPERAND_BYTES)
          this.#broken = new InternalError('INTERNAL', `rank ${peer} changes an element at ${offset} of a window of ${room}`);
        else {
          segment.kernels.accumulate(type, length, address + offset, data, size, data);
          // A copy, because the slot will be used again.
          this.#answer(value, new Uint8Array(segment.buffer, data, size).slice());
        }
        return;
      }
      case GOT:
        this.#take(value, offset, data, bytes);
        return;
      default:
        this.#broken = new InternalError('INTERNAL', `rank ${peer} sent an unknown command to a window`);
    }
  }

  /** Returns true if a piece could be moved; its array may have been detached meanwhile. */
  #moves(move: () => unknown): boolean {
    try {
      move();
      return true;
    } catch (error) {
      this.#broken ??= error as Error;
      return false;
    }
  }

  /** Sends the answer to a get or fetch. */
  #answer(number: number, array: Uint8Array): void {
    this.#add({ kind: GOT, value: number, operand: this.#operand(array), bytes: array.length });
  }

  /** Takes a slice of the oldest get; answers come in the order of the requests. */
  #take(number: number, offset: number, address: number, bytes: number): void {
    const [get] = this.#gets;
    if (get?.value !== number || offset + bytes > get.bytes) {
      this.#broken = new InternalError('INTERNAL', `rank ${this.#options.peer} answered a request that this rank did not make`);
      return;
    }
    if (!this.#moves(() => get.operand?.write(offset, bytes, address))) return;
    get.moved += bytes;
    if (get.moved < get.bytes) return;
    get.operand?.forget();
    this.#gets.shift();
    endCommand(get);
  }
}
