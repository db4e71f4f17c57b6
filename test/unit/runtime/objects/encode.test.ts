import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cloneFormat } from '../../../../src/runtime/objects/clone-format.js';
import { decodeValue, encodeValue } from '../../../../src/runtime/objects/encode.js';
import { v8Format } from '../../../../src/runtime/objects/v8-format.js';
import { PIECE_BYTES } from '../../../../src/runtime/objects/views.js';

describe.each([
  ["V8's serializer", v8Format],
  ["the runtime's structured clone", cloneFormat],
])('by %s', (_, format) => {
  /** The received value of a sent one. */
  function sent(value: unknown): unknown {
    const { body, pieces } = encodeValue('sendObject', value, { format });
    const decoded = decodeValue('recvObject', Uint8Array.from(body), format);
    expect(decoded.pieces.map(({ length }) => length)).toEqual(pieces.map(({ length }) => length));
    decoded.pieces.forEach((piece, i) => piece.set(pieces[i] ?? []));
    return decoded.value;
  }

  test('values arrive as structuredClone copies them', () => {
    const views = fc.oneof(
      fc.uint8Array(),
      fc.int16Array(),
      fc.float32Array({ noNaN: true }),
      fc.bigInt64Array(),
      fc.uint8ClampedArray(),
    );
    const value = fc.object({
      values: [fc.anything({ withBigInt: true, withDate: true, withMap: true, withSet: true, withTypedArray: true }), views],
      withBigInt: true,
      maxDepth: 4,
    });
    fc.assert(
      fc.property(value, (one) => {
        expect(sent(one)).toStrictEqual(structuredClone(one));
      }),
    );
  });

  /** Compared as bytes: vitest takes seconds for long arrays. */
  const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array =>
    new Uint8Array(buffer, byteOffset, byteLength);

  test('typed arrays of all classes arrive with memory of their own, short and long', () => {
    const classes = [Int8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, Float32Array, Float64Array];
    for (const length of [0, 3, PIECE_BYTES, PIECE_BYTES + 5]) {
      for (const arrayClass of classes) {
        const view = new arrayClass(new ArrayBuffer(8 + length * 8), 8, length).fill(7);
        const came = sent({ view, again: view }) as { view: typeof view; again: typeof view };
        expect(came.view.constructor).toBe(arrayClass);
        expect(Buffer.compare(bytesOf(came.view), bytesOf(view))).toBe(0);
        expect(came.again).toBe(came.view);
        expect(came.view.buffer.byteLength).toBe(view.byteLength);
      }
      const buffer = sent(Buffer.alloc(length, 3));
      expect(Buffer.isBuffer(buffer) && buffer.equals(Buffer.alloc(length, 3))).toBe(true);
      expect(sent(new DataView(new ArrayBuffer(length)))).toBeInstanceOf(DataView);
      const numbers = sent(new BigUint64Array(length).fill(5n)) as BigUint64Array;
      expect(numbers.length === length && numbers.every((number) => number === 5n)).toBe(true);
    }
  });

  test('long typed arrays are not copied, nor are those in shared memory', () => {
    for (const memory of [new ArrayBuffer(2 * PIECE_BYTES), new SharedArrayBuffer(2 * PIECE_BYTES)]) {
      const view = new Float32Array(memory, 16, PIECE_BYTES / 4);
      const { body, pieces } = encodeValue('sendObject', { view, short: new Uint8Array(memory, 0, 16) }, { format });
      expect(body.length).toBeLessThan(300);
      expect(pieces.map(({ buffer, byteOffset, length }) => [buffer === memory, byteOffset, length])).toEqual([
        [true, 16, PIECE_BYTES],
      ]);
    }
  });

  test('cycles and shared parts of a value are kept', () => {
    const node: Record<string, unknown> = { name: 'a' };
    node['self'] = node;
    const came = sent([node, node]) as Record<string, unknown>[];
    expect(came[0]?.['self']).toBe(came[0]);
    expect(came[1]).toBe(came[0]);
  });

  test.each([
    [
      'a function',
      { f: () => 1 },
      /sendObject: the value cannot be sent: .*could not be cloned\. Pass what structuredClone takes/,
    ],
    [
      'a detached array',
      detached(),
      /sendObject: the value cannot be sent: .*detached ArrayBuffer\. Pass what structuredClone takes/,
    ],
    ['a symbol', Symbol('s'), /sendObject: the value cannot be sent: .*could not be cloned/],
    ['a port', new MessageChannel().port1, /sendObject: the value cannot be sent: .*(could not be cloned|Unserializable)/],
  ])('%s is refused', (_, value, message) => {
    expect(() => encodeValue('sendObject', value, { format })).toThrow(message);
    if (value instanceof MessagePort) value.close();
  });

  test('a value above the limit is refused with both sizes, and long typed arrays do not count', () => {
    expect(() => encodeValue('sendObject', 'x'.repeat(5000), { limit: 4096, format })).toThrow(
      /^sendObject: the value takes 5,0\d\d bytes, and 4 KiB are the most; put large data into typed arrays, which do not count from 64 KiB on/,
    );
    expect(() => encodeValue('sendObject', new Uint8Array(PIECE_BYTES), { limit: 4096, format })).not.toThrow();
  });

  test('invalid bytes are refused', () => {
    expect(() => decodeValue('recvObject', Uint8Array.of(1, 2, 3), format)).toThrow(
      /recvObject: the value that came cannot be read here/,
    );
  });

  test('members keep their places: sparse arrays, keys of maps, properties called __proto__', () => {
    const view = Float32Array.of(1, 2);
    const sparse = [1, , view] as unknown[];
    const odd = JSON.parse('{ "__proto__": 1 }') as object;
    const value = {
      sparse,
      map: new Map<unknown, unknown>([
        [view, 1],
        ['b', view],
      ]),
      set: new Set([view, 'x']),
      odd,
    };
    const came = sent(value) as typeof value;
    expect(came).toStrictEqual(structuredClone(value));
    expect(1 in came.sparse).toBe(false);
    expect([...came.map.keys()][0]).toBe(came.sparse[2]);
    expect(Object.keys(came.odd)).toEqual(['__proto__']);
  });

  test('shared memory itself is refused', () => {
    expect(() => encodeValue('sendObject', { memory: new SharedArrayBuffer(8) }, { format })).toThrow(/could not be cloned/);
  });
});

function detached(): Float64Array {
  const array = new Float64Array(10);
  structuredClone(array, { transfer: [array.buffer] });
  return array;
}
