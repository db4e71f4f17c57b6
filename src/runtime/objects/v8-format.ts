import { Deserializer, Serializer } from '#platform/engine';
import type { ObjectFormat } from './format.js';
import { makeView, partsOf, PIECE_BYTES } from './views.js';

/** V8's structured clone, which calls this code for each view. */
export const v8Format: ObjectFormat = {
  write(value) {
    const serializer = new ObjectSerializer();
    serializer.writeHeader();
    serializer.writeValue(value);
    return { body: serializer.releaseBuffer(), pieces: serializer.pieces };
  },
  read(body) {
    const deserializer = new ObjectDeserializer(body);
    deserializer.readHeader();
    const value: unknown = deserializer.readValue();
    return { value, pieces: deserializer.pieces };
  },
};

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
    const { kind, bytes } = partsOf(host);
    this.writeUint32(kind);
    this.writeDouble(bytes.length);
    if (bytes.length >= PIECE_BYTES) this.pieces.push(bytes);
    else this.writeRawBytes(bytes);
  }

  /** The class of errors about values that cannot be cloned. */
  protected readonly _getDataCloneError = TypeError;
}

class ObjectDeserializer extends Deserializer {
  readonly pieces: Uint8Array[] = [];

  protected _readHostObject(): ArrayBufferView {
    const kind = this.readUint32();
    const bytes = this.readDouble();
    const { view, memory } = makeView(kind, bytes);
    if (bytes >= PIECE_BYTES) this.pieces.push(memory);
    else memory.set(this.readRawBytes(bytes));
    return view;
  }
}
