/*
 * Layout of boards: each rank's state in the segment, which other processes read while the rank waits, computes or is stopped
 * (observe/read-boards.ts). In the segment's unused beginning:
 *
 *     64       magic number, version of this layout, number of local ranks, address of the first board
 *
 * A board:
 *
 *     0        header: state, rank, number of ranks, process, number of calls of closed communicators,
 *              of calls that waited; f64 since byte 32: wall
 *              clock when the rank's clock was 0, bytes of the heap in use, bytes of the heap; then the length of a text, and
 *              the text (JSON)
 *     1024     a slot for each open communicator, and a last one that is not read, for those without a place
 *
 * A call that does not wait stores its number, and nothing else. The clock is read
 * only for waits that last. All times are clockMs() of the rank.
 */

export const BOARDS = 64 / 4;
export const MAGIC = 0x6c636374; // tccl
export const LAYOUT_VERSION = 1;

export const HEADER_BYTES = 1024;
/** Words of the header. */
export const header = { state: 0, rank: 1, nRanks: 2, pid: 3, closedCalls: 4, waits: 5, textLength: 14 } as const;
/** Index of f64 in the header. */
export const headerTimes = { origin: 4, used: 5, heap: 6 } as const;
export const HEADER_TEXT = 60;

export const boardStates = { none: 0, open: 1, closed: 2 } as const;

export const SLOTS = 24;
export const SLOT_BYTES = 768;
/**
 * Words of a slot. `waited` is the number of the last call that waited, negative once it has ended; `reports`
 * has one place for each kind of wait.
 */
export const slot = { state: 0, begun: 1, waited: 2, rank: 3, nRanks: 4, textLength: 5, code: 6, root: 7, reports: 8 } as const;
export const REPORT_WORDS = 28;
/**
 * Index of f64 in a slot: start of the wait of each report; count of the last call that waited, and its place among
 * all of those.
 */
export const slotTimes = { since: 46, count: 49, order: 50 } as const;
export const SLOT_TEXT = 416;

export const slotStates = { free: 0, open: 1, failed: 2 } as const;

/** Kinds of waits, each with a report of its own: a rank may wait in several at a time. */
export const waitKinds = { collective: 0, message: 1, outOfBand: 2 } as const;
export type WaitKind = keyof typeof waitKinds;

export const BOARD_BYTES = HEADER_BYTES + (SLOTS + 1) * SLOT_BYTES;
