import { Deserializer, Serializer } from 'node:v8';
import { InvalidArgumentError, SystemError } from '../../errors.js';
import { BODY_LIMIT, bytesText } from './limits.js';

/*
 * A value as bytes, by V8's structured clone. Typed arrays are written by their class and length. A short one follows in place;
 * a long one is a *piece*, which travels from and into the arrays themselves:
 *
 *     { lr: 0.1, weights: Float32Array(1e6) }
 *     ──► body    { lr: 0.1, weights: «Float32Array, 4,000,000 bytes, piece» }
 *         pieces  [the array's own bytes]
 */

/** Typed arrays from this length on are not copied into the body. */
export const PIECE_BYTES = 64 * 1024;

/** A value in the form in which it is sent. */
export interface EncodedValue {
  readonly body: Uint8Array;
  /** Memory of its long typed arrays, in the order in which they come. */
  readonly pieces: readonly Uint8Array[];
}

/** A received value whose pieces are still missing. */
export interface DecodedValue {
  readonly value: unknown;
  /** Memory to fill, in the order of the sender's pieces. */
  readonly pieces: readonly Uint8Array[];
}

type ViewClass = new (buffer: ArrayBuffer, byteOffset: number, length: number) => ArrayBufferView;

interface ViewKind {
  readonly name: string;
  /** Bytes of an element. */
  readonly bytes: number;
  readonly make: (buffer: ArrayBuffer, length: number) => ArrayBufferView;
}

const kindOf = (name: string, viewClass: ViewClass & { readonly BYTES_PER_ELEMENT?: number }): ViewKind => ({
  name,
  bytes: viewClass.BYTES_PER_ELEMENT ?? 1,
  make: (buffer, length) => new viewClass(buffer, 0, length),
});

/** Classes of views; their indexes are sent. Not every runtime has Float16Array. */
const viewKinds: readonly (ViewKind | undefined)[] = [
  kindOf('Int8Array', Int8Array),
  kindOf('Uint8Array', Uint8Array),
  kindOf('Uint8ClampedArray', Uint8ClampedArray),
  kindOf('Int16Array', Int16Array),
  kindOf('Uint16Array', Uint16Array),
  kindOf('Int32Array', Int32Array),
  kindOf('Uint32Array', Uint32Array),
  kindOf('Float32Array', Float32Array),
  kindOf('Float64Array', Float64Array),
  kindOf('BigInt64Array', BigInt64Array),
  kindOf('BigUint64Array', BigUint64Array),
  kindOf('DataView', DataView),
  { name: 'Buffer', bytes: 1, make: (buffer) => Buffer.from(buffer) },
  float16Kind(),
];

function float16Kind(): ViewKind | undefined {
  const { Float16Array } = globalThis as { Float16Array?: ViewClass };
  return Float16Array && kindOf('Float16Array', Float16Array);
}

function nameOf(view: ArrayBufferView): string {
  return Buffer.isBuffer(view) ? 'Buffer' : Object.prototype.toString.call(view).slice(8, -1);
}

/** Methods of V8's serializer that Node.js documents and its types leave out. */
interface SerializerHooks {
  _setTreatArrayBufferViewsAsHostObjects(flag: boolean): void;
}

class ObjectSerializer extends Serializer {
  readonly pieces: Uint8Array[] = [];

  constructor() {
    super();
    (this as unknown as SerializerHooks)._setTreatArrayBufferViewsAsHostObjects(true);
  }

  /** V8 calls it for typed arrays, and for objects of the runtime itself, such as ports, which are no data. */
  protected _writeHostObject(host: object): void {
    if (!ArrayBuffer.isView(host)) throw new TypeError(`${nameOf(host as ArrayBufferView)} could not be cloned.`);
    const kind = viewKinds.findIndex((one) => one?.name === nameOf(host));
    if (kind < 0) throw new TypeError(`${nameOf(host)} could not be cloned.`);
    this.writeUint32(kind);
    this.writeDouble(host.byteLength);
    const bytes = new Uint8Array(host.buffer, host.byteOffset, host.byteLength);
    if (bytes.length >= PIECE_BYTES) this.pieces.push(bytes);
    else this.writeRawBytes(bytes);
  }

  /** The class of errors about values that cannot be cloned. */
  protected readonly _getDataCloneError = TypeError;
}

class ObjectDeserializer extends Deserializer {
  readonly pieces: Uint8Array[] = [];

  protected _readHostObject(): ArrayBufferView {
    const index = this.readUint32();
    const kind = viewKinds[index];
    if (kind === undefined) throw new TypeError(`this runtime has no class for the typed array number ${index}`);
    const bytes = this.readDouble();
    const memory = new Uint8Array(bytes);
    if (bytes >= PIECE_BYTES) this.pieces.push(memory);
    else memory.set(this.readRawBytes(bytes));
    return kind.make(memory.buffer, bytes / kind.bytes);
  }
}

/**
 * Encodes a value; its long typed arrays are not copied, so they must stay as they are until they have been sent.
 *
 * @param limit most bytes of the body
 * @throws InvalidArgumentError `ARGUMENT_TYPE` for values that structured clone does not take, `BUFFER_SIZE` above the
 *   limit
 */
export function encodeValue(call: string, value: unknown, limit = BODY_LIMIT): EncodedValue {
  const serializer = new ObjectSerializer();
  let body: Uint8Array;
  try {
    serializer.writeHeader();
    serializer.writeValue(value);
    body = serializer.releaseBuffer();
  } catch (error) {
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      `${call}: the value cannot be sent: ${(error as Error).message.replace(/\.?$/, '.')} Pass what structuredClone takes: data without functions, symbols or handles`,
      { cause: error },
    );
  }
  if (body.length > limit) {
    throw new InvalidArgumentError(
      'BUFFER_SIZE',
      `${call}: the value takes ${bytesText(body.length)}, and ${bytesText(limit)} are the most; put large data into typed arrays, which do not count from ${bytesText(PIECE_BYTES)} on`,
    );
  }
  return { body, pieces: serializer.pieces };
}

/**
 * Reads a body.
 *
 * @throws SystemError `OUT_OF_MEMORY`
 * @throws InvalidArgumentError `ARGUMENT_TYPE` for values that only the sender's runtime knows
 */
export function decodeValue(call: string, body: Uint8Array): DecodedValue {
  const deserializer = new ObjectDeserializer(body);
  try {
    deserializer.readHeader();
    const value: unknown = deserializer.readValue();
    return { value, pieces: deserializer.pieces };
  } catch (error) {
    if (error instanceof RangeError) {
      throw new SystemError('OUT_OF_MEMORY', `${call}: there is no memory for the value that came: ${error.message}`, {
        cause: error,
      });
    }
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      `${call}: the value that came cannot be read here: ${(error as Error).message}; run one version of Node.js on all ranks`,
      { cause: error },
    );
  }
}
