/*
 * Structured clone into bytes, which browsers do inside postMessage only. Each value is a tag with its parts; an object that was
 * written before is a reference to it, so cycles and shared objects stay what they are.
 */

const tags = {
  undefined: 0,
  null: 1,
  true: 2,
  false: 3,
  number: 4,
  bigint: 5,
  string: 6,
  /** With halves of surrogate pairs, which UTF-8 does not hold. */
  utf16: 7,
  reference: 8,
  hole: 9,
  array: 10,
  object: 11,
  map: 12,
  set: 13,
  date: 14,
  regExp: 15,
  buffer: 16,
  bytes: 17,
  error: 18,
  boxed: 19,
} as const;

const errorClasses: Readonly<Record<string, ErrorConstructor>> = {
  EvalError,
  RangeError,
  ReferenceError,
  SyntaxError,
  TypeError,
  URIError,
};

/** Bytes of a value. Throws TypeError for functions, symbols and objects of the browser. */
export function serialize(value: unknown): Uint8Array {
  const writer = new Writer();
  writer.value(value);
  return writer.bytes();
}

/** The value of bytes from {@link serialize}. */
export function deserialize(bytes: Uint8Array): unknown {
  return new Reader(bytes).value();
}

class Writer {
  #bytes = new Uint8Array(256);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;
  readonly #seen = new Map<object, number>();

  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  value(value: unknown): void {
    if (value === null || typeof value === 'undefined' || typeof value === 'boolean') {
      this.#tag(tags[String(value) as 'null' | 'undefined' | 'true' | 'false']);
    } else if (typeof value === 'number') {
      this.#tag(tags.number);
      this.#number(value);
    } else if (typeof value === 'bigint') {
      this.#tag(tags.bigint);
      this.#text(String(value));
    } else if (typeof value === 'string') this.#text(value);
    else if (typeof value === 'object') this.#object(value);
    else {
      const text = typeof value === 'function' ? Function.prototype.toString.call(value) : (value as symbol).toString();
      throw new TypeError(`${text} could not be cloned.`);
    }
  }

  #object(value: object): void {
    const known = this.#seen.get(value);
    if (known !== undefined) {
      this.#tag(tags.reference);
      this.#number(known);
      return;
    }
    this.#seen.set(value, this.#seen.size);
    const kind = Object.prototype.toString.call(value).slice(8, -1);
    if (Array.isArray(value)) this.#array(value);
    else if (kind === 'Object') {
      this.#tag(tags.object);
      this.#members(Object.entries(value));
    } else if (value instanceof Map) {
      this.#tag(tags.map);
      this.#members([...value]);
    } else if (value instanceof Set) {
      this.#tag(tags.set);
      this.#number(value.size);
      for (const member of [...value]) this.value(member);
    } else if (value instanceof Date) {
      this.#tag(tags.date);
      this.#number(value.getTime());
    } else if (value instanceof RegExp) {
      this.#tag(tags.regExp);
      this.#text(value.source);
      this.#text(value.flags);
    } else if (value instanceof ArrayBuffer || value instanceof Uint8Array) {
      this.#tag(value instanceof ArrayBuffer ? tags.buffer : tags.bytes);
      this.#raw(value instanceof ArrayBuffer ? new Uint8Array(value) : value);
    } else if (value instanceof Error) {
      this.#tag(tags.error);
      for (const part of [value.name, value.message, value.stack, value.cause]) this.value(part);
    } else if (/^(Number|String|Boolean|BigInt)$/.test(kind)) {
      this.#tag(tags.boxed);
      this.value(value.valueOf());
    } else throw new TypeError(`#<${kind}> could not be cloned.`);
  }

  #array(value: readonly unknown[]): void {
    this.#tag(tags.array);
    this.#number(value.length);
    for (let i = 0; i < value.length; i++) {
      if (i in value) this.value(value[i]);
      else this.#tag(tags.hole);
    }
    // Properties of an array beside its elements.
    this.#members(Object.entries(value).filter(([key]) => !/^\d+$/.test(key)));
  }

  #members(entries: readonly (readonly [unknown, unknown])[]): void {
    this.#number(entries.length);
    for (const [key, member] of entries) {
      this.value(key);
      this.value(member);
    }
  }

  #text(text: string): void {
    const isWhole = (text as { isWellFormed?: () => boolean }).isWellFormed?.() ?? !/\p{Surrogate}/u.test(text);
    this.#tag(isWhole ? tags.string : tags.utf16);
    const units = (): Uint16Array => Uint16Array.from({ length: text.length }, (_, i) => text.charCodeAt(i));
    this.#raw(isWhole ? new TextEncoder().encode(text) : new Uint8Array(units().buffer));
  }

  #raw(bytes: Uint8Array): void {
    this.#number(bytes.length);
    this.#room(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  #tag(tag: number): void {
    this.#room(1);
    this.#bytes[this.#length++] = tag;
  }

  #number(value: number): void {
    this.#room(8);
    this.#view.setFloat64(this.#length, value, true);
    this.#length += 8;
  }

  #room(bytes: number): void {
    if (this.#length + bytes <= this.#bytes.length) return;
    const larger = new Uint8Array(2 * (this.#length + bytes));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
    this.#view = new DataView(larger.buffer);
  }
}

class Reader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;
  readonly #seen: unknown[] = [];

  constructor(bytes: Uint8Array) {
    // A copy: decoders of text take no shared memory.
    this.#bytes = bytes.slice();
    this.#view = new DataView(this.#bytes.buffer);
  }

  value(): unknown {
    const tag = this.#bytes[this.#at++];
    switch (tag) {
      case tags.undefined:
        return undefined;
      case tags.null:
        return null;
      case tags.true:
        return true;
      case tags.false:
        return false;
      case tags.number:
        return this.#number();
      case tags.bigint:
        return BigInt(this.#text());
      case tags.string:
      case tags.utf16:
        this.#at--;
        return this.#text();
      case tags.reference:
        return this.#seen[this.#number()];
      case tags.array:
        return this.#array();
      case tags.object:
        return this.#members({});
      case tags.map: {
        const map = this.#keep(new Map());
        for (let left = this.#number(); left > 0; left--) map.set(this.value(), this.value());
        return map;
      }
      case tags.set: {
        const set = this.#keep(new Set());
        for (let left = this.#number(); left > 0; left--) set.add(this.value());
        return set;
      }
      case tags.date:
        return this.#keep(new Date(this.#number()));
      case tags.regExp:
        return this.#keep(new RegExp(this.#text(), this.#text()));
      case tags.buffer:
        return this.#keep(this.#raw().buffer);
      case tags.bytes:
        return this.#keep(this.#raw());
      case tags.error:
        return this.#error();
      case tags.boxed:
        return this.#boxed();
      default:
        throw new TypeError(`byte ${String(tag)} begins no value`);
    }
  }

  #keep<T>(value: T): T {
    this.#seen.push(value);
    return value;
  }

  #array(): unknown[] {
    const length = this.#number();
    const array = this.#keep(new Array<unknown>(length));
    for (let i = 0; i < length; i++) {
      if (this.#bytes[this.#at] === tags.hole) this.#at++;
      else array[i] = this.value();
    }
    return this.#fill(array) as unknown[];
  }

  #members(object: object): object {
    return this.#fill(this.#keep(object));
  }

  #fill(object: object): object {
    for (let left = this.#number(); left > 0; left--) {
      // Defined, not set: a member may be called __proto__.
      const key = this.value() as string;
      Object.defineProperty(object, key, { value: this.value(), writable: true, enumerable: true, configurable: true });
    }
    return object;
  }

  #error(): Error {
    const at = this.#seen.push(undefined) - 1;
    const [name, message, stack] = [this.value() as string, this.value() as string, this.value() as string | undefined];
    const error = new (errorClasses[name] ?? Error)(message);
    this.#seen[at] = error;
    const cause = this.value();
    const set = (key: string, value: unknown): void =>
      void Object.defineProperty(error, key, { value, writable: true, configurable: true });
    set('stack', stack);
    if (cause !== undefined) set('cause', cause);
    return error;
  }

  #boxed(): object {
    const at = this.#seen.push(undefined) - 1;
    return (this.#seen[at] = Object(this.value()) as object);
  }

  #text(): string {
    const isWhole = this.#bytes[this.#at++] === tags.string;
    const bytes = this.#raw();
    if (isWhole) return new TextDecoder().decode(bytes);
    let text = '';
    for (const unit of new Uint16Array(bytes.buffer)) text += String.fromCharCode(unit);
    return text;
  }

  #raw(): Uint8Array<ArrayBuffer> {
    const length = this.#number();
    return this.#bytes.slice(this.#at, (this.#at += length));
  }

  #number(): number {
    const value = this.#view.getFloat64(this.#at, true);
    this.#at += 8;
    return value;
  }
}
