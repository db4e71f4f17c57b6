import { Buffer } from '#platform/bytes';
/** Typed arrays from this length on are not copied into the body. */
export const PIECE_BYTES = 64 * 1024;

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

/** Class of an object, in the form of `Object.prototype.toString`. */
export function classOf(value: object): string {
  return Buffer.isBuffer(value) ? 'Buffer' : Object.prototype.toString.call(value).slice(8, -1);
}

/** Number of a view's class, and its memory. Throws for objects that are no views of a known class. */
export function partsOf(view: object): { readonly kind: number; readonly bytes: Uint8Array } {
  const kind = ArrayBuffer.isView(view) ? viewKinds.findIndex((one) => one?.name === classOf(view)) : -1;
  if (!ArrayBuffer.isView(view) || kind < 0) throw new TypeError(`${classOf(view)} could not be cloned.`);
  return { kind, bytes: new Uint8Array(view.buffer, view.byteOffset, view.byteLength) };
}

/** A view of that class with memory of its own, to be filled. */
export function makeView(kind: number, bytes: number): { readonly view: ArrayBufferView; readonly memory: Uint8Array } {
  const viewKind = viewKinds[kind];
  if (viewKind === undefined) throw new TypeError(`this runtime has no class for the typed array number ${kind}`);
  const memory = new Uint8Array(bytes);
  return { view: viewKind.make(memory.buffer, bytes / viewKind.bytes), memory };
}
