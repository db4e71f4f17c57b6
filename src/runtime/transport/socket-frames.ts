/*
 * What goes over a data connection once both sides have proved themselves: frames, each behind 8 bytes that say what
 * follows. Numbers are little-endian, as everywhere in a WebAssembly memory.
 *
 *     kind u32   value u32
 *     DATA       length     and so many bytes: a message                          sender to receiver
 *     CREDIT     slots      that were released                                    receiver to sender
 *     GOODBYE    0          nothing follows; the connection ends as it should     both
 *     ABORT      length     and so many bytes: why this side gave up              both
 *     WAITS      length     and so many bytes, int32 each: this side waits for    both
 *                           long, and what it knows of why
 */
export const FRAME_HEADER_BYTES = 8;

/** Longest report. */
export const REPORT_BYTES = 256;

export const frameKinds = { data: 1, credit: 2, goodbye: 3, abort: 4, waits: 5 } as const;

export function frame(kind: number, value: number, payload: Uint8Array = new Uint8Array()): Buffer {
  const bytes = Buffer.alloc(FRAME_HEADER_BYTES + payload.length);
  bytes.writeUInt32LE(kind, 0);
  bytes.writeUInt32LE(value, 4);
  bytes.set(payload, FRAME_HEADER_BYTES);
  return bytes;
}
