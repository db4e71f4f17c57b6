/*
 * Layout of boards: each rank's state in the segment, which other processes read while the rank waits, computes or is stopped
 * (observe/read-boards.ts). In the segment's unused beginning:
 *
 *     64       magic number, version of this layout, number of local ranks, address of the first board
 *
 * A board:
 *
 *     0        header: state, rank, number of ranks, process, number of calls of closed communicators,
 *              of calls that waited, of entries in the ring, thread by its number in the kernel; f64 since byte 32: wall
 *              clock when the rank's clock was 0, bytes of the heap in use, bytes of the heap; then the length of a text, and
 *              the text (JSON)
 *     1024     a slot for each open communicator, and a last one that is not read, for those without a place
 *     20224    the last calls of all communicators (call-ring.ts), a ring
 *
 * All times are clockMs() of the rank.
 */

export const BOARDS = 64 / 4;
export const MAGIC = 0x6c636374; // tccl
export const LAYOUT_VERSION = 3;

export const HEADER_BYTES = 1024;
/** Words of the header. */
export const header = {
  state: 0,
  rank: 1,
  nRanks: 2,
  pid: 3,
  closedCalls: 4,
  waits: 5,
  recorded: 6,
  thread: 7,
  textLength: 14,
} as const;
/** Index of f64 in the header. */
export const headerTimes = { origin: 4, used: 5, heap: 6 } as const;
export const HEADER_TEXT = 60;

export const boardStates = { none: 0, open: 1, closed: 2 } as const;

export const SLOTS = 24;
export const SLOT_BYTES = 768;
/**
 * Words of a slot. `waited` is the number of the last call that waited, negative once it has ended; `reports`
 * has one place for each kind of wait; `serial` marks the communicator's calls in the ring.
 */
export const slot = {
  state: 0,
  begun: 1,
  waited: 2,
  rank: 3,
  nRanks: 4,
  textLength: 5,
  code: 6,
  root: 7,
  reports: 8,
  serial: 102,
} as const;
export const REPORT_WORDS = 28;
/**
 * Index of f64 in a slot: start of the wait of each report; count of the last call that waited, and its place among all of those.
 */
export const slotTimes = { since: 46, count: 49, order: 50 } as const;
export const SLOT_TEXT = 416;

export const slotStates = { free: 0, open: 1, failed: 2 } as const;

/** Kinds of waits, each with a report of its own: a rank may wait in several at a time. */
export const waitKinds = { collective: 0, message: 1, outOfBand: 2 } as const;
export type WaitKind = keyof typeof waitKinds;

/** Bytes of a board before its ring. */
export const STATE_BYTES = HEADER_BYTES + (SLOTS + 1) * SLOT_BYTES;

/** Entries of the ring; a power of two. */
export const RING_ENTRIES = 2048;
export const ENTRY_BYTES = 32;
/**
 * Words of an entry. `call` is the code of the call, or of the type and the direction of a message, with the serial of the
 * communicator above; `peer` is the root, or the other rank of a message; `number` is that of the first collective or of
 * a call over the bootstrap network, or the elements of a message or an operation of a window. A float32:
 * `duration`, milliseconds; 0 for an end without a time, negative before the end.
 */
export const entry = { call: 0, peer: 1, number: 2, duration: 3 } as const;
/**
 * Word of an entry that is no collective: number of calls of the block of entries that begins here, 0 if it began before.
 * A block repeats in turn: abc abc ab has the numbers 8 0 0.
 */
export const CALLS_OF_BLOCK = 4;
/**
 * Index of f64 in an entry: number of elements of a collective, start. If the clock was not read, a collective's start is 0,
 * and other calls lack `callBits.timed`.
 */
export const entryDoubles = { count: 2, start: 3 } as const;
/** Bits of an entry's call: messages have their type above bit 4, other calls the bits of algorithms/other-calls.ts. */
export const callBits = {
  timed: 1 << 20,
  send: 1 << 21,
  recv: 1 << 22,
  other: 1 << 23,
  notCollective: 7 << 21,
  serialShift: 24,
} as const;

export const BOARD_BYTES = STATE_BYTES + RING_ENTRIES * ENTRY_BYTES;
