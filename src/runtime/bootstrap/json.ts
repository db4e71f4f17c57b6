import { SystemError } from '../../errors.js';

/** Encodes a value as JSON for other ranks. */
export function encodeJson(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

/**
 * Decodes a value that another rank encoded, without checks of its content.
 * @throws SystemError `NETWORK` if the bytes are not JSON
 */
export function decodeJson(data: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(data));
  } catch (cause) {
    throw new SystemError('NETWORK', 'a message that should be JSON is not: do all ranks run the same version of tccl?', {
      cause,
    });
  }
}
