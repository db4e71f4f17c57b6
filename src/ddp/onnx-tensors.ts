import type { Device } from '../devices/device.js';
import { InvalidArgumentError } from '../errors.js';
import type { NumericArray, NumericArrayConstructor } from '../runtime/device/types.js';
import { checkDevice, downloaded, overwrite, uploaded } from './device-tensors.js';
import { checkLibrary, copy, lengthOf, numbersOf, type Tensors } from './tensors.js';

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

/** The part of the library and its tensors that is used for tensors of a GPU. */
interface OnGpu<Tensor, Buffer> {
  readonly Tensor: {
    fromGpuBuffer(
      buffer: Buffer,
      options: {
        readonly dataType: string;
        readonly dims: readonly number[];
        /** For the library's getData(). */
        readonly download: () => Promise<NumericArray>;
        readonly dispose: () => void;
      },
    ): Tensor;
  };
}
interface TensorOnGpu<Buffer> {
  readonly location: string;
  readonly gpuBuffer: Buffer;
}

/**
 * Tensors of ONNX Runtime, of all types of numbers but int4. Without `device`, they are in this process's memory. With one,
 * those of location `gpu-buffer` pass between their GPUBuffers and the memory that ranks share, and must stay until the call, or
 * finish() after ready(), has ended; new tensors are where the given ones are.
 *
 * @param ort the library: `import * as ort from 'onnxruntime-node'`
 * @param device of the session's GPUDevice: `await webgpu(comm, await ort.env.webgpu.device)`
 * @throws InvalidArgumentError `ARGUMENT_TYPE`
 */
export function onnxTensors<Tensor extends OnnxTensor, Buffer = unknown>(
  ort: Onnx<Tensor>,
  device?: Device<Buffer>,
): Tensors<Tensor> {
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
  const onHost: Tensors<Tensor> = {
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
  if (device === undefined) return onHost;
  checkDevice('onnxTensors', device, 'onnxTensors(ort, gpu)');
  return onGpu(ort as unknown as OnGpu<Tensor, Buffer>, device, onHost);
}

/** Classes of the elements in GPUBuffers. */
const classes: Readonly<Partial<Record<string, NumericArrayConstructor>>> = {
  float32: Float32Array,
  float16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  int8: Int8Array,
  uint8: Uint8Array,
  bool: Uint8Array,
};

/** Kernels of the library bind buffers of vectors, of so many bytes each. */
const BINDING_BYTES = 16;

function onGpu<Tensor extends OnnxTensor, Buffer>(
  ort: OnGpu<Tensor, Buffer>,
  device: Device<Buffer>,
  onHost: Tensors<Tensor>,
): Tensors<Tensor> {
  /** The buffer and the class of a tensor's elements; undefined if they are on the host. */
  const placeOf = (tensor: Tensor): { readonly buffer: Buffer; readonly type: NumericArrayConstructor } | undefined => {
    const given = tensor as unknown as TensorOnGpu<Buffer>;
    if (given.location !== 'gpu-buffer') return undefined;
    const type = classes[tensor.type];
    if (type !== undefined) return { buffer: given.gpuBuffer, type };
    throw new InvalidArgumentError('ARGUMENT_TYPE', `onnxTensors: a tensor of type ${tensor.type} has no elements to exchange`);
  };
  return {
    ...onHost,
    read(tensor, into) {
      const place = placeOf(tensor);
      if (place === undefined) return onHost.read(tensor);
      return downloaded(device, place.buffer, place.type, lengthOf(tensor.dims), into);
    },
    make(array, like, shape = like.dims) {
      const place = placeOf(like);
      if (place === undefined) return onHost.make(array, like, shape);
      return uploaded(device, array, place.type, BINDING_BYTES).then((values) =>
        ort.Tensor.fromGpuBuffer(values.buffer, {
          dataType: like.type,
          dims: shape,
          download: async () => (await values.download()).subarray(0, lengthOf(shape)),
          dispose: () => values.free(),
        }),
      );
    },
    write(tensor, array) {
      const place = placeOf(tensor);
      if (place === undefined) return onHost.write(tensor, array);
      return overwrite(device, place.buffer, array, place.type);
    },
  };
}
