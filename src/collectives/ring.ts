import { callKinds, DONE, PENDING, type Arithmetic } from '../device/kernels/kernels.js';
import type { Libc } from '../device/libc.js';
import type { Segment } from '../device/segment.js';
import { operatorCode, type DataType, type NumericArray } from '../device/types.js';
import { TcclError } from '../errors.js';
import type { Ring as RingOfRanks } from '../transport/ring.js';
import type { FifoSize, ReceiveConnection, SendConnection } from '../transport/transport.js';
import { algorithms, callMismatch, decodeCall, unsupported } from './call.js';
import { Operand } from './operand.js';
import { Schedule } from './ring-schedule.js';

/** What travels before the data of each slice: what the sender called. A line of its own keeps data aligned. */
const HEADER_BYTES = 64;
const CODE = 0;
const ROOT = 1;
const COUNT_LOW = 2;
const COUNT_HIGH = 3;

/**
 * Most data that travel at once. Smaller slices hand over more often, which costs most where ranks share cores; larger
 * ones take more memory a connection (npm run bench -- --only transport compares them).
 */
export const SLICE_BYTES = 256 * 1024;
/** The connections that a ring works on. */
export const RING_FIFO: FifoSize = { steps: 8, slotBytes: HEADER_BYTES + SLICE_BYTES };

const RING = algorithms.indexOf('ring') << 12;
const AVERAGE = operatorCode('avg');

/**
 * The algorithm *ring*: all-reduce, broadcast and barrier among ranks in a circle, over any transport. One operation is
 * under way at a time, as a state machine that never waits: `begin` and `progress` do what can be done now. It is made
 * once; slices are the only memory it needs, and those are the transport's.
 *
 * Every slice carries the call that it belongs to, and in each operation every rank gets at least one: ranks that called
 * different things find out before they use any data.
 */
export class Ring {
  /** Slices moved so far. */
  steps = 0;
  /** Whether a rank may wait in a blocking call. Sockets move only in the event loop. */
  readonly blocking: boolean;
  /** Calls `wake` once when going on may be possible. Absent where only looking again tells. */
  declare readonly whenReady?: (wake: () => void) => void;
  readonly #kernels: Arithmetic;
  readonly #send: SendConnection | undefined;
  readonly #receive: ReceiveConnection | undefined;
  readonly #schedule: Schedule;
  readonly #source: Operand;
  readonly #destination: Operand;
  readonly #words: Uint32Array;
  /** Tables of addresses for kernels: two sources, two destinations. */
  readonly #tables: number;

  // The call under way.
  #code = 0;
  #root = 0;
  #count = 0;
  #type = 0;
  #operator = 0;
  #dividing = false;
  /** Whether a slice of this call came. */
  #met = false;

  constructor(readonly segment: Segment, readonly libc: Libc | undefined, readonly ring: RingOfRanks) {
    this.blocking = ring.blocking;
    if (!ring.polled && ring.links !== undefined) {
      this.whenReady = (wake) => {
        ring.onNews(() => {
          ring.onNews(undefined);
          wake();
        });
      };
    }
    this.#kernels = segment.kernels;
    this.#send = ring.links?.send;
    this.#receive = ring.links?.receive;
    const { steps, slotBytes } = ring.links?.send.size ?? RING_FIFO;
    this.#schedule = new Schedule(ring.order.length, ring.index, slotBytes - HEADER_BYTES, steps / 2);
    this.#source = new Operand(segment, libc);
    this.#destination = new Operand(segment, libc);
    this.#words = new Uint32Array(segment.buffer);
    this.#tables = segment.allocateBytes(16);
  }

  /**
   * Starts a call about the first `count` elements and goes on while it need not wait. Input and output may be the same
   * array, in or outside the segment.
   *
   * @param code kind, type and operator of the call (call.ts)
   * @param spins how often to look for what is not there yet before PENDING is returned
   * @throws InvalidUsageError `CALL_MISMATCH` when the previous rank called something else, RemoteError `RANK_DIED` and
   *   whatever else ends a connection. After an error nothing works any more, and the neighbours have been told.
   */
  begin(code: number, type: DataType, root: number, send: NumericArray, recv: NumericArray, count: number, spins: number): number {
    const kind = code & 15;
    if (kind > callKinds.barrier) throw unsupported(code, 'ring');
    this.#code = code | RING;
    this.#root = root;
    this.#count = count;
    this.#type = type.code;
    this.#operator = (code >> 8) & 15;
    this.#dividing = kind === callKinds.allReduce && this.#operator === AVERAGE;
    this.#met = false;
    const { ring } = this;
    const bytes = count * type.bytes;
    // In a broadcast, only the root's input matters.
    if (kind !== callKinds.broadcast || root === ring.rank) this.#source.use(send);
    this.#destination.use(recv);
    if (ring.links === undefined) return this.#alone(kind, bytes);
    if (kind === callKinds.allReduce) this.#schedule.startAllReduce(bytes);
    else if (kind === callKinds.broadcast) this.#schedule.startBroadcast(bytes, ring.order.indexOf(root), send !== recv);
    else this.#schedule.startBarrier();
    return this.progress(ring.polled ? spins : 0);
  }

  /** Goes on with the operation under way; throws as `begin`. */
  progress(spins: number): number {
    try {
      return this.#run(spins);
    } catch (error) {
      this.abort(error as Error);
      throw error;
    }
  }

  /** Looks whether those that are waited for can still come; throws as `begin`. */
  check(): void {
    if (this.#send === undefined || this.#receive === undefined) return;
    const [awaited, other] = this.#schedule.receives ? [this.#receive, this.#send] : [this.#send, this.#receive];
    awaited.check();
    try {
      other.check();
    } catch (error) {
      // A neighbour that has had all it needed may have closed already.
      if (!(error instanceof TcclError && error.code === 'CLOSED')) throw error;
    }
  }

  /** The ranks known not to have made the call under way. */
  late(): number[] {
    return this.#met ? [] : [this.ring.rankAt(-1)];
  }

  /** Says goodbye to the neighbours. Resolves when all that was sent is on its way; the segment must live until then. */
  async close(): Promise<void> {
    this.#forget();
    await this.ring.close();
  }

  /** Ends at once and tells the neighbours why. */
  abort(reason: Error): void {
    this.#forget();
    this.ring.abort(reason);
  }

  #forget(): void {
    this.#source.forget();
    this.#destination.forget();
  }

  #run(spins: number): number {
    const send = this.#send;
    const receive = this.#receive;
    const schedule = this.#schedule;
    if (send === undefined || receive === undefined) return DONE;
    while (!schedule.done) {
      let from = 0;
      let to = 0;
      if (schedule.receives) {
        from = receive.peek();
        if (from >= 0 && !this.#met) this.#meet(from);
      } else if (!this.#met) this.#lookAhead(receive);
      if (schedule.sends && from >= 0) to = send.acquire();
      if (from < 0 || to < 0) {
        if (spins-- > 0) continue;
        if (!this.ring.polled) this.check();
        return PENDING;
      }
      this.#work(from, to, send, receive);
      schedule.next();
      this.steps++;
    }
    this.#forget();
    return DONE;
  }

  /** A rank that cannot send yet still finds out that the rank before it called something else. */
  #lookAhead(receive: ReceiveConnection): void {
    const from = receive.peek();
    if (from >= 0) this.#meet(from);
  }

  /** Moves one slice: from the slot at `from` (0: none), if any, to the slot at `to` (0: none), and to where it stays. */
  #work(from: number, to: number, send: SendConnection, receive: ReceiveConnection): void {
    const { sends, receives, reduces, keeps, offset, bytes } = this.#schedule;
    const input = from + HEADER_BYTES;
    const output = to + HEADER_BYTES;
    let kept = input;
    let keptInPlace = false;
    if (bytes > 0) {
      if (!receives) {
        const own = this.#source.read(offset, bytes, output);
        if (own !== output) this.#kernels.copy(output, own, bytes);
        kept = output;
      } else if (reduces) {
        const own = this.#source.read(offset, bytes, output);
        keptInPlace = keeps && this.#destination.placed && !this.#dividing;
        this.#combine(input, own, output, keptInPlace ? this.#destination.address(offset) : 0, bytes);
        if (keeps && this.#dividing) this.#kernels.divide(this.#type, output, bytes, this.ring.order.length);
        kept = output;
      } else if (sends) {
        keptInPlace = this.#destination.placed;
        if (keptInPlace) this.#combine(input, 0, output, this.#destination.address(offset), bytes);
        else this.#kernels.copy(output, input, bytes);
      }
    }
    // The others need the slice more urgently than this rank its own copy.
    if (sends) {
      this.#describe(to);
      send.post(HEADER_BYTES + bytes);
    }
    if (keeps && !keptInPlace && bytes > 0) this.#destination.write(offset, bytes, kept);
    if (receives) receive.release();
  }

  /** Combines one or two sources (`b` 0: none) into one or two destinations (`d` 0: none). */
  #combine(a: number, b: number, c: number, d: number, bytes: number): void {
    const table = this.#tables / 4;
    const words = this.#words;
    words[table] = a;
    words[table + 1] = b;
    words[table + 2] = c;
    words[table + 3] = d;
    // An average is a sum that is divided in the end.
    const operator = this.#operator === AVERAGE ? 0 : this.#operator;
    this.#kernels.reduceCopy(this.#type, operator, this.#tables, b === 0 ? 1 : 2, this.#tables + 8, d === 0 ? 1 : 2, 0, bytes);
  }

  #describe(slot: number): void {
    const header = slot / 4;
    const words = this.#words;
    words[header + CODE] = this.#code;
    words[header + ROOT] = this.#root;
    words[header + COUNT_LOW] = this.#count;
    words[header + COUNT_HIGH] = this.#count / 2 ** 32;
  }

  /** Compares what the previous rank called with what this one did. */
  #meet(slot: number): void {
    const header = slot / 4;
    const words = this.#words;
    const code = words[header + CODE] ?? 0;
    const root = words[header + ROOT] ?? 0;
    const count = (words[header + COUNT_LOW] ?? 0) + (words[header + COUNT_HIGH] ?? 0) * 2 ** 32;
    this.#met = true;
    if (code === this.#code && root === this.#root && count === this.#count) return;
    const { rank } = this.ring;
    throw callMismatch(rank, decodeCall(this.#code, this.#root, this.#count), this.ring.rankAt(-1), decodeCall(code, root, count));
  }

  /** Among one rank, a collective is at most a copy. */
  #alone(kind: number, bytes: number): number {
    if (kind !== callKinds.barrier && bytes > 0) this.#destination.copyFrom(this.#source, 0, 0, bytes);
    this.#forget();
    return DONE;
  }
}
