import { deserialize, serialize } from '#platform/engine';
import type { ObjectFormat } from './format.js';
import { classOf, makeView, partsOf, PIECE_BYTES } from './views.js';

/*
 * For runtimes whose structured clone calls no code of ours (Bun). It would copy all memory behind a view, which is the host's
 * shared memory where the view is an array of alloc(). So an empty object, a *marker*, takes the place of each view:
 *
 *     { lr: 0.1, weights: Float32Array(1e6) }
 *     ──► body    clone of { value: { lr: 0.1, weights: marker }, markers: [marker], views: [«Float32Array, 4,000,000 bytes»] }
 *         pieces  [the array's own bytes]
 */

/** A view apart from its value. */
interface SentView {
  readonly kind: number;
  readonly length: number;
  /** The bytes, if they are few. */
  readonly bytes?: Uint8Array;
}

interface Body {
  readonly value: unknown;
  readonly markers: readonly object[];
  readonly views: readonly SentView[];
}

/** The runtime's whole structured clone. */
export const cloneFormat: ObjectFormat = {
  write(value) {
    const copies = new Map<object, object>();
    const views: { readonly marker: object; readonly kind: number; readonly bytes: Uint8Array }[] = [];
    const copyOf = (part: unknown): unknown => {
      if (typeof part !== 'object' || part === null) return part;
      const known = copies.get(part);
      if (known !== undefined) return known;
      if (ArrayBuffer.isView(part)) {
        const marker = {};
        views.push({ marker, ...partsOf(part) });
        copies.set(part, marker);
        return marker;
      }
      const { empty, fill } = containerLike(part);
      copies.set(part, empty);
      fill(copyOf);
      return empty;
    };
    const body: Body = {
      value: copyOf(value),
      markers: views.map(({ marker }) => marker),
      views: views.map(({ kind, bytes }) => ({
        kind,
        length: bytes.length,
        ...(bytes.length < PIECE_BYTES ? { bytes: bytes.slice() } : {}),
      })),
    };
    return { body: serialize(body), pieces: views.flatMap(({ bytes }) => (bytes.length < PIECE_BYTES ? [] : [bytes])) };
  },

  read(bytes) {
    const { value, markers, views } = deserialize(bytes) as Body;
    const pieces: Uint8Array[] = [];
    const made = views.map(({ kind, length, bytes }) => {
      const { view, memory } = makeView(kind, length);
      if (bytes === undefined) pieces.push(memory);
      else memory.set(bytes);
      return view;
    });
    const viewOf = new Map<unknown, unknown>(markers.map((marker, i) => [marker, made[i]]));
    const seen = new Set<object>();
    const restored = (part: unknown): unknown => {
      if (typeof part !== 'object' || part === null || ArrayBuffer.isView(part)) return part;
      if (viewOf.has(part)) return viewOf.get(part);
      if (!seen.has(part)) {
        seen.add(part);
        refill(part, restored);
      }
      return part;
    };
    return { value: views.length === 0 ? value : restored(value), pieces };
  },
};

/** An empty container like `part`, and a function that fills it with its members, changed. Other objects are left as they are. */
function containerLike(part: object): { readonly empty: object; readonly fill: (change: (member: unknown) => unknown) => void } {
  if (part instanceof SharedArrayBuffer) throw new TypeError('#<SharedArrayBuffer> could not be cloned.');
  if (part instanceof Map) {
    const empty = new Map<unknown, unknown>();
    return { empty, fill: (change) => part.forEach((value, key) => empty.set(change(key), change(value))) };
  }
  if (part instanceof Set) {
    const empty = new Set<unknown>();
    return { empty, fill: (change) => part.forEach((member) => empty.add(change(member))) };
  }
  if (!Array.isArray(part) && classOf(part) !== 'Object') return { empty: part, fill: () => undefined };
  const empty = (Array.isArray(part) ? new Array<unknown>(part.length) : {}) as Record<string, unknown>;
  return {
    empty,
    fill(change) {
      for (const [key, member] of Object.entries(part)) define(empty, key, change(member));
    },
  };
}

/** Changes the members of a container in place. */
function refill(part: object, change: (member: unknown) => unknown): void {
  if (part instanceof Map) {
    const entries = [...part];
    part.clear();
    for (const [key, member] of entries) part.set(change(key), change(member));
  } else if (part instanceof Set) {
    const members = [...part];
    part.clear();
    for (const member of members) part.add(change(member));
  } else if (Array.isArray(part) || classOf(part) === 'Object') {
    for (const [key, member] of Object.entries(part)) define(part, key, change(member));
  }
}

/** Sets an own property, whatever its name: `__proto__` too. */
function define(object: object, key: string, value: unknown): void {
  Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
}
