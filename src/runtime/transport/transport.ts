import type { WaitReport } from '../device/wait-report.js';

/**
 * A transport carries messages from one rank to another, through slots that lie in WebAssembly memory on both sides, so
 * that kernels read and write them in place. A connection goes one way, or both. Each way is a FIFO of a few slots ("steps"):
 *
 *      sender                                                          receiver
 *      acquire(): a free slot ──┐                            ┌──────── peek(): the oldest filled slot
 *      … kernels write it …     ▼                            ▼         … kernels read it …
 *                     ┌────┬────┬────┬────┬────┬────┬────┬────┐
 *              steps  │    │    │free│free│full│full│full│    │
 *                     └────┴────┴────┴────┴────┴────┴────┴────┘
 *                                 ▲ tail            ▲ head … counting up forever; a step's slot is step mod steps
 *      post(bytes): tail + 1 ───────────► "one more is filled"
 *               "one more is free", a credit ◄──────────────────────── release(): head + 1
 *
 * The sender waits while tail - head = steps, so the receiver's memory bounds the data in flight. Nothing here blocks:
 * `acquire` and `peek` return -1 where they would have to wait, and the caller tries again. Each side holds at most one
 * slot: `acquire` and `peek` return the same address until `post` and `release`.
 *
 * A side ends with `close`, or with `abort` and the error that the other side will throw. Messages posted before are
 * still delivered.
 *
 * Connections are set up as in NCCL: each end makes a few bytes of connect information, the bootstrap network carries
 * them to the other end, and both connect.
 */
export interface Transport {
  readonly name: TransportName;
  /** Size of its connections. */
  readonly size: FifoSize;
  /** Opens the end that sends to rank `peer`. */
  setUpSend(peer: number): Promise<ConnectionSetUp<SendConnection>>;
  /** Opens the end that receives from rank `peer`. */
  setUpReceive(peer: number): Promise<ConnectionSetUp<ReceiveConnection>>;
  /** Opens one end of a connection with rank `peer` that goes both ways. Left out where two connections cost no more. */
  setUpBoth?(peer: number): Promise<ConnectionSetUp<TwoWayConnection>>;
  /** Closes everything that set-ups opened. Connections stay open. */
  close(): void;
}

/** `shm`, or the name of a network (networks.ts). */
export type TransportName = string;

/** Capacity of a connection. */
export interface FifoSize {
  /** Number of slots of each socket; a power of two, at most 16. */
  readonly steps: number;
  /** Longest message. */
  readonly slotBytes: number;
}

/** One end of a connection before the two ends are joined. */
export interface ConnectionSetUp<C> {
  /** Connect information for the other end's `connect`. */
  readonly info: Uint8Array;
  /**
   * Joins the other end, whose information is `info`.
   * @throws SystemError `NETWORK` when it cannot be reached; the reason of `signal` when that comes first.
   */
  connect(info: Uint8Array, signal: AbortSignal): Promise<C>;
  /** Gives up a set-up whose `connect` was not called. */
  cancel(): void;
}

/** Below this length, copying data costs less than the system call by which they are received where they belong. */
export const LEAST_IN_PLACE_BYTES = 8 * 1024;

/** News that a rank awaits of a connection: the next message, or a free slot for one. */
export type AwaitedNews = 'message' | 'slot';

/** Collects descriptors for a sleep. */
export interface FdSources {
  addFd(fd: number, readable: boolean, writable: boolean): void;
}

/** Common part of both ends of a connection. */
export interface Connection {
  readonly transport: TransportName;
  /** The rank at the other end. */
  readonly peer: number;
  readonly size: FifoSize;
  /** True when news is found only by polling; otherwise `onNews` reports it. */
  readonly polled: boolean;
  /** True if data can go straight from arrays in the segment and to them: `postFrom` and `peekInto`. */
  readonly reachesArrays?: boolean;
  /** Address of 64 bytes in shared memory that the receiver writes and the sender reads; left out elsewhere. */
  readonly receiverLine?: number;
  /**
   * A descriptor that is readable when there may be news. -1 in shared memory, where node:net moves the data, and after the
   * connection has ended.
   */
  readonly fd: number;
  /** Hands unsent bytes to the kernel. Returns whether all are handed over; if not, call again when `fd` is writable. */
  flush(): boolean;
  /**
   * Adds the descriptor that wakes this thread when there is the awaited news of the other side, if any, or room for unsent
   * bytes. Called before each sleep; the caller polls once more afterwards.
   */
  wakeOn(sources: FdSources, awaited?: AwaitedNews): void;
  /**
   * Calls `listener` after each event that may change the answer of `acquire` or `peek`. A listener keeps the process alive;
   * `undefined` removes it. A polled connection reports only one event, which its descriptor does not show: the reason of a
   * broken connection has become known.
   */
  onNews(listener: (() => void) | undefined): void;
  /**
   * Detects a peer that ended without a goodbye, which `acquire` and `peek` may not notice. Costs more than they do.
   * @throws RemoteError `RANK_DIED`, and what `acquire` and `peek` throw.
   */
  check(): void;
  /**
   * Reports to the other side, repeatedly while it lasts, that this side has waited for long and for which ranks: at most 64
   * int32.
   */
  reportWait(report: readonly number[]): void;
  /** The last report of the other side. */
  waitReport(): WaitReport | undefined;
  /** Sends a goodbye after all posted messages, and a last report before it. Resolves when this side has closed everything. */
  close(report?: readonly number[]): Promise<void>;
  /** Ends immediately; the other side and later calls on this side throw `reason`. */
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
  /**
   * Sends the first `headBytes` bytes of that slot, and behind them `bytes` bytes from an address of the segment. Nobody may
   * change those before `flush` has returned true.
   */
  postFrom?(headBytes: number, address: number, bytes: number): void;
}

/** The end that receives. */
export interface ReceiveConnection extends Connection {
  /**
   * The address of the oldest message not yet released, or -1 when there is none. Throws like `acquire`, once all messages
   * are read.
   */
  peek(): number;
  /**
   * Like `peek`, but if the message has `bytes` bytes after its first `headBytes`, and has not arrived yet, these are received
   * at an address of the segment.
   */
  peekInto?(headBytes: number, address: number, bytes: number): number;
  /** Length of the message that `peek` returned. */
  readonly messageBytes: number;
  /** True if all but the first bytes of that message are at the address that `peekInto` got, instead of the slot. */
  readonly isInPlace?: boolean;
  /** Returns that slot to the sender. */
  release(): void;
  /**
   * Returns all slots that were released to the sender, also those that it would otherwise get later, several at a time. Called
   * while this rank itself waits for slots, or ranks in a circle would wait for each other. Left out where none are held back
   * while messages arrive.
   */
  returnSlots?(): void;
  /**
   * Confirms all messages that were released, where the sender would otherwise wait for that when it closes. Called at the end of
   * an operation; left out where the kernel confirms them.
   */
  settle?(): void;
}

/** The end that does both. */
export type TwoWayConnection = SendConnection & ReceiveConnection;
