import { InputError } from '../../errors.js';

/**
 * The wire format of protocol buffers (https://protobuf.dev/programming-guides/encoding), without groups. A message is
 * a list of fields, each with a number and a value.
 */

/** A field's value: a number of any width, or bytes (a text, a message, packed numbers). */
export type FieldValue = number | Uint8Array;

/** A message as its fields, in their order. */
export type Message = readonly (readonly [field: number, value: FieldValue])[];

/**
 * Messages of a file, one after the other, each after its length.
 *
 * @throws InputError where the file ends within a message
 */
export function* delimitedMessages(bytes: Uint8Array): Generator<Uint8Array> {
  const reader = new Reader(bytes);
  while (!reader.isAtEnd) yield reader.bytes(reader.varint());
}

/** @throws InputError for bytes that are no message */
export function messageOf(bytes: Uint8Array): Message {
  const reader = new Reader(bytes);
  const fields: [number, FieldValue][] = [];
  while (!reader.isAtEnd) {
    const key = reader.varint();
    const field = Math.floor(key / 8);
    if (field === 0) throw notProtobuf();
    fields.push([field, reader.value(key % 8)]);
  }
  return fields;
}

/** Numbers of a repeated field: packed, or one by one. */
export function numbersOf(message: Message, field: number): number[] {
  return message.flatMap(([number, value]) => {
    if (number !== field) return [];
    if (typeof value === 'number') return [value];
    const reader = new Reader(value);
    const all: number[] = [];
    while (!reader.isAtEnd) all.push(reader.varint());
    return all;
  });
}

/** Writes messages. */
export class MessageWriter {
  readonly #bytes: number[] = [];

  /** A number of zero or more, or true or false. */
  number(field: number, value: number): this {
    this.#varint(field * 8);
    this.#varint(value);
    return this;
  }

  /** A text of ASCII. */
  text(field: number, value: string): this {
    return this.#block(
      field,
      Array.from(value, (character) => character.charCodeAt(0)),
    );
  }

  message(field: number, value: MessageWriter): this {
    return this.#block(field, value.#bytes);
  }

  /** The message after its length. */
  delimited(): Uint8Array {
    const length = new MessageWriter();
    length.#varint(this.#bytes.length);
    return Uint8Array.from([...length.#bytes, ...this.#bytes]);
  }

  #block(field: number, value: ArrayLike<number>): this {
    this.#varint(field * 8 + 2);
    this.#varint(value.length);
    for (let at = 0; at < value.length; at++) this.#bytes.push(value[at] ?? 0);
    return this;
  }

  #varint(value: number): void {
    let rest = value;
    for (; rest >= 128; rest = Math.floor(rest / 128)) this.#bytes.push((rest % 128) + 128);
    this.#bytes.push(rest);
  }
}

/** Bytes of a number at most: seven bits in each. */
const MOST_VARINT_BYTES = 10;

class Reader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  varint(): number {
    let value = 0;
    for (let place = 0; place < MOST_VARINT_BYTES; place++) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) throw notProtobuf();
      value += (byte & 127) * 128 ** place;
      if (byte < 128) return value;
    }
    throw notProtobuf();
  }

  bytes(length: number): Uint8Array {
    const from = this.#at;
    this.#at += length;
    if (this.#at > this.#bytes.length) throw notProtobuf();
    return this.#bytes.subarray(from, this.#at);
  }

  /** @param wireType 0: number, 1: eight bytes, 2: block, 5: four bytes */
  value(wireType: number): FieldValue {
    switch (wireType) {
      case 0:
        return this.varint();
      case 1:
        return fixed(this.bytes(8));
      case 2:
        return this.bytes(this.varint());
      case 5:
        return fixed(this.bytes(4));
      default:
        throw notProtobuf();
    }
  }
}

/** A number of four or eight bytes, taken as floating-point: those of traces are durations. */
function fixed(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return bytes.length === 8 ? view.getFloat64(0, true) : view.getFloat32(0, true);
}

function notProtobuf(): InputError {
  return new InputError('CONTENT', 'the file ends within a message, or is no protocol buffer');
}
