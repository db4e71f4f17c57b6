import type { Segment } from '../device/segment.js';
import type { Team } from '../device/team.js';
import { InternalError } from '../errors.js';
import { closedHere, closedThere, died, packReason, REASON_BYTES, unpackReason } from './ending.js';
import type { Connection, ConnectionSetUp, FifoSize, ReceiveConnection, SendConnection, Transport } from './transport.js';

/*
 * A FIFO between two ranks of one host, in the heap of the receiver. Each counter has a line of its own, written by
 * one side only; a side keeps a copy of the other's counter and looks again only when the copy says "wait".
 *
 *     0      tail u32, sender's state u32, bytes of its reason u32          written by the sender
 *     64     length of each step's message u32[steps]
 *     128    head u32, receiver's state u32, bytes of its reason u32        written by the receiver
 *     256    the sender's reason for an abort
 *     1152   the receiver's
 *     2048   slots, one behind the other
 *
 * Counters are compared by difference, so they may overflow. They begin just before 2^31, so that they always do.
 */
const TAIL = 0;
const SENDER_STATE = 1;
const LENGTHS = 16;
const HEAD = 32;
const RECEIVER_STATE = 33;
const SENDER_REASON = 256;
const RECEIVER_REASON = SENDER_REASON + REASON_BYTES;
const SLOTS = RECEIVER_REASON + REASON_BYTES;
const FIRST_STEP = 0x7ffffffd | 0;
const MOST_STEPS = 16;

/** What a side's state word says. The reason of an abort is complete before the word says so. */
const OPEN = 0;
const CLOSED = 1;
const ABORTED = 2;

export interface ShmOptions {
  readonly size: FifoSize;
  /** Of the communicator; its segment has the FIFOs. */
  readonly team: Team;
  /** The rank of each member of the team, by local rank. */
  readonly localRanks: readonly number[];
}

/** Shared memory: the ranks of one segment. Connections are polled. */
export class ShmTransport implements Transport {
  readonly name = 'shm';
  readonly size: FifoSize;
  readonly #options: ShmOptions;

  constructor(options: ShmOptions) {
    this.#options = options;
    this.size = options.size;
    const { steps } = options.size;
    if (steps > MOST_STEPS || (steps & (steps - 1)) !== 0) throw new InternalError('INTERNAL', `a FIFO cannot have ${steps} steps`);
  }

  setUpSend(peer: number): Promise<ConnectionSetUp<SendConnection>> {
    return Promise.resolve({
      info: new Uint8Array(),
      connect: (info) => Promise.resolve(new ShmSender(new Fifo(this.#options.team.segment, decodeInfo(info)), peer, this.#findDead)),
      cancel: () => undefined,
    });
  }

  /** @throws SystemError `OUT_OF_MEMORY` when the heap has no room for the FIFO. */
  // eslint-disable-next-line @typescript-eslint/require-await -- what it throws must come as a rejection
  async setUpReceive(peer: number): Promise<ConnectionSetUp<ReceiveConnection>> {
    const { segment } = this.#options.team;
    const { steps, slotBytes } = this.size;
    const address = segment.allocateBytes(SLOTS + steps * strideOf(slotBytes));
    const fifo = new Fifo(segment, { address, steps, slotBytes });
    fifo.clear();
    return {
      info: encodeInfo({ address, steps, slotBytes }),
      connect: () => Promise.resolve(new ShmReceiver(fifo, peer, this.#findDead, () => this.#leave(fifo, peer))),
      cancel: () => segment.freeBytes(address),
    };
  }

  close(): void {
    this.#options.team.segment.settle();
  }

  /** Gives memory back to the heap once both sides have left it. */
  #leave(fifo: Fifo, peer: number): void {
    const { team, localRanks } = this.#options;
    const sender = localRanks.indexOf(peer);
    const hasLeft = (): boolean => Atomics.load(fifo.words, SENDER_STATE) !== OPEN || team.isGone(sender);
    team.segment.when(hasLeft, () => team.segment.freeBytes(fifo.place.address));
  }

  /** Throws if any rank of the communicator on this host died: whoever it is, data will not come round. */
  readonly #findDead = (): void => {
    const { team, localRanks } = this.#options;
    const dead = team.findDead();
    if (dead >= 0) throw died(localRanks[dead] ?? dead);
  };
}

interface FifoPlace extends FifoSize {
  readonly address: number;
}

function strideOf(slotBytes: number): number {
  return Math.ceil(slotBytes / 64) * 64;
}

function encodeInfo({ address, steps, slotBytes }: FifoPlace): Uint8Array {
  const info = Buffer.alloc(12);
  info.writeUInt32LE(address, 0);
  info.writeUInt32LE(steps, 4);
  info.writeUInt32LE(slotBytes, 8);
  return info;
}

function decodeInfo(bytes: Uint8Array): FifoPlace {
  const info = Buffer.from(bytes);
  return { address: info.readUInt32LE(0), steps: info.readUInt32LE(4), slotBytes: info.readUInt32LE(8) };
}

/** The memory that both sides share. */
class Fifo {
  readonly words: Int32Array;
  readonly slots: number;
  readonly stride: number;
  readonly mask: number;

  constructor(readonly segment: Segment, readonly place: FifoPlace) {
    this.words = new Int32Array(segment.buffer, place.address, SLOTS / 4);
    this.slots = place.address + SLOTS;
    this.stride = strideOf(place.slotBytes);
    this.mask = place.steps - 1;
  }

  clear(): void {
    this.words.fill(0);
    Atomics.store(this.words, TAIL, FIRST_STEP);
    Atomics.store(this.words, HEAD, FIRST_STEP);
  }
}

/** What both sides do alike. `mine` and `theirs` are the places of state words. */
abstract class ShmConnection implements Connection {
  readonly transport = 'shm';
  readonly polled = true;
  readonly size: FifoSize;
  protected readonly words: Int32Array;
  /** What later calls on this side throw. */
  protected ended: Error | undefined;
  readonly #mine: number;
  readonly #theirs: number;

  /**
   * @param findDead throws if a rank of the host died
   * @param onEnd called once when this side has left
   */
  protected constructor(
    sends: boolean,
    protected readonly fifo: Fifo,
    readonly peer: number,
    readonly findDead: () => void,
    readonly onEnd: () => void,
  ) {
    this.size = fifo.place;
    this.words = fifo.words;
    this.#mine = sends ? SENDER_STATE : RECEIVER_STATE;
    this.#theirs = sends ? RECEIVER_STATE : SENDER_STATE;
  }

  onNews(): void {
    // Memory does not call.
  }

  check(): void {
    if (this.ended !== undefined) throw this.ended;
    this.throwIfLeft();
    this.findDead();
  }

  close(): Promise<void> {
    this.#end(closedHere(this.peer), CLOSED);
    return Promise.resolve();
  }

  abort(reason: Error): void {
    if (this.ended !== undefined) return;
    const packed = packReason(reason);
    new Uint8Array(this.words.buffer, this.#reasonAddress(this.#mine), REASON_BYTES).set(packed);
    Atomics.store(this.words, this.#mine + 1, packed.length);
    this.#end(reason, ABORTED);
  }

  /** Throws if the other side has left the connection. */
  protected throwIfLeft(): void {
    const state = Atomics.load(this.words, this.#theirs);
    if (state === OPEN) return;
    if (state === CLOSED) throw closedThere(this.peer);
    const length = Atomics.load(this.words, this.#theirs + 1);
    throw unpackReason(new Uint8Array(this.words.buffer, this.#reasonAddress(this.#theirs), length), this.peer);
  }

  #end(error: Error, state: number): void {
    if (this.ended !== undefined) return;
    this.ended = error;
    Atomics.store(this.words, this.#mine, state);
    this.onEnd();
  }

  #reasonAddress(stateWord: number): number {
    return this.words.byteOffset + (stateWord === SENDER_STATE ? SENDER_REASON : RECEIVER_REASON);
  }
}

class ShmSender extends ShmConnection implements SendConnection {
  #tail = FIRST_STEP;
  /** The receiver's counter when last seen. */
  #head = FIRST_STEP;

  constructor(fifo: Fifo, peer: number, findDead: () => void) {
    super(true, fifo, peer, findDead, () => undefined);
  }

  acquire(): number {
    if (this.ended !== undefined) throw this.ended;
    const { fifo } = this;
    if (((this.#tail - this.#head) | 0) > fifo.mask) {
      this.#head = Atomics.load(this.words, HEAD);
      if (((this.#tail - this.#head) | 0) > fifo.mask) {
        this.throwIfLeft();
        return -1;
      }
    }
    return fifo.slots + (this.#tail & fifo.mask) * fifo.stride;
  }

  post(bytes: number): void {
    this.words[LENGTHS + (this.#tail & this.fifo.mask)] = bytes;
    this.#tail = (this.#tail + 1) | 0;
    Atomics.store(this.words, TAIL, this.#tail);
  }
}

class ShmReceiver extends ShmConnection implements ReceiveConnection {
  messageBytes = 0;
  #head = FIRST_STEP;
  /** The sender's counter when last seen. */
  #tail = FIRST_STEP;

  constructor(fifo: Fifo, peer: number, findDead: () => void, onEnd: () => void) {
    super(false, fifo, peer, findDead, onEnd);
  }

  peek(): number {
    if (this.ended !== undefined) throw this.ended;
    const { fifo } = this;
    if (this.#tail === this.#head) {
      this.#tail = Atomics.load(this.words, TAIL);
      if (this.#tail === this.#head) {
        this.throwIfLeft();
        return -1;
      }
    }
    const step = this.#head & fifo.mask;
    this.messageBytes = this.words[LENGTHS + step] ?? 0;
    return fifo.slots + step * fifo.stride;
  }

  release(): void {
    this.#head = (this.#head + 1) | 0;
    Atomics.store(this.words, HEAD, this.#head);
  }

  /** What was posted before the sender left is read first. */
  protected override throwIfLeft(): void {
    try {
      super.throwIfLeft();
    } catch (error) {
      this.#tail = Atomics.load(this.words, TAIL);
      if (this.#tail === this.#head) throw error;
    }
  }
}
