import { Serializer } from '#platform/engine';
import { InvalidArgumentError, namingCall, SystemError } from '../../errors.js';
import { cloneFormat } from './clone-format.js';
import type { DecodedValue, EncodedValue, ObjectFormat } from './format.js';
import { BODY_LIMIT, bytesText } from './limits.js';
import { v8Format } from './v8-format.js';
import { PIECE_BYTES } from './views.js';

/*
 * A value as bytes, by the runtime's structured clone. Typed arrays are written by their class and length. A short one follows in
 * place; a long one is a *piece*, which travels from and into the arrays themselves:
 *
 *     { lr: 0.1, weights: Float32Array(1e6) }
 *     ──► body    { lr: 0.1, weights: «Float32Array, 4,000,000 bytes, piece» }
 *         pieces  [the array's own bytes]
 */
const ownFormat: ObjectFormat = hasSerializer() ? v8Format : cloneFormat;

/** False in Bun, whose `node:v8` has the functions alone. */
function hasSerializer(): boolean {
  try {
    return new Serializer() instanceof Serializer;
  } catch {
    return false;
  }
}

/**
 * Encodes a value; its long typed arrays are not copied, so they must stay as they are until they have been sent.
 *
 * @param limit most bytes of the body
 * @throws InvalidArgumentError `ARGUMENT_TYPE` for values that structured clone does not take, `BUFFER_SIZE` above the
 *   limit
 */
export function encodeValue(
  call: string,
  value: unknown,
  { limit = BODY_LIMIT, format = ownFormat }: { readonly limit?: number; readonly format?: ObjectFormat } = {},
): EncodedValue {
  let encoded: EncodedValue;
  try {
    encoded = format.write(value);
  } catch (error) {
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      `${call}: the value cannot be sent: ${(error as Error).message.replace(/\.?$/, '.')} Pass what structuredClone takes: data without functions, symbols or handles`,
      { cause: error },
    );
  }
  const { body } = encoded;
  if (body.length > limit) {
    throw new InvalidArgumentError(
      'BUFFER_SIZE',
      `${call}: the value takes ${bytesText(body.length)}, and ${bytesText(limit)} are the most; put large data into typed arrays, which do not count from ${bytesText(PIECE_BYTES)} on`,
    );
  }
  return encoded;
}

/**
 * Reads a body.
 *
 * @throws SystemError `OUT_OF_MEMORY`
 * @throws InvalidArgumentError `ARGUMENT_TYPE` for values that only the sender's runtime knows
 */
export function decodeValue(call: string, body: Uint8Array, format = ownFormat): DecodedValue {
  try {
    return format.read(body);
  } catch (error) {
    if (error instanceof RangeError) {
      throw namingCall(
        new SystemError('OUT_OF_MEMORY', `${call}: there is no memory for the value that came: ${error.message}`, {
          cause: error,
        }),
      );
    }
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      `${call}: the value that came cannot be read here: ${(error as Error).message}; run all ranks under the same runtime in the same version`,
      { cause: error },
    );
  }
}
