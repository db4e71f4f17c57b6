/*
 * Frames on a data connection after the handshake, each with a header of 8 bytes. Numbers are little-endian, as in
 * WebAssembly memory.
 *
 *     kind u8, credits u24   value u32
 *     DATA       length     then so many bytes: a message; `credits` counts       sender to receiver
 *                           released slots, where messages go both ways
 *     CREDIT     slots      number of slots that were released                    receiver to sender
 *     GOODBYE    0          nothing follows; the connection ends in order         both
 *     ABORT      length     then so many bytes: why this side gave up             both
 *     WAITS      length     then so many bytes (int32 each): this side has        both
 *                           waited for long, and what it knows of the cause
 */
export const FRAME_HEADER_BYTES = 8;
export const KIND_MASK = 0xff;
export const CREDITS_SHIFT = 8;

/** Longest report of a wait. */
export const REPORT_BYTES = 256;

export const frameKinds = { data: 1, credit: 2, goodbye: 3, abort: 4, waits: 5 } as const;

export function frame(kind: number, value: number, payload: Uint8Array = new Uint8Array()): Buffer {
  const bytes = Buffer.alloc(FRAME_HEADER_BYTES + payload.length);
  bytes.writeUInt32LE(kind, 0);
  bytes.writeUInt32LE(value, 4);
  bytes.set(payload, FRAME_HEADER_BYTES);
  return bytes;
}
