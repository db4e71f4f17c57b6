import type { Libc } from '../device/libc.js';
import type { Segment } from '../device/segment.js';
import type { NumericArray } from '../device/types.js';
import { InternalError } from '../../errors.js';
import { Operand } from '../algorithms/operand.js';
import type { WakeSources } from '../progress/parking.js';
import { LazyReceiver, LazySender, type Dialling } from '../messages/p2p-connection.js';

/** Header in front of the data of each slice: the command. A line of its own keeps data aligned. */
const HEADER_BYTES = 64;
const KIND = 0;
/** Index of the offset in the window, in bytes. */
const OFFSET = 1;
/** Put: 1 if a signal follows its last slice. Flush or get, and their answers: number of the command. */
const VALUE = 2;
/** Get: number of bytes. */
const LENGTH = 3;

const PUT = 1;
const SIGNAL = 2;
const FLUSH = 3;
const FLUSHED = 4;
const GET = 5;
/** A slice of the answer to a get; the offset is in the getter's array. */
const GOT = 6;

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
  moved: number;
}

interface WindowLaneOptions {
  readonly segment: Segment;
  readonly libc: Libc | undefined;
  readonly peer: number;
  /** Address of this rank's part of the window, which the other writes. */
  readonly address: number;
  readonly bytes: number;
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
    const operand = new Operand(this.#options.segment, this.#options.libc);
    operand.use(array);
    return this.#add({ kind: PUT, value: signals ? 1 : 0, operand, bytes, offset });
  }

  /** Fills all of `array` from the other's part, from byte `offset` on. */
  get(array: NumericArray, bytes: number, offset: number): WindowCommand {
    const operand = new Operand(this.#options.segment, this.#options.libc);
    operand.use(array);
    const get = this.#add({ kind: GET, value: ++this.#getNumber, operand, bytes, offset });
    this.#gets.push(get);
    return get;
  }

  signal(): WindowCommand {
    return this.#add({ kind: SIGNAL, value: 0, operand: undefined, bytes: 0, offset: 0 });
  }

  /** Done when the other has carried out all commands before. */
  flush(): WindowCommand {
    const flush = this.#add({ kind: FLUSH, value: ++this.#flushNumber, operand: undefined, bytes: 0, offset: 0 });
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

  #add(order: Omit<Command, 'moved' | 'done' | 'ended'>): Command {
    const command: Command = { ...order, moved: 0, done: false, ended: undefined };
    this.#opened();
    this.#commands.push(command);
    this.#post();
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
      const bytes = command.kind === GET ? 0 : Math.min(command.bytes - command.moved, connection.size.slotBytes - HEADER_BYTES);
      const isLast = command.kind === GET || command.moved + bytes === command.bytes;
      const words = this.#words;
      words[slot / 4 + KIND] = command.kind;
      words[slot / 4 + OFFSET] = command.offset + command.moved;
      words[slot / 4 + VALUE] = command.kind === PUT && !isLast ? 0 : command.value;
      words[slot / 4 + LENGTH] = command.kind === GET ? command.bytes : 0;
      if (!this.#moves(() => bytes > 0 && command.operand?.copyTo(slot + HEADER_BYTES, command.moved, bytes))) return;
      connection.post(HEADER_BYTES + bytes);
      this.#messages++;
      command.moved += bytes;
      if (!isLast) continue;
      this.#commands.shift();
      if (command.kind !== FLUSH && command.kind !== GET) endCommand(command);
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
    const { address, bytes: room, segment, onSignal, peer } = this.#options;
    const words = this.#words;
    const offset = words[slot / 4 + OFFSET] ?? 0;
    const value = words[slot / 4 + VALUE] ?? 0;
    switch (words[slot / 4 + KIND]) {
      case PUT:
        if (offset + bytes > room)
          this.#broken = new InternalError('INTERNAL', `rank ${peer} put ${bytes} bytes at ${offset} of a window of ${room}`);
        else if (bytes > 0) segment.kernels.copy(address + offset, slot + HEADER_BYTES, bytes);
        if (value !== 0) onSignal();
        return;
      case SIGNAL:
        onSignal();
        return;
      case FLUSH:
        this.#add({ kind: FLUSHED, value, operand: undefined, bytes: 0, offset: 0 });
        return;
      case FLUSHED:
        for (const flush of this.#flushes) if (flush.value <= value) endCommand(flush);
        this.#flushes = this.#flushes.filter((flush) => !flush.done);
        return;
      case GET: {
        const length = words[slot / 4 + LENGTH] ?? 0;
        if (offset + length > room)
          this.#broken = new InternalError('INTERNAL', `rank ${peer} gets ${length} bytes at ${offset} of a window of ${room}`);
        else this.#answer(value, address + offset, length);
        return;
      }
      case GOT:
        this.#take(value, offset, slot + HEADER_BYTES, bytes);
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

  /** Sends the data for a get. */
  #answer(number: number, address: number, bytes: number): void {
    const { segment, libc } = this.#options;
    const operand = new Operand(segment, libc);
    operand.use(new Uint8Array(segment.buffer, address, bytes));
    this.#add({ kind: GOT, value: number, operand, bytes, offset: 0 });
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
