import { InputError } from '../../errors.js';
import { utf8Text } from './utf8.js';

/** Value of a pickle of plain data. */
type PickleValue =
  null | boolean | number | bigint | string | Uint8Array | readonly PickleValue[] | ReadonlyMap<PickleValue, PickleValue>;

type Stacked = PickleValue | typeof mark;
const mark = Symbol('mark');
const MEMO_LIMIT = 10_000_000;

/**
 * Reads a pickle of plain data: numbers, texts, lists, tuples, dictionaries. Requests to call functions, which Python's format
 * allows, are refused, so untrusted files are safe to read.
 *
 * @throws InputError at the byte where it is no such pickle
 */
export function readPickle(bytes: Uint8Array): PickleValue {
  return new Unpickler(bytes).read();
}

/** Operation codes of protocols 0 to 5 that make plain data (Python's pickletools.py lists them). */
class Unpickler {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #stack: Stacked[] = [];
  readonly #memo = new Map<number, PickleValue>();
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  read(): PickleValue {
    for (;;) {
      const at = this.#at;
      const code = String.fromCharCode(this.#byte());
      if (code === '.') return this.#pop();
      if (!this.#step(code)) throw this.#error(at, `operation ${JSON.stringify(code)} is refused: it does not make plain data`);
    }
  }

  #step(code: string): boolean {
    switch (code) {
      case '\u0080':
        this.#byte();
        return true;
      case '\u0095':
        this.#take(8);
        return true;
      case '(':
        this.#stack.push(mark);
        return true;
      case 'N':
        return this.#push(null);
      case '\u0088':
        return this.#push(true);
      case '\u0089':
        return this.#push(false);
      case ']':
        return this.#push([]);
      case ')':
        return this.#push([]);
      case '}':
        return this.#push(new Map());
      case 't':
        return this.#push(this.#sinceMark());
      case 'l':
        return this.#push(this.#sinceMark());
      case 'd':
        return this.#push(pairs(this.#sinceMark()));
      case '\u0085':
        return this.#tuple(1);
      case '\u0086':
        return this.#tuple(2);
      case '\u0087':
        return this.#tuple(3);
      case 'a':
        return this.#append([this.#pop()]);
      case 'e':
        return this.#append(this.#sinceMark());
      case 's': {
        const value = this.#pop();
        const key = this.#pop();
        return this.#set([key, value]);
      }
      case 'u':
        return this.#set(this.#sinceMark());
      case '0':
        this.#pop();
        return true;
      case '1':
        this.#sinceMark();
        return true;
      case '2': {
        const top = this.#pop();
        this.#push(top);
        return this.#push(top);
      }
      default:
        return this.#number(code) || this.#text(code) || this.#remember(code);
    }
  }

  #number(code: string): boolean {
    switch (code) {
      case 'K':
        return this.#push(this.#byte());
      case 'M':
        return this.#push(this.#view.getUint16(this.#take(2), true));
      case 'J':
        return this.#push(this.#view.getInt32(this.#take(4), true));
      case 'G':
        return this.#push(this.#view.getFloat64(this.#take(8)));
      case '\u008a':
        return this.#push(this.#long(this.#byte()));
      case '\u008b':
        return this.#push(this.#long(this.#view.getUint32(this.#take(4), true)));
      case 'I':
      case 'L': {
        const line = this.#line();
        if (code === 'I' && (line === '00' || line === '01')) return this.#push(line === '01');
        return this.#push(Number(line.replace(/L$/, '')));
      }
      case 'F':
        return this.#push(Number(this.#line()));
      default:
        return false;
    }
  }

  #text(code: string): boolean {
    switch (code) {
      case 'X':
      case 'T':
        return this.#push(this.#string(this.#view.getUint32(this.#take(4), true)));
      case '\u008c':
      case 'U':
        return this.#push(this.#string(this.#byte()));
      case '\u008d':
        return this.#push(this.#string(Number(this.#view.getBigUint64(this.#take(8), true))));
      case 'B':
        return this.#push(this.#slice(this.#view.getUint32(this.#take(4), true)));
      case 'C':
        return this.#push(this.#slice(this.#byte()));
      case 'V':
      case 'S':
        return this.#push(this.#line().replace(/^(['"])(.*)\1$/, '$2'));
      default:
        return false;
    }
  }

  #remember(code: string): boolean {
    switch (code) {
      case 'q':
        return this.#put(this.#byte());
      case 'r':
        return this.#put(this.#view.getUint32(this.#take(4), true));
      case 'p':
        return this.#put(Number(this.#line()));
      case '\u0094':
        return this.#put(this.#memo.size);
      case 'h':
        return this.#get(this.#byte());
      case 'j':
        return this.#get(this.#view.getUint32(this.#take(4), true));
      case 'g':
        return this.#get(Number(this.#line()));
      default:
        return false;
    }
  }

  #push(value: PickleValue): true {
    this.#stack.push(value);
    return true;
  }

  #pop(): PickleValue {
    const value = this.#stack.pop();
    if (value === undefined || value === mark) throw this.#error(this.#at, 'a value is missing');
    return value;
  }

  #sinceMark(): PickleValue[] {
    const at = this.#stack.lastIndexOf(mark);
    if (at < 0) throw this.#error(this.#at, 'a mark is missing');
    const values = this.#stack.splice(at).slice(1);
    return values.filter((value): value is PickleValue => value !== mark);
  }

  #tuple(length: number): true {
    const values = Array.from({ length }, () => this.#pop()).reverse();
    return this.#push(values);
  }

  #append(values: readonly PickleValue[]): true {
    const list = this.#stack.at(-1);
    if (!Array.isArray(list)) throw this.#error(this.#at, 'there is no list to append to');
    for (const value of values) (list as PickleValue[]).push(value);
    return true;
  }

  #set(values: readonly PickleValue[]): true {
    const map = this.#stack.at(-1);
    if (!(map instanceof Map)) throw this.#error(this.#at, 'there is no dictionary to fill');
    for (let index = 0; index + 1 < values.length; index += 2)
      (map as Map<PickleValue, PickleValue>).set(values[index] ?? null, values[index + 1] ?? null);
    return true;
  }

  #put(index: number): true {
    const top = this.#stack.at(-1);
    if (top === undefined || top === mark || this.#memo.size >= MEMO_LIMIT) throw this.#error(this.#at, 'nothing to remember');
    this.#memo.set(index, top);
    return true;
  }

  #get(index: number): true {
    const value = this.#memo.get(index);
    if (value === undefined) throw this.#error(this.#at, `value ${index} was never remembered`);
    return this.#push(value);
  }

  #byte(): number {
    return this.#view.getUint8(this.#take(1));
  }

  /** Moves on, and returns the position where these bytes begin. */
  #take(length: number): number {
    const at = this.#at;
    if (!(length >= 0) || at + length > this.#bytes.length) throw this.#error(at, 'the pickle ends too early');
    this.#at += length;
    return at;
  }

  #slice(length: number): Uint8Array {
    const at = this.#take(length);
    return this.#bytes.slice(at, at + length);
  }

  #string(length: number): string {
    const at = this.#take(length);
    return utf8Text(this.#bytes.subarray(at, at + length));
  }

  #line(): string {
    const end = this.#bytes.indexOf(10, this.#at);
    if (end < 0) throw this.#error(this.#at, 'the pickle ends too early');
    const at = this.#take(end - this.#at + 1);
    return utf8Text(this.#bytes.subarray(at, end)).trim();
  }

  /** Reads an integer of `bytes` bytes, least significant first, in two's complement. */
  #long(length: number): number | bigint {
    if (length > 64) throw this.#error(this.#at, 'an integer is too long');
    let value = 0n;
    const bytes = this.#slice(length);
    for (let index = length - 1; index >= 0; index--) value = (value << 8n) | BigInt(bytes[index] ?? 0);
    if (length > 0 && ((bytes[length - 1] ?? 0) & 0x80) !== 0) value -= 1n << BigInt(8 * length);
    return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  }

  #error(at: number, reason: string): InputError {
    return new InputError('CONTENT', `is no pickle of plain data: ${reason} (byte ${at})`);
  }
}

function pairs(values: readonly PickleValue[]): Map<PickleValue, PickleValue> {
  const map = new Map<PickleValue, PickleValue>();
  for (let index = 0; index + 1 < values.length; index += 2) map.set(values[index] ?? null, values[index + 1] ?? null);
  return map;
}

/** Values that a pickle may unfold to where the same list stands in several places. */
const MOST_VALUES = 50_000_000;
/** Lists within lists deeper than this are null. */
const MOST_DEPTH = 100;

/**
 * The same as JSON has it: objects for dictionaries, numbers for large integers (times in nanoseconds lose a few digits).
 * A value that stands in several places is the same object in all; one that contains itself is null there.
 *
 * @throws InputError `TOO_LARGE` for nested lists that unfold to too many values
 */
export function plainValue(value: PickleValue): unknown {
  return new Unfolder().plain(value).value;
}

interface Unfolded {
  readonly value: unknown;
  /** Number of values including nested ones, each counted at each of its places. */
  readonly count: number;
}

class Unfolder {
  readonly #known = new Map<PickleValue, Unfolded>();
  #depth = 0;

  plain(value: PickleValue): Unfolded {
    if (typeof value === 'bigint') return { value: Number(value), count: 1 };
    if (typeof value !== 'object' || value === null) return { value, count: 1 };
    if (value instanceof Uint8Array) return { value: null, count: 1 };
    const known = this.#known.get(value);
    if (known !== undefined) return known;
    // Null until it is complete, for references to itself.
    this.#known.set(value, { value: null, count: 1 });
    if (this.#depth >= MOST_DEPTH) return { value: null, count: 1 };
    this.#depth++;
    const made = value instanceof Map ? this.#object(value) : this.#list(value as readonly PickleValue[]);
    if (made.count > MOST_VALUES)
      throw new InputError('TOO_LARGE', `is no recording: its lists unfold to more than ${MOST_VALUES} values`);
    this.#depth--;
    this.#known.set(value, made);
    return made;
  }

  #list(values: readonly PickleValue[]): Unfolded {
    let count = 1;
    const list = values.map((each) => {
      const made = this.plain(each);
      count += made.count;
      return made.value;
    });
    return { value: list, count };
  }

  #object(map: ReadonlyMap<PickleValue, PickleValue>): Unfolded {
    let count = 1;
    const fields = [...map].map(([key, each]): [string, unknown] => {
      const made = this.plain(each);
      count += made.count;
      return [typeof key === 'object' ? '' : String(key), made.value];
    });
    return { value: Object.fromEntries(fields), count };
  }
}
