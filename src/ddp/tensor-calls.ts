import type { Communicator } from '../runtime/communicator/communicator.js';
import type { NumericArray, ReductionOperator } from '../runtime/device/types.js';
import type { TimedCallOptions } from '../runtime/algorithms/arguments.js';
import { checkComm, checkTensors } from './arguments.js';
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
  const optionsOf = (tensor: Tensor): TimedCallOptions => ({ type: tensors.typeOf(tensor) });
  return {
    async allReduce(tensor, operator = 'sum') {
      const given = read(tensor);
      const input = given instanceof Promise ? await given : given;
      const output = emptyOf(input, input.length);
      await comm.allReduce(input, output, operator, optionsOf(tensor));
      return tensors.make(output, tensor);
    },
    async allGather(tensor) {
      const given = read(tensor);
      const input = given instanceof Promise ? await given : given;
      const output = emptyOf(input, input.length * comm.nRanks);
      await comm.allGather(input, output, optionsOf(tensor));
      const [first = 1, ...others] = tensors.shapeOf(tensor);
      return tensors.make(output, tensor, [first * comm.nRanks, ...others]);
    },
    async broadcast(tensor, root = 0) {
      const given = read(tensor);
      const input = given instanceof Promise ? await given : given;
      const output = emptyOf(input, input.length);
      await comm.broadcast(input, output, root, optionsOf(tensor));
      return tensors.make(output, tensor);
    },
  };
}
