import { InputError } from '../errors.js';

/**
 * Reads values of parsed JSON; errors name the path of a wrong value.
 *
 *     const hosts = new JsonReader(json, 'plan').field('hosts');
 *     hosts.items().map((host) => host.field('count').integer(1))
 */
export class JsonReader {
  readonly #value: unknown;
  /** Path of the value, for messages. */
  readonly #path: string;

  constructor(value: unknown, path: string) {
    this.#value = value;
    this.#path = path;
  }

  field(name: string): JsonReader {
    const { record } = this;
    return new JsonReader(record[name], `${this.#path}.${name}`);
  }

  /** Undefined where the field is missing or null. */
  optional(name: string): JsonReader | undefined {
    const value = this.record[name];
    return value === undefined || value === null ? undefined : this.field(name);
  }

  get record(): Readonly<Record<string, unknown>> {
    const value = this.#value;
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw this.wrong('an object');
    return value as Readonly<Record<string, unknown>>;
  }

  /** @param length required number; any if not given */
  items(length?: number): JsonReader[] {
    return this.#array(length).map((item, index) => new JsonReader(item, `${this.#path}[${index}]`));
  }

  number(): number {
    if (typeof this.#value !== 'number') throw this.wrong('a number');
    return this.#value;
  }

  integer(least: number, most = Number.MAX_SAFE_INTEGER): number {
    const value = this.number();
    if (!Number.isInteger(value) || value < least || value > most)
      throw this.wrong(least === most ? String(least) : `a whole number from ${least} to ${most}`);
    return value;
  }

  text(): string {
    if (typeof this.#value !== 'string') throw this.wrong('a text');
    return this.#value;
  }

  flag(): boolean {
    if (typeof this.#value !== 'boolean') throw this.wrong('true or false');
    return this.#value;
  }

  oneOf<const Value>(values: readonly Value[]): Value {
    const found = values.find((value) => value === this.#value);
    if (found === undefined) throw this.wrong(`one of ${values.join(', ')}`);
    return found;
  }

  /** Numbers, all whole and from `least` to `most`. */
  integers(least: number, most: number, length?: number): number[] {
    const array = this.#array(length);
    for (const [index, value] of array.entries()) {
      if (!Number.isInteger(value) || (value as number) < least || (value as number) > most) {
        throw new JsonReader(value, `${this.#path}[${index}]`).wrong(`a whole number from ${least} to ${most}`);
      }
    }
    return array as number[];
  }

  /** Rows of such numbers, all in one array. */
  rows(least: number, most: number, count: number, length: number): Int32Array {
    const all = new Int32Array(count * length);
    this.items(count).forEach((row, index) => all.set(row.integers(least, most, length), index * length));
    return all;
  }

  wrong(expected: string): InputError {
    const text = this.#value === undefined ? 'missing' : JSON.stringify(this.#value);
    return new InputError(
      'CONTENT',
      `${this.#path} is ${text.length > 60 ? `${text.slice(0, 57)}...` : text}; it has to be ${expected}`,
    );
  }

  #array(length?: number): unknown[] {
    if (!Array.isArray(this.#value)) throw this.wrong('a list');
    if (length !== undefined && this.#value.length !== length) {
      throw new InputError('CONTENT', `${this.#path} has ${this.#value.length} entries; it has to have ${length}`);
    }
    return this.#value;
  }
}
