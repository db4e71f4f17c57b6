import { dataTypeOf, type DataType, type NumericArray } from '../device/types.js';
import { InvalidArgumentError, InvalidUsageError } from '../errors.js';

/**
 * Checks the two arrays of a collective and returns the type of their elements. `wanted` is how many elements the
 * output needs. Throws ARGUMENT_TYPE, BUFFER_SIZE, BUFFER_OVERLAP or BUFFER_DETACHED, all of which leave the
 * communicator as it was.
 */
export function checkArrays(call: string, send: NumericArray, recv: NumericArray, wanted: number): DataType {
  const type = dataTypeOf(send);
  if (recv === send) {
    if (wanted === 0) checkAlive(call, send);
    return type;
  }
  if (dataTypeOf(recv) !== type) {
    throw new InvalidArgumentError('ARGUMENT_TYPE', `${call}: input is a ${type.array.name}, output a ${dataTypeOf(recv).array.name}; both must have one type`);
  }
  if (wanted === 0 || recv.length === 0) {
    checkAlive(call, send);
    checkAlive(call, recv);
  }
  if (recv.length < wanted) {
    throw new InvalidArgumentError(
      'BUFFER_SIZE',
      `${call}: the output has ${String(recv.length)} elements, but the input has ${String(wanted)}; make it as long`,
    );
  }
  return type;
}

/**
 * Refuses input and output that share some but not all of their elements. Costs a look at both buffers, so it is for
 * calls that are not in the fast path of arrays known to lie in the segment.
 */
export function checkOverlap(call: string, sendFrom: number, recvFrom: number, bytes: number): void {
  if (sendFrom !== recvFrom && sendFrom < recvFrom + bytes && recvFrom < sendFrom + bytes) {
    throw new InvalidUsageError(
      'BUFFER_OVERLAP',
      `${call}: input and output overlap by ${String(bytes - Math.abs(sendFrom - recvFrom))} bytes; pass the same array twice to work in place, or arrays apart`,
    );
  }
}

/** An array without elements is either empty or has lost its memory: only the second refuses to be filled. */
function checkAlive(call: string, array: NumericArray): void {
  try {
    array.fill(0, 0, 0);
  } catch (error) {
    throw new InvalidArgumentError(
      'BUFFER_DETACHED',
      `${call}: an array's memory was transferred to another thread or resized away; pass an array that is still here`,
      { cause: error },
    );
  }
}

export function checkRoot(call: string, root: number, nRanks: number): void {
  if (!Number.isInteger(root) || root < 0 || root >= nRanks) {
    throw new InvalidArgumentError('ROOT_RANGE', `${call}: root is ${String(root)}, but ranks go from 0 to ${String(nRanks - 1)}`);
  }
}
