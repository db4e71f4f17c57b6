/*
 * Notes: messages of a connection beside its data, under a tag of their own. A header of 16 bytes, then a payload. Numbers
 * are little-endian, as in WebAssembly memory.
 *
 *     kind u32   value u32   posted u32   0
 *     CREDIT     slots       number of slots that were released                    receiver to sender
 *     GOODBYE    length      then so many bytes, a last report (int32 each):       both
 *                            nothing follows; the connection ends in order
 *     ABORT      length      then so many bytes: why this side gave up             both
 *     WAITS      length      then so many bytes (int32 each): this side has        both
 *                            waited for long, and what it knows of the cause
 *
 * `posted` counts the messages that the sender has sent, because data and notes may arrive in any order.
 */
export const NOTE_HEADER_BYTES = 16;

/** Longest report of a wait. */
export const REPORT_BYTES = 256;

export const noteKinds = { credit: 1, goodbye: 2, abort: 3, waits: 4 } as const;

/** Places in a note's header, in words. */
export const noteWords = { kind: 0, value: 1, posted: 2 } as const;
