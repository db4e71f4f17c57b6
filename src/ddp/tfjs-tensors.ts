import type { Device } from '../devices/device.js';
import { InvalidArgumentError } from '../errors.js';
import type { NumericArray } from '../runtime/device/types.js';
import { checkDevice, downloaded, uploaded } from './device-tensors.js';
import { checkLibrary, lengthOf, numbersOf, type Tensors } from './tensors.js';

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

/** The part of the library and its tensors that is used for tensors of a GPU. */
interface OnGpu<Tensor, Buffer> {
  getBackend(): string;
  keep(tensor: Tensor): Tensor;
  tensor(values: { readonly buffer: Buffer }, shape: readonly number[], dtype: string): Tensor;
}
interface TensorOnGpu<Tensor, Buffer> {
  data(): Promise<unknown>;
  dataToGPU(): { readonly tensorRef: Tensor; readonly buffer?: Buffer };
}

/**
 * Tensors of TensorFlow.js with numbers: float32, int32 and bool. Without `device`, a tensor of a GPU is read by `dataSync`,
 * which waits for it. With one, the backend `webgpu` has made it, and elements pass between its GPUBuffers and the memory that
 * ranks share; a tensor may be disposed of once a call has it.
 *
 * @param tf the library: `import * as tf from '@tensorflow/tfjs'`
 * @param device of the backend's GPUDevice: `await webgpu(comm, tf.backend().device)`
 * @throws InvalidArgumentError `ARGUMENT_TYPE`
 */
export function tfjsTensors<Tensor extends TfjsTensor, Buffer = unknown>(
  tf: Tfjs<Tensor>,
  device?: Device<Buffer>,
): Tensors<Tensor> {
  checkLibrary('tfjsTensors', tf, 'tensor', 'tfjsTensors(tf)');
  const makeTensor = tf.tensor.bind(tf) as unknown as (values: NumericArray, shape: readonly number[], dtype: string) => Tensor;
  const make = (array: NumericArray, like: Tensor, shape: readonly number[] = like.shape): Tensor =>
    // A tensor may keep the array that it is made from.
    makeTensor(array.slice(), shape, like.dtype);
  const onHost: Tensors<Tensor> = {
    read: (tensor) => numbersOf(tensor.dataSync(), whatOf(tensor)),
    typeOf: () => undefined,
    make,
    write: (tensor, array) => assign(tensor, () => make(array, tensor)),
    shapeOf: ({ shape }) => shape,
  };
  if (device === undefined) return onHost;
  checkDevice('tfjsTensors', device, 'tfjsTensors(tf, gpu)');
  return onGpu(tf as unknown as OnGpu<Tensor, Buffer>, device, onHost);
}

/** Classes of the elements that tensors of these types have in GPUBuffers; those of bool are 4 bytes long there. */
const classes: Readonly<Partial<Record<string, typeof Float32Array | typeof Int32Array>>> = {
  float32: Float32Array,
  int32: Int32Array,
};

function onGpu<Tensor extends TfjsTensor, Buffer>(
  tf: OnGpu<Tensor, Buffer>,
  device: Device<Buffer>,
  onHost: Tensors<Tensor>,
): Tensors<Tensor> {
  if (tf.getBackend() !== 'webgpu') {
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      `tfjsTensors: the backend is ${tf.getBackend()}, which has no GPUBuffers; await tf.setBackend('webgpu') first`,
    );
  }
  /** A copy on the device, since the tensor may be disposed of soon; none of values that are on the host still. */
  const copyOf = (tensor: Tensor): ReturnType<TensorOnGpu<Tensor, Buffer>['dataToGPU']> | undefined => {
    try {
      return (tensor as unknown as TensorOnGpu<Tensor, Buffer>).dataToGPU();
    } catch {
      return undefined;
    }
  };
  const make = async (array: NumericArray, like: Tensor, shape: readonly number[] = like.shape): Promise<Tensor> => {
    const type = classes[like.dtype];
    if (type === undefined || array.length === 0) return onHost.make(array, like, shape);
    const values = await uploaded(device, array, type);
    try {
      return tf.tensor({ buffer: values.buffer }, shape, like.dtype);
    } finally {
      values.free();
    }
  };
  return {
    ...onHost,
    async read(tensor, into) {
      const type = classes[tensor.dtype];
      const copy = type === undefined ? undefined : copyOf(tensor);
      if (type === undefined || copy?.buffer === undefined)
        return numbersOf(await (tensor as unknown as TensorOnGpu<Tensor, Buffer>).data(), whatOf(tensor));
      // A tensor of tf.tidy otherwise.
      tf.keep(copy.tensorRef);
      try {
        return await downloaded(device, copy.buffer, type, lengthOf(tensor.shape), into);
      } finally {
        copy.tensorRef.dispose();
      }
    },
    make,
    write: (tensor, array) => assign(tensor, () => make(array, tensor)),
  };
}

/** Gives a variable the value that `make` makes. */
function assign<Tensor extends TfjsTensor>(variable: Tensor, make: () => Tensor | Promise<Tensor>): void | Promise<void> {
  const set = (variable as { assign?: (value: Tensor) => void }).assign?.bind(variable);
  if (set === undefined)
    throw new InvalidArgumentError('ARGUMENT_TYPE', 'dataParallel: a tensor of TensorFlow.js cannot change; pass a tf.variable');
  const end = (value: Tensor): void => {
    set(value);
    value.dispose();
  };
  const made = make();
  if (made instanceof Promise) return made.then(end);
  end(made);
  return undefined;
}

const whatOf = ({ dtype }: TfjsTensor): string => `tfjsTensors: a tensor of dtype ${dtype}`;

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
