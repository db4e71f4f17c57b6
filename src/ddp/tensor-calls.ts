import { checkComm } from '../check-comm.js';
import type { Communicator } from '../runtime/communicator/communicator.js';
import type { NumericArray, ReductionOperator } from '../runtime/device/types.js';
import type { TimedCallOptions } from '../runtime/algorithms/arguments.js';
import { checkTensors } from './arguments.js';
import { emptyOf, type Tensors } from './tensors.js';

/** Collectives on tensors; every rank passes one of the same type and number of elements. */
export interface TensorCalls<Tensor> {
  /** A new tensor with the elements of all ranks' tensors combined. */
  allReduce(tensor: Tensor, operator?: ReductionOperator): Promise<Tensor>;
  /** A new tensor with all ranks' tensors concatenated along the first dimension. */
  allGather(tensor: Tensor): Promise<Tensor>;
  /** A new tensor with the elements of rank `root`'s tensor; other ranks pass one of the same type and shape. */
  broadcast(tensor: Tensor, root?: number): Promise<Tensor>;
}

/**
 * Collectives of `comm` on the tensors of a library or a device. Elements are copied into memory that ranks share, and out of
 * it. Await calls on tensors of a device before other calls of `comm`, which are carried out in between otherwise.
 *
 * @throws InvalidArgumentError `ARGUMENT_TYPE`
 *
 * @example
 * const calls = tensorCalls(comm, tfjsTensors(tf));
 * const mean = await calls.allReduce(tf.tensor([1, 2]), 'avg');
 */
export function tensorCalls<Tensor>(comm: Communicator, tensors: Tensors<Tensor>): TensorCalls<Tensor> {
  checkComm('tensorCalls', comm, 'tensorCalls(comm, tfjsTensors(tf))');
  checkTensors('tensorCalls', tensors);
  let last: Promise<unknown> = Promise.resolve();
  /** Elements, after those of the calls before: copies from a device may end in another order on each rank. */
  const read = (tensor: Tensor): NumericArray | Promise<NumericArray> => {
    const array = tensors.read(tensor);
    if (!(array instanceof Promise)) return array;
    const inTurn = last.then(() => array);
    last = inTurn.catch(() => undefined);
    return inTurn;
  };
  /** The tensor that a call makes of another one: of the same shape, or with `nParts` of it along the first dimension. */
  const made = async (
    tensor: Tensor,
    nParts: number | undefined,
    call: (input: NumericArray, output: NumericArray, options: TimedCallOptions) => Promise<void>,
  ): Promise<Tensor> => {
    const given = read(tensor);
    // Without a turn of the event loop, calls keep their order among others of `comm`.
    const input = given instanceof Promise ? await given : given;
    const output = emptyOf(input, input.length * (nParts ?? 1));
    await call(input, output, { type: tensors.typeOf(tensor) });
    if (nParts === undefined) return tensors.make(output, tensor);
    const [first = 1, ...others] = tensors.shapeOf(tensor);
    return tensors.make(output, tensor, [first * nParts, ...others]);
  };
  return {
    allReduce: (tensor, operator = 'sum') =>
      made(tensor, undefined, (input, output, options) => comm.allReduce(input, output, operator, options)),
    allGather: (tensor) => made(tensor, comm.nRanks, (input, output, options) => comm.allGather(input, output, options)),
    broadcast: (tensor, root = 0) =>
      made(tensor, undefined, (input, output, options) => comm.broadcast(input, output, root, options)),
  };
}
