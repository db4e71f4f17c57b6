import { InputError } from '../errors.js';
import { describeValue } from '../describe-value.js';
import type { DataTypeName } from '../runtime/device/types.js';

/**
 * The file format safetensors (https://github.com/huggingface/safetensors): 8 bytes with the length of a header, the header in
 * JSON, and the elements of all tensors one after the other, all little-endian.
 */

/** A tensor of a file. */
export interface StoredTensor {
  /** Its type, or the file's name for one that no array holds. */
  readonly type: string;
  readonly shape: readonly number[];
  /** Place of its elements after the header, in bytes. */
  readonly begin: number;
  readonly end: number;
}

/** Texts of the program's own by name. */
export type Metadata = Readonly<Partial<Record<string, string>>>;

/** The length before the header. */
export const LENGTH_BYTES = 8;

/** Largest header of the format. */
const MAX_HEADER_BYTES = 100_000_000;

const METADATA = '__metadata__';

const namesInFiles: Readonly<Partial<Record<DataTypeName, string>>> = {
  int8: 'I8',
  uint8: 'U8',
  int16: 'I16',
  uint16: 'U16',
  int32: 'I32',
  uint32: 'U32',
  int64: 'I64',
  uint64: 'U64',
  float16: 'F16',
  bfloat16: 'BF16',
  float32: 'F32',
  float64: 'F64',
  float8e4m3: 'F8_E4M3',
  float8e5m2: 'F8_E5M2',
};

const typesOfFiles = new Map<string, string>([
  ...Object.entries(namesInFiles).map(([type, name]): [string, string] => [name, type]),
  ['BOOL', 'uint8'],
]);

/** The beginning of a file: the header and its length, with spaces so that the elements begin at a multiple of 8. */
export function headerOf(
  tensors: readonly {
    readonly name: string;
    readonly type: DataTypeName;
    readonly shape: readonly number[];
    readonly bytes: number;
  }[],
  metadata: Metadata,
): Uint8Array {
  let end = 0;
  const entries = tensors.map(({ name, type, shape, bytes }) => {
    const begin = end;
    end += bytes;
    return [name, { dtype: namesInFiles[type], shape, data_offsets: [begin, end] }];
  });
  const header = Object.fromEntries([[METADATA, metadata], ...entries]) as object;
  const text = new TextEncoder().encode(JSON.stringify(header));
  const length = Math.ceil(text.length / 8) * 8;
  const bytes = new Uint8Array(LENGTH_BYTES + length).fill(0x20);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(length), true);
  bytes.set(text, LENGTH_BYTES);
  return bytes;
}

/** The length of the header, from the first bytes of a file of `size` bytes. Throws `CONTENT`. */
export function headerLengthOf(bytes: Uint8Array, size: number): number {
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  if (length <= Math.min(size - LENGTH_BYTES, MAX_HEADER_BYTES)) return length;
  throw new InputError('CONTENT', `it is no safetensors file: its header would have ${length} bytes, the file has ${size}`);
}

/** The tensors by name and the texts of a header, whose file has `dataBytes` bytes after it. Throws `SYNTAX`, `CONTENT`. */
export function parseHeader(bytes: Uint8Array, dataBytes: number): { tensors: Map<string, StoredTensor>; metadata: Metadata } {
  let header: unknown;
  try {
    header = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (cause) {
    throw new InputError('SYNTAX', 'it is no safetensors file: its header is no JSON', { cause });
  }
  if (typeof header !== 'object' || header === null)
    throw new InputError('CONTENT', `it is no safetensors file: its header is ${describeValue(header)}`);
  const { [METADATA]: metadata = {}, ...others } = header as Readonly<Record<string, unknown>>;
  const tensors = new Map(Object.entries(others).map(([name, entry]) => [name, storedOf(name, entry, dataBytes)]));
  return { tensors, metadata: metadata as Metadata };
}

function storedOf(name: string, entry: unknown, dataBytes: number): StoredTensor {
  const { dtype, shape, data_offsets: offsets } = (entry ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof dtype !== 'string' || !isSizes(shape) || !isSizes(offsets) || offsets.length !== 2)
    throw new InputError('CONTENT', `its header has ${JSON.stringify(name)} without dtype, shape or data_offsets`);
  const [begin = 0, end = 0] = offsets;
  if (begin > end || end > dataBytes) {
    throw new InputError(
      'CONTENT',
      `${JSON.stringify(name)} has bytes ${begin} to ${end} of ${dataBytes}: the file is damaged or cut off`,
    );
  }
  return { type: typesOfFiles.get(dtype) ?? dtype, shape, begin, end };
}

function isSizes(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((size) => Number.isSafeInteger(size) && size >= 0);
}
