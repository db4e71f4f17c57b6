import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  HEADER_BYTES,
  MAXIMUM_PAYLOAD_BYTES,
  PROOF_BYTES,
  recordKinds,
  RecordReader,
  RecordWriter,
} from '../../../../src/runtime/bootstrap/record.js';
import type { RecordKind } from '../../../../src/runtime/bootstrap/record.js';
import { SystemError } from '../../../../src/errors.js';

const key = randomBytes(32);

const records = fc.array(
  fc.record({ kind: fc.constantFrom(...Object.values(recordKinds)), payload: fc.uint8Array({ maxLength: 300 }) }),
  { minLength: 1, maxLength: 8 },
);

function seal(list: readonly { kind: RecordKind; payload: Uint8Array }[]): Buffer {
  const writer = new RecordWriter(key);
  return Buffer.concat(list.flatMap(({ kind, payload }) => writer.seal(kind, payload)));
}

/** Records of a reader for bytes that come in pieces of these lengths, the last as long as the rest. */
function open(bytes: Buffer, cuts: readonly number[] = []): { kind: RecordKind; payload: Uint8Array }[] {
  const reader = new RecordReader(key);
  const opened = [];
  let offset = 0;
  for (const length of [...cuts, bytes.length]) {
    for (const { kind, payload } of reader.push(bytes.subarray(offset, offset + length)))
      opened.push({ kind, payload: Uint8Array.from(payload) });
    offset += length;
  }
  return opened;
}

it('records arrive unchanged, however the network splits them', () => {
  fc.assert(
    fc.property(records, fc.array(fc.integer({ min: 0, max: 70 })), (list, cuts) => {
      expect(open(seal(list), cuts)).toEqual(list);
    }),
  );
});

it('the longest record is accepted', () => {
  const list = [{ kind: recordKinds.message, payload: Uint8Array.from(randomBytes(MAXIMUM_PAYLOAD_BYTES)) }];
  expect(Buffer.from(open(seal(list), [1, 70_000])[0]!.payload).equals(list[0]!.payload)).toBe(true);
});

describe('only sealed records are accepted', () => {
  it('when a bit is changed', () => {
    fc.assert(
      fc.property(records, fc.nat(), (list, at) => {
        const bytes = seal(list);
        bytes[at % bytes.length]! ^= 1 << (at % 8);
        // A header that now claims a longer record may leave it incomplete; otherwise it is refused.
        const opened: unknown[] = [];
        const reader = new RecordReader(key);
        try {
          for (const { kind, payload } of reader.push(bytes)) opened.push({ kind, payload: Uint8Array.from(payload) });
        } catch (error) {
          expect(error).toBeInstanceOf(SystemError);
        }
        expect(opened.length).toBeLessThan(list.length);
        expect(opened).toEqual(list.slice(0, opened.length));
      }),
    );
  });

  it('when arbitrary bytes arrive', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 500 }), (garbage) => {
        try {
          expect([...new RecordReader(key).push(Buffer.from(garbage))]).toEqual([]);
        } catch (error) {
          expect(error).toBeInstanceOf(SystemError);
        }
      }),
    );
  });

  it('when a record is repeated, left out or moved', () => {
    const writer = new RecordWriter(key);
    const [a, b] = ['a', 'b'].map((text) => Buffer.concat(writer.seal(recordKinds.message, Buffer.from(text)))) as [
      Buffer,
      Buffer,
    ];
    expect(() => open(Buffer.concat([a, a]))).toThrow(/not authentic/);
    expect(() => open(b)).toThrow(/not authentic/);
    expect(() => open(Buffer.concat([b, a]))).toThrow(/not authentic/);
    expect(() => [...new RecordReader(randomBytes(32)).push(a)]).toThrow(/not authentic/);
    expect(open(Buffer.concat([a, b])).length).toBe(2);
  });
});

it('a huge length is refused at the header, before memory is allocated', () => {
  fc.assert(
    fc.property(fc.integer({ min: MAXIMUM_PAYLOAD_BYTES + 1, max: 0xffffffff }), fc.boolean(), (length, piecewise) => {
      const header = Buffer.alloc(HEADER_BYTES);
      header.writeUInt32LE(length, 0);
      header[4] = recordKinds.message;
      expect(() => open(header, piecewise ? [1, 1, 1, 1, 1] : [])).toThrow(/claims kind 1 and \d+ bytes/);
    }),
  );
});

it('sealing does not copy the payload', () => {
  const payload = new Uint8Array(10);
  const pieces = new RecordWriter(key).seal(recordKinds.message, payload);
  expect(pieces[1]).toBe(payload);
  expect(pieces.map((piece) => piece.length)).toEqual([HEADER_BYTES, 10, PROOF_BYTES]);
});
