import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeValue, encodeValue, PIECE_BYTES } from '../../../../src/runtime/objects/encode.js';

/** The received value of a sent one. */
function sent(value: unknown): unknown {
  const { body, pieces } = encodeValue('sendObject', value);
  const decoded = decodeValue('recvObject', Uint8Array.from(body));
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
    const { body, pieces } = encodeValue('sendObject', { view, short: new Uint8Array(memory, 0, 16) });
    expect(body.length).toBeLessThan(200);
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
  ['a function', { f: () => 1 }, /sendObject: the value cannot be sent: .*could not be cloned\. Pass what structuredClone takes/],
  [
    'a detached array',
    detached(),
    /sendObject: the value cannot be sent: .*detached ArrayBuffer\. Pass what structuredClone takes/,
  ],
  ['a symbol', Symbol('s'), /sendObject: the value cannot be sent: .*could not be cloned/],
  ['a port', new MessageChannel().port1, /sendObject: the value cannot be sent: .*could not be cloned/],
])('%s is refused', (_, value, message) => {
  expect(() => encodeValue('sendObject', value)).toThrow(message);
  if (value instanceof MessagePort) value.close();
});

test('a value above the limit is refused with both sizes, and long typed arrays do not count', () => {
  expect(() => encodeValue('sendObject', 'x'.repeat(5000), 4096)).toThrow(
    'sendObject: the value takes 5,005 bytes, and 4 KiB are the most; put large data into typed arrays, which do not count from 64 KiB on',
  );
  expect(() => encodeValue('sendObject', new Uint8Array(PIECE_BYTES), 4096)).not.toThrow();
});

test('invalid bytes are refused', () => {
  expect(() => decodeValue('recvObject', Uint8Array.of(1, 2, 3))).toThrow(/recvObject: the value that came cannot be read here/);
});

function detached(): Float64Array {
  const array = new Float64Array(10);
  structuredClone(array, { transfer: [array.buffer] });
  return array;
}
