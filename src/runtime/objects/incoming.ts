import { InternalError, namingCall, SystemError } from '../../errors.js';
import { decodeValue } from './encode.js';
import type { DecodedValue } from './format.js';
import { bodyAfterHead, type Head } from './head.js';

/** A value that this rank receives; its head has arrived. */
export class Incoming {
  #decoded: DecodedValue | undefined;

  /** @param rest memory for the body, unless the head has it */
  constructor(
    readonly call: string,
    readonly head: Head,
    readonly rest = bytesFor(call, bodyAfterHead(head)),
  ) {}

  /** Memory for the pieces, once the body has arrived. */
  pieces(): readonly Uint8Array[] {
    return this.head.nPieces === 0 ? [] : this.#decode().pieces;
  }

  /** The value, once everything has arrived. */
  value(): unknown {
    return this.#decode().value;
  }

  #decode(): DecodedValue {
    if (this.#decoded !== undefined) return this.#decoded;
    const decoded = decodeValue(this.call, this.head.inline ?? this.rest);
    if (decoded.pieces.length !== this.head.nPieces)
      throw new InternalError('INTERNAL', `${this.call}: the body of a value names other pieces than its head`);
    return (this.#decoded = decoded);
  }
}

/** @throws SystemError `OUT_OF_MEMORY` */
export function bytesFor(call: string, bytes: number): Uint8Array {
  try {
    return new Uint8Array(bytes);
  } catch (cause) {
    throw namingCall(new SystemError('OUT_OF_MEMORY', `${call}: there is no memory for the ${bytes} bytes that come`, { cause }));
  }
}
