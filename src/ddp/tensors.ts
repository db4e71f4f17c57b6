import { describeValue } from '../describe-value.js';
import { InvalidArgumentError } from '../errors.js';
import type { DataTypeName, NumericArray } from '../runtime/device/types.js';

/** Access to the tensors of a library, for calls that exchange arrays. */
export interface Tensors<Tensor> {
  /** A tensor's elements; changing them may change the tensor. */
  read(tensor: Tensor): NumericArray;
  /** The type of its elements, where their array's class does not tell. */
  typeOf(tensor: Tensor): DataTypeName | undefined;
  /** Makes a tensor of the element type of `like`, and of its shape unless `shape` is given. Copies `array`. */
  make(array: NumericArray, like: Tensor, shape?: readonly number[]): Tensor;
  /** Copies `array` into a tensor that can change: a variable. */
  write(tensor: Tensor, array: NumericArray): void;
  shapeOf(tensor: Tensor): readonly number[];
}

/** Typed arrays as tensors of one dimension. */
export const plainArrays: Tensors<NumericArray> = {
  read: (array) => array,
  typeOf: () => undefined,
  make: (array) => array.slice(),
  write: (array, from) => copy(from, array),
  shapeOf: ({ length }) => [length],
};

/** The part of a tensor of TensorFlow.js that tfjsTensors() uses. */
export interface TfjsTensor {
  readonly shape: number[];
  readonly dtype: string;
  dataSync(): unknown;
  dispose(): void;
}

/** The part of `@tensorflow/tfjs` or `@tensorflow/tfjs-core` that tfjsTensors() uses. */
export interface Tfjs<Tensor> {
  tensor(values: never, shape?: never, dtype?: never): Tensor;
  customGrad(f: never): (...tensors: never[]) => Tensor;
}

/**
 * Tensors of TensorFlow.js with numbers: float32, int32 and bool. A tensor of a GPU is read by `dataSync`, which waits for it.
 *
 * @param tf the library: `import * as tf from '@tensorflow/tfjs'`
 * @throws InvalidArgumentError `ARGUMENT_TYPE`
 */
export function tfjsTensors<Tensor extends TfjsTensor>(tf: Tfjs<Tensor>): Tensors<Tensor> {
  checkLibrary('tfjsTensors', tf, 'tensor', 'tfjsTensors(tf)');
  const makeTensor = tf.tensor.bind(tf) as unknown as (values: NumericArray, shape: readonly number[], dtype: string) => Tensor;
  const make = (array: NumericArray, like: Tensor, shape: readonly number[] = like.shape): Tensor =>
    // A tensor may keep the array that it is made from.
    makeTensor(array.slice(), shape, like.dtype);
  return {
    read: (tensor) => numbersOf(tensor.dataSync(), `tfjsTensors: a tensor of dtype ${tensor.dtype}`),
    typeOf: () => undefined,
    make,
    write: (tensor, array) => {
      const assign = (tensor as { assign?: (value: Tensor) => void }).assign?.bind(tensor);
      if (assign === undefined) {
        throw new InvalidArgumentError(
          'ARGUMENT_TYPE',
          'dataParallel: a tensor of TensorFlow.js cannot change; pass a tf.variable',
        );
      }
      const value = make(array, tensor);
      assign(value);
      value.dispose();
    },
    shapeOf: ({ shape }) => shape,
  };
}

/**
 * Passes `tensor` through, and calls `ready` with its gradient as soon as the backward pass has it. Call it once for each
 * variable and forward pass, inside the function that is differentiated.
 *
 * @param tf the library: `import * as tf from '@tensorflow/tfjs'`
 * @throws InvalidArgumentError `ARGUMENT_TYPE`
 */
export function whenGradient<Tensor extends TfjsTensor>(
  tf: Tfjs<Tensor>,
  tensor: Tensor,
  ready: (gradient: Tensor) => void,
): Tensor {
  checkLibrary('whenGradient', tf, 'customGrad', 'whenGradient(tf, tensor, ready)');
  type Identity = (input: Tensor & { clone(): Tensor }) => { value: Tensor; gradFunc: (gradient: Tensor) => Tensor };
  const identity: Identity = (input) => ({
    value: input.clone(),
    gradFunc: (gradient) => {
      ready(gradient);
      return gradient;
    },
  });
  return (tf.customGrad.bind(tf) as unknown as (f: Identity) => (input: Tensor) => Tensor)(identity)(tensor);
}

/** The part of a tensor of ONNX Runtime that onnxTensors() uses. */
export interface OnnxTensor {
  readonly type: string;
  readonly dims: readonly number[];
  readonly data: unknown;
}

/** The part of `onnxruntime-node`, `onnxruntime-web` or `onnxruntime-common` that onnxTensors() uses. */
export interface Onnx<Tensor> {
  readonly Tensor: new (type: never, data: never, dims: never) => Tensor;
}

/**
 * Tensors of ONNX Runtime in this process's memory, of all types of numbers but int4.
 *
 * @param ort the library: `import * as ort from 'onnxruntime-node'`
 * @throws InvalidArgumentError `ARGUMENT_TYPE`
 */
export function onnxTensors<Tensor extends OnnxTensor>(ort: Onnx<Tensor>): Tensors<Tensor> {
  checkLibrary('onnxTensors', ort, 'Tensor', 'onnxTensors(ort)');
  const Make = ort.Tensor as unknown as new (type: string, data: unknown, dims: readonly number[]) => Tensor;
  /** The elements of a float16 tensor are bits, or numbers where the runtime has Float16Array. */
  const elements = ({ data, type }: Tensor): NumericArray => {
    const isFloat16Array = (data as object | null)?.constructor.name === 'Float16Array';
    const { buffer, byteOffset, length } = data as Uint16Array;
    return isFloat16Array
      ? new Uint16Array(buffer, byteOffset, length)
      : numbersOf(data, `onnxTensors: a tensor of type ${type}`);
  };
  return {
    read: elements,
    typeOf: ({ type }) => (type === 'float16' ? 'float16' : undefined),
    make: (array, like, shape = like.dims) => {
      const { buffer } = array.slice();
      const Kind = (like.data as { constructor: new (buffer: unknown) => unknown }).constructor;
      return new Make(like.type, new Kind(buffer), shape);
    },
    write: (tensor, array) => copy(array, elements(tensor)),
    shapeOf: ({ dims }) => dims,
  };
}

function numbersOf(data: unknown, what: string): NumericArray {
  if (ArrayBuffer.isView(data) && !(data instanceof DataView)) return data as NumericArray;
  throw new InvalidArgumentError('ARGUMENT_TYPE', `${what} has ${describeValue(data)} as its elements, not numbers`);
}

/** A new array of the class of `array`. */
export function emptyOf(array: NumericArray, length: number): NumericArray {
  return new (array.constructor as new (length: number) => NumericArray)(length);
}

/** Copies elements between arrays of one class. */
export function copy(from: NumericArray, to: NumericArray): void {
  (to as Float32Array).set(from as Float32Array);
}

/** Checks that `library`, which the caller imported, has a member; `example` is how to pass it. */
function checkLibrary(call: string, library: object, member: string, example: string): void {
  if (typeof (library as Readonly<Record<string, unknown>> | undefined | null)?.[member] === 'function') return;
  throw new InvalidArgumentError(
    'ARGUMENT_TYPE',
    `${call}: pass the library, as in ${example}, not ${describeValue(library)}, which has no ${member}`,
  );
}
