import { SystemError } from '../../errors.js';

/** A value as bytes that ranks send each other: what JSON can say of it. */
export function encodeJson(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}

/**
 * The value that another rank encoded; nothing about it is checked.
 * @throws SystemError `NETWORK` where the bytes are not JSON
 */
export function decodeJson(data: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString());
  } catch (cause) {
    throw new SystemError('NETWORK', 'a message that should be JSON is not: do all ranks run the same version of tccl?', {
      cause,
    });
  }
}
