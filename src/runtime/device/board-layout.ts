/*
 * Layout of boards: each rank's state in the segment, which other processes read while the rank waits, computes or is stopped
 * (observe/read-boards.ts). In the segment's unused beginning:
 *
 *     64       magic number, version of this layout, number of local ranks, address of the first board
 *
 * A board:
 *
 *     0        header: state, rank, number of ranks, process, number of recorded runs, of communicators shown, of calls of
 *              closed ones; f64 since byte 32: performance.timeOrigin, bytes of the heap in use, bytes of the heap; then the
 *              length of a text, and the text (JSON)
 *     1024     a slot for each open communicator, and one for all others, which nobody reads
 *     …        a ring of runs, which are equal calls in a row: code and slot, root, count (f64), number of calls with the
 *              first one, which communicator this is of those shown
 *     …        a ring of times: which communicator, number of calls with this one, start (f64 ms), duration (f32 ms, negative
 *              while it lasts)
 *
 * Runs and times keep the path of a small call short: one store and some comparisons. The clock, whose reading takes half as long
 * as such a call, is read for calls that wait, at the start of a run, and now and then. All times are performance.now() of the
 * rank.
 */

export const BOARDS = 64 / 4;
export const MAGIC = 0x6c636374; // tccl
export const LAYOUT_VERSION = 1;

export const HEADER_BYTES = 1024;
/** Words of the header. */
export const header = {
  state: 0,
  rank: 1,
  nRanks: 2,
  pid: 3,
  runs: 4,
  shown: 5,
  closedCalls: 6,
  times: 7,
  textLength: 14,
} as const;
/** Index of f64 in the header. */
export const headerTimes = { origin: 4, used: 5, heap: 6 } as const;
export const HEADER_TEXT = 60;

export const boardStates = { none: 0, open: 1, closed: 2 } as const;

export const SLOTS = 24;
export const SLOT_BYTES = 512;
/** Words of a slot. `waiting` is the number of the call that waits, or 0; `reports` has one place for each kind of wait. */
export const slot = { state: 0, begun: 1, waiting: 2, rank: 3, nRanks: 4, textLength: 5, number: 6, reports: 8 } as const;
export const REPORT_WORDS = 28;
/** Index of f64 in a slot: start of the wait of each report. */
export const SINCE = 46;
export const SLOT_TEXT = 392;

export const slotStates = { free: 0, open: 1, failed: 2 } as const;

/** Kinds of waits, each with a report of its own: a rank may wait in several at a time. */
export const waitKinds = { collective: 0, message: 1, outOfBand: 2 } as const;
export type WaitKind = keyof typeof waitKinds;

/** Number of runs and of times that a board keeps. */
export const KEPT = 2048;
export const RECORD_BYTES = 24;
export const RUNS = HEADER_BYTES + (SLOTS + 1) * SLOT_BYTES;
export const TIMES = RUNS + KEPT * RECORD_BYTES;
export const BOARD_BYTES = TIMES + KEPT * RECORD_BYTES;
/** Position of the slot's number in the word with a call's code. */
export const SLOT_SHIFT = 24;
