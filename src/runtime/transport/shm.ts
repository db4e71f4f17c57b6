import type { Team } from '../device/team.js';
import { InternalError } from '../../errors.js';
import {
  decodeInfo,
  encodeInfo,
  Fifo,
  FIRST_STEP,
  HEAD,
  LENGTHS,
  MOST_STEPS,
  OPEN,
  SENDER_STATE,
  ShmConnection,
  SLOTS,
  strideOf,
  TAIL,
  type FifoPlace,
} from './shm-connection.js';
import { LowLatencyReceiver, LowLatencySender, lowLatencyStride, type HeaderShape } from './shm-low-latency.js';
import type { ConnectionSetUp, FifoSize, ReceiveConnection, SendConnection, Transport } from './transport.js';

interface ShmOptions {
  readonly size: FifoSize;
  /** Team of the communicator; its segment contains the FIFOs. */
  readonly team: Team;
  /** The rank of each member of the team, by local rank. */
  readonly localRanks: readonly number[];
  /** Use the protocol LL of shm-low-latency.ts for short messages with this header. */
  readonly lowLatency?: HeaderShape;
}

/** Shared memory among the ranks of one segment. Connections are polled. */
export class ShmTransport implements Transport {
  readonly name = 'shm';
  readonly size: FifoSize;
  readonly #options: ShmOptions;

  constructor(options: ShmOptions) {
    this.#options = options;
    this.size = options.size;
    const { steps } = options.size;
    if (steps > MOST_STEPS || (steps & (steps - 1)) !== 0)
      throw new InternalError('INTERNAL', `a FIFO cannot have ${steps} steps`);
  }

  setUpSend(peer: number): Promise<ConnectionSetUp<SendConnection>> {
    return Promise.resolve({
      info: new Uint8Array(),
      connect: (info) => Promise.resolve(this.#sender(this.#fifo(decodeInfo(info)), peer)),
      cancel: () => undefined,
    });
  }

  /** @throws SystemError `OUT_OF_MEMORY` when the heap has no room for the FIFO. */
  // eslint-disable-next-line @typescript-eslint/require-await -- what it throws must come as a rejection
  async setUpReceive(peer: number): Promise<ConnectionSetUp<ReceiveConnection>> {
    const { segment } = this.#options.team;
    const { steps, slotBytes } = this.size;
    const address = segment.allocateBytes(SLOTS + steps * this.#stride());
    const fifo = this.#fifo({ address, steps, slotBytes });
    fifo.clear();
    // Old contents of the memory must not look like a flag of LL.
    if (this.#options.lowLatency !== undefined) new Uint8Array(segment.buffer, fifo.slots, steps * fifo.stride).fill(0);
    return {
      info: encodeInfo({ address, steps, slotBytes }),
      connect: () => Promise.resolve(this.#receiver(fifo, peer)),
      cancel: () => segment.freeBytes(address),
    };
  }

  close(): void {
    this.#options.team.segment.settle();
  }

  #stride(): number {
    const { slotBytes } = this.size;
    const { lowLatency } = this.#options;
    return lowLatency === undefined ? strideOf(slotBytes) : lowLatencyStride(slotBytes, lowLatency);
  }

  #fifo(place: FifoPlace): Fifo {
    return new Fifo(this.#options.team.segment, place, this.#stride());
  }

  #sender(fifo: Fifo, peer: number): SendConnection {
    const { lowLatency } = this.#options;
    if (lowLatency === undefined) return new ShmSender(fifo, peer, this.#leftBy(peer));
    return new LowLatencySender(fifo, peer, this.#leftBy(peer), lowLatency);
  }

  #receiver(fifo: Fifo, peer: number): ReceiveConnection {
    const { lowLatency } = this.#options;
    const leave = (): void => this.#leave(fifo, peer);
    if (lowLatency === undefined) return new ShmReceiver(fifo, peer, this.#leftBy(peer), leave);
    return new LowLatencyReceiver(fifo, peer, this.#leftBy(peer), leave, lowLatency);
  }

  /** Returns a FIFO's memory to the heap once both sides have left it. */
  #leave(fifo: Fifo, peer: number): void {
    const { team, localRanks } = this.#options;
    const sender = localRanks.indexOf(peer);
    const hasLeft = (): boolean => Atomics.load(fifo.words, SENDER_STATE) !== OPEN || team.isGone(sender);
    team.segment.when(hasLeft, () => team.segment.freeBytes(fifo.place.address));
  }

  /**
   * Returns a test of whether `peer` has left. The test throws if any rank of the communicator on this host died, because
   * then the collective cannot complete.
   */
  #leftBy(peer: number): () => boolean {
    const { team, localRanks } = this.#options;
    const local = localRanks.indexOf(peer);
    return () => {
      team.checkMembers(localRanks);
      return team.hasLeft(local);
    };
  }
}

class ShmSender extends ShmConnection implements SendConnection {
  #tail = FIRST_STEP;
  /** The receiver's counter as last read. */
  #head = FIRST_STEP;

  constructor(fifo: Fifo, peer: number, hasPeerLeft: () => boolean) {
    super(true, fifo, peer, hasPeerLeft, () => undefined);
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
  /** The sender's counter as last read. */
  #tail = FIRST_STEP;

  constructor(fifo: Fifo, peer: number, hasPeerLeft: () => boolean, onEnd: () => void) {
    super(false, fifo, peer, hasPeerLeft, onEnd);
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

  protected override hasUnread(): boolean {
    this.#tail = Atomics.load(this.words, TAIL);
    return this.#tail !== this.#head;
  }
}
