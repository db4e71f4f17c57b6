import { createHmac, timingSafeEqual } from '#platform/crypto';
import { SystemError } from '../../errors.js';

/*
 * Records on a connection after its handshake, each with a proof of the key.
 *
 *     0            4      5
 *     length u32   kind   payload, `length` bytes   proof, 32 bytes
 *
 * The proof is HMAC-SHA256 over the record's number on this connection and in this direction, its header and its
 * payload. So no record can be forged, changed, repeated, dropped or moved to another connection or direction.
 * A record has at most 256 KiB, which also bounds the memory for a forged length.
 */

export const MAXIMUM_PAYLOAD_BYTES = 256 * 1024;
export const PROOF_BYTES = 32;
export const HEADER_BYTES = 5;

export const recordKinds = {
  /** The acceptor's proof that it knows the secret and has taken the connection. */
  welcome: 0,
  /** A message's header and its first bytes. */
  message: 1,
  /** More bytes of the message begun last. */
  continuation: 2,
  /** Notice about a rank, in JSON. */
  notice: 3,
  /** The sender closes the connection on purpose. */
  goodbye: 4,
} as const;
export type RecordKind = (typeof recordKinds)[keyof typeof recordKinds];

export interface OpenedRecord {
  readonly kind: RecordKind;
  /** May be a view of the bytes given to the reader. */
  readonly payload: Buffer;
}

/** Signs the records of one direction of a connection. */
export class RecordWriter {
  readonly #key: Uint8Array;
  #number = 0;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  /** Returns the pieces to write, in order. `parts` are not copied. */
  seal(kind: RecordKind, ...parts: readonly Uint8Array[]): Uint8Array[] {
    const header = Buffer.allocUnsafe(HEADER_BYTES);
    header.writeUInt32LE(
      parts.reduce((sum, part) => sum + part.length, 0),
      0,
    );
    header[4] = kind;
    return [header, ...parts, proofOf(this.#key, this.#number++, header, parts)];
  }
}

/** Verifies the records of one direction of a connection, however the network splits them. */
export class RecordReader {
  readonly #key: Uint8Array;
  #number = 0;
  /**
   * A record of which only the first `#have` bytes have arrived; its buffer has a header's length until the header is complete.
   */
  #partial: Buffer | undefined;
  #have = 0;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  /**
   * The records that `chunk` completes.
   * @throws SystemError `NETWORK` at the first record that is not authentic; the connection is useless afterwards
   */
  *push(chunk: Buffer): Generator<OpenedRecord> {
    let offset = 0;
    while (offset < chunk.length) {
      if (this.#partial === undefined && chunk.length - offset >= HEADER_BYTES) {
        const end = offset + recordBytes(chunk, offset);
        if (end <= chunk.length) {
          yield this.#open(chunk.subarray(offset, end));
          offset = end;
          continue;
        }
      }
      const partial = (this.#partial ??= Buffer.allocUnsafe(HEADER_BYTES));
      const copied = chunk.copy(partial, this.#have, offset);
      this.#have += copied;
      offset += copied;
      if (this.#have < partial.length) continue;
      const length = recordBytes(partial, 0);
      if (length > partial.length) {
        this.#partial = Buffer.allocUnsafe(length);
        partial.copy(this.#partial);
      } else {
        this.#partial = undefined;
        this.#have = 0;
        yield this.#open(partial);
      }
    }
  }

  #open(record: Buffer): OpenedRecord {
    const header = record.subarray(0, HEADER_BYTES);
    const payload = record.subarray(HEADER_BYTES, record.length - PROOF_BYTES);
    const proof = proofOf(this.#key, this.#number++, header, [payload]);
    if (!timingSafeEqual(proof, record.subarray(record.length - PROOF_BYTES))) {
      throw new SystemError(
        'NETWORK',
        'a record on an authenticated connection is not authentic: something on the way changed it',
      );
    }
    return { kind: header[4] as RecordKind, payload };
  }
}

/** Length of the whole record whose header is at `offset`. Throws for an invalid header before any memory is allocated. */
function recordBytes(bytes: Buffer, offset: number): number {
  const length = bytes.readUInt32LE(offset);
  const kind = bytes[offset + 4] ?? 255;
  if (length > MAXIMUM_PAYLOAD_BYTES || kind > recordKinds.goodbye) {
    throw new SystemError(
      'NETWORK',
      `a record claims kind ${kind} and ${length} bytes: the other side does not speak tccl's protocol, or something on the way changed the data`,
    );
  }
  return HEADER_BYTES + length + PROOF_BYTES;
}

function proofOf(key: Uint8Array, number: number, header: Uint8Array, parts: readonly Uint8Array[]): Buffer {
  const position = Buffer.allocUnsafe(8);
  position.writeBigUInt64LE(BigInt(number));
  const hmac = createHmac('sha256', key).update(position).update(header);
  for (const part of parts) hmac.update(part);
  return hmac.digest();
}
