import type { WaitReport } from '../device/wait-report.js';

/**
 * A transport carries messages from one rank to another, through slots that lie in WebAssembly memory on both sides, so
 * that kernels read and write them in place. A connection goes one way. It is a FIFO of a few slots ("steps"):
 *
 *      sender                                                          receiver
 *      acquire(): a free slot ──┐                            ┌──────── peek(): the oldest filled slot
 *      … kernels write it …     ▼                            ▼         … kernels read it …
 *                     ┌────┬────┬────┬────┬────┬────┬────┬────┐
 *              steps  │    │    │free│free│full│full│full│    │
 *                     └────┴────┴────┴────┴────┴────┴────┴────┘
 *                                 ▲ tail            ▲ head … counting up for ever; a step's slot is step mod steps
 *      post(bytes): tail + 1 ───────────► "one more is filled"
 *               "one more is free", a credit ◄──────────────────────── release(): head + 1
 *
 * The sender waits while tail - head = steps: the receiver's memory bounds what is on its way. Nothing here blocks:
 * `acquire` and `peek` answer -1 where they would have to wait, and the caller comes again. Each side has at most one
 * slot in hand: `acquire` and `peek` give the same address until `post` and `release`.
 *
 * A side that ends says so, and why: `close` for good, `abort` with the error that the other side will meet. Messages
 * posted before are still delivered.
 *
 * Connections are set up as in NCCL: each end makes a few bytes of connect information, the bootstrap network carries
 * them to the other end, and both connect.
 */
export interface Transport {
  readonly name: TransportName;
  /** Of its connections. */
  readonly size: FifoSize;
  /** The end that sends to rank `peer`. */
  setUpSend(peer: number): Promise<ConnectionSetUp<SendConnection>>;
  /** The end that receives from rank `peer`. */
  setUpReceive(peer: number): Promise<ConnectionSetUp<ReceiveConnection>>;
  /** Leaves nothing open that set-ups opened. Connections stay. */
  close(): void;
}

export type TransportName = 'shm' | 'socket';

/** How much a connection holds. */
export interface FifoSize {
  /** Slots; a power of two, at most 16. */
  readonly steps: number;
  /** Longest message. */
  readonly slotBytes: number;
}

/** One end of a connection before both have met. */
export interface ConnectionSetUp<C> {
  /** For the other end's `connect`. */
  readonly info: Uint8Array;
  /**
   * Joins the other end, whose information is `info`.
   * @throws SystemError `NETWORK` when it cannot be reached; the reason of `signal` when that comes first.
   */
  connect(info: Uint8Array, signal: AbortSignal): Promise<C>;
  /** Gives up a set-up whose `connect` was not called. */
  cancel(): void;
}

/** What both ends of a connection have in common. */
export interface Connection {
  readonly transport: TransportName;
  /** The rank at the other end. */
  readonly peer: number;
  readonly size: FifoSize;
  /** Whether only asking again tells what is new; otherwise `onNews` calls when it is worth it. */
  readonly polled: boolean;
  /**
   * A descriptor to sleep on, readable when there may be news. -1 where there is none: in shared memory, where node:net moves
   * the data, and when the connection has ended.
   */
  readonly fd: number;
  /** Hands the kernel what it had no room for. Returns whether all is handed over; else it has room when `fd` is writable. */
  flush(): boolean;
  /**
   * Calls `listener` after each event that may let `acquire` or `peek` give another answer. While there is a listener,
   * the connection keeps the process alive. `undefined` ends it. A polled connection calls for one event only, of which its
   * descriptor tells nothing: it is known why it broke.
   */
  onNews(listener: (() => void) | undefined): void;
  /**
   * Looks for a peer that ended without a word, which `acquire` and `peek` may not notice; costs more than they do.
   * @throws RemoteError `RANK_DIED`, and what `acquire` and `peek` throw.
   */
  check(): void;
  /**
   * Tells the other side that this one waits for long, and what it knows of why, in at most 64 int32; again and again
   * while it does.
   */
  sayWaits(report: readonly number[]): void;
  /** What the other side last told so. */
  heardWaits(): WaitReport | undefined;
  /** Says goodbye after what is posted. Resolves when nothing of the connection is left open on this side. */
  close(): Promise<void>;
  /** Ends at once; the other side meets `reason`, and so do later calls on this side. */
  abort(reason: Error): void;
}

/** The end that sends. */
export interface SendConnection extends Connection {
  /**
   * The address of the next free slot, or -1 while there is none. Slots are aligned to 64 bytes.
   * @throws RemoteError `RANK_DIED`, `CLOSED` or `ABORTED` when the receiver has ended, or the error it ended with.
   * @throws InvalidUsageError `CLOSED` after `close` on this side; the reason after `abort`.
   */
  acquire(): number;
  /** Sends the first `bytes` bytes of the slot that `acquire` gave. */
  post(bytes: number): void;
}

/** The end that receives. */
export interface ReceiveConnection extends Connection {
  /** The address of the oldest message not yet released, or -1 when none is there. Throws as `acquire`, once all is read. */
  peek(): number;
  /** Length of the message that `peek` gave. */
  readonly messageBytes: number;
  /** Gives the slot that `peek` gave back to the sender. */
  release(): void;
}
