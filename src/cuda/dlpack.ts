import { describeValue } from '../describe-value.js';
import { InvalidArgumentError } from '../errors.js';
import type { NumericArrayConstructor, TypedArray } from '../runtime/device/types.js';

/** A tensor of another library in the memory of a GPU: the fields of DLPack's `DLTensor`. */
export interface DlpackTensor {
  /** Address of its memory. */
  readonly data: bigint | number;
  /** Kind and number of the device, as of Python's `__dlpack_device__()`: `[2, 0]` is the first GPU of CUDA. */
  readonly device: readonly [type: number, id: number];
  /** Type of the elements; bfloat16 is `{ code: 4, bits: 16, lanes: 1 }`. */
  readonly dtype: { readonly code: number; readonly bits: number; readonly lanes: number };
  readonly shape: readonly number[];
  /** In elements; without them, rows are one after the other. */
  readonly strides?: readonly number[] | null;
  /** From `data` to the first element. */
  readonly byteOffset?: number;
}

/** `kDLCUDA`, and `kDLCUDAManaged`. */
const cudaKinds: readonly unknown[] = [2, 13];

/** Classes of arrays by `DLDataTypeCode` and bits. float16, bfloat16 and float8 are kept as their bits. */
const classes: ReadonlyMap<string, NumericArrayConstructor<TypedArray>> = new Map<string, NumericArrayConstructor<TypedArray>>([
  ['0 8', Int8Array],
  ['0 16', Int16Array],
  ['0 32', Int32Array],
  ['0 64', BigInt64Array],
  ['1 8', Uint8Array],
  ['1 16', Uint16Array],
  ['1 32', Uint32Array],
  ['1 64', BigUint64Array],
  ['2 16', Uint16Array],
  ['2 32', Float32Array],
  ['2 64', Float64Array],
  ['4 16', Uint16Array],
  // kDLBool, kDLFloat8_e4m3fn, kDLFloat8_e5m2.
  ['6 8', Uint8Array],
  ['10 8', Uint8Array],
  ['12 8', Uint8Array],
]);

/** Address, bytes and class of a tensor of GPU `ordinal`. @throws InvalidArgumentError `ARGUMENT_TYPE`, `ARGUMENT_RANGE` */
export function placeOf(
  tensor: DlpackTensor,
  ordinal: number,
): { pointer: bigint; bytes: number; type: NumericArrayConstructor<TypedArray> } {
  const wrong = (why: string, code: 'ARGUMENT_TYPE' | 'ARGUMENT_RANGE' = 'ARGUMENT_TYPE'): never => {
    throw new InvalidArgumentError(code, `fromPointer: ${why}`);
  };
  const given = tensor as Partial<DlpackTensor> | null | undefined;
  if (typeof given !== 'object' || given === null) return wrong(`pass the fields of a DLTensor, not ${describeValue(tensor)}`);
  const { data, device, dtype, shape, strides, byteOffset = 0 } = given;
  const isWhole = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
  const isAddress = typeof data === 'bigint' ? data === BigInt.asUintN(64, data) : isWhole(data);
  if (!isAddress) return wrong(`data is an address, not ${describeValue(data)}`);
  if (!Array.isArray(shape) || !shape.every(isWhole)) return wrong('shape is a list of whole numbers', 'ARGUMENT_RANGE');
  if (!isWhole(byteOffset)) return wrong(`byteOffset is a whole number, not ${describeValue(byteOffset)}`, 'ARGUMENT_RANGE');
  const [kind, id] = Array.isArray(device) ? (device as readonly unknown[]) : [];
  if (!cudaKinds.includes(kind)) return wrong(`device is [2, number] for a GPU of CUDA, not ${textOf(device)}`);
  if (id !== ordinal) return wrong(`the tensor is on GPU ${textOf(id)}, and this device is GPU ${ordinal}`);
  const type = dtype?.lanes === 1 ? classes.get(`${dtype.code} ${dtype.bits}`) : undefined;
  if (type === undefined) return wrong(`no typed array has elements of the type ${textOf(dtype)}`);
  const length = (shape as readonly number[]).reduce((product, size) => product * size, 1);
  const bytes = length * type.BYTES_PER_ELEMENT;
  if (!Number.isSafeInteger(bytes)) return wrong(`no memory has the bytes of a shape of ${textOf(shape)}`, 'ARGUMENT_RANGE');
  if (!isDense(shape as readonly number[], strides ?? undefined))
    return wrong(`the tensor has gaps (strides ${textOf(strides)}); pass a contiguous copy`, 'ARGUMENT_RANGE');
  return { pointer: BigInt(data as bigint | number) + BigInt(byteOffset), bytes, type };
}

/** True if rows follow each other without gaps, the last dimension in consecutive elements. */
function isDense(shape: readonly number[], strides: readonly number[] | undefined): boolean {
  if (strides === undefined || shape.includes(0)) return true;
  let wanted = 1;
  for (let i = shape.length - 1; i >= 0; i--) {
    const size = shape[i] ?? 1;
    if (size !== 1 && strides[i] !== wanted) return false;
    wanted *= size;
  }
  return true;
}

function textOf(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => (typeof part === 'bigint' ? `${part}n` : part));
}
