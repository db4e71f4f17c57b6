import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, type Document, visit, type YAMLMap } from 'yaml';
import { InputError } from '../../errors.js';
import { didYouMean } from '../../suggest.js';

/**
 * Reads values of YAML (and so JSON); errors name the line of a wrong value.
 *
 *     const file = YamlReader.parse(text, 'a cluster file');
 *     file.fields(['machines', 'environment']).machines.items().map((machine) => machine.text('a name'))
 */
export class YamlReader {
  readonly #node: Node | null;
  /** Name of the value in messages. */
  readonly #what: string;
  readonly #source: Source;
  /** Position in the text where the value, or the key before it, begins. */
  readonly #offset: number;

  private constructor(node: Node | null, what: string, source: Source, offset: number) {
    this.#node = isAlias(node) ? (node.resolve(source.document) ?? null) : node;
    this.#what = what;
    this.#source = source;
    this.#offset = offset;
  }

  /**
   * @param what name of the whole in messages
   * @throws InputError `SYNTAX` with its line
   */
  static parse(text: string, what: string): YamlReader {
    if (text.length > MOST_CHARACTERS)
      throw new InputError('TOO_LARGE', `${what} has more than ${MOST_CHARACTERS / 2 ** 20} MiB`);
    const lines = new LineCounter();
    const document = parseOrRefuse(text, what, lines);
    const [problem] = document.errors;
    if (problem !== undefined) {
      const { line, col } = lines.linePos(problem.pos[0]);
      throw new InputError('SYNTAX', `${what} is no YAML or JSON: ${problem.message}`, { line, column: col });
    }
    const repeated = repeatedKey(document);
    if (repeated !== undefined) {
      const { line, col } = lines.linePos(repeated.offset);
      throw new InputError('SYNTAX', `${what} has the field ${repeated.key} twice in one mapping`, { line, column: col });
    }
    return new YamlReader(document.contents, what, { document, lines }, 0);
  }

  /** 1-based place, for errors about the meaning of the value. */
  get place(): { readonly line: number; readonly column: number } {
    const { line, col } = this.#source.lines.linePos(this.#offset);
    return { line, column: col };
  }

  get kind(): 'text' | 'number' | 'flag' | 'list' | 'mapping' | 'nothing' {
    const node = this.#node;
    if (isMap(node)) return 'mapping';
    if (isSeq(node)) return 'list';
    const value = isScalar(node) ? node.value : null;
    if (value === null || value === undefined) return 'nothing';
    return typeof value === 'number' || typeof value === 'bigint' ? 'number' : typeof value === 'boolean' ? 'flag' : 'text';
  }

  /** The fields with values. Any other name is refused. */
  fields<const Name extends string>(names: readonly Name[]): Partial<Record<Name, YamlReader>> {
    const found: Partial<Record<Name, YamlReader>> = {};
    for (const [name, value] of this.entries()) {
      const known = names.find((other) => other === name);
      if (known === undefined)
        throw value.wrongAt(
          `${this.#what} has no field ${name}${didYouMean(name, names) || `; it can have ${names.join(', ')}`}`,
        );
      if (value.kind !== 'nothing') found[known] = value;
    }
    return found;
  }

  /** All fields by name, in their order. A value's place is that of its name. */
  entries(): (readonly [name: string, value: YamlReader])[] {
    const node = this.#node;
    if (!isMap(node)) throw this.wrong('a mapping (name: value)');
    return node.items.map(({ key, value }) => {
      const name = isScalar(key) ? String(key.source ?? key.value) : '?';
      const offset = isScalar(key) ? (key.range?.[0] ?? this.#offset) : this.#offset;
      return [name, new YamlReader(value as Node | null, name, this.#source, offset)] as const;
    });
  }

  /** The entries of a list; a value that is no list counts as one of one. */
  items(): YamlReader[] {
    const node = this.#node;
    if (!isSeq(node)) return [this];
    return node.items.map((item, index) => {
      const entry = item as Node | null;
      return new YamlReader(entry, `${this.#what}[${index}]`, this.#source, entry?.range?.[0] ?? this.#offset);
    });
  }

  text(expected: string): string {
    if (!isScalar(this.#node) || this.kind === 'nothing') throw this.wrong(expected);
    // As it was written: 0x10 and 007 keep their form.
    return String(typeof this.#node.value === 'string' ? this.#node.value : (this.#node.source ?? this.#node.value));
  }

  integer(least: number, most: number): number {
    const value = isScalar(this.#node) ? this.#node.value : undefined;
    if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most)
      throw this.wrong(`a whole number from ${least} to ${most}`);
    return value;
  }

  flag(): boolean {
    const value = isScalar(this.#node) ? this.#node.value : undefined;
    if (typeof value !== 'boolean') throw this.wrong('true or false');
    return value;
  }

  /** The value as JSON text. */
  json(): string {
    try {
      return JSON.stringify(this.#node?.toJS(this.#source.document, { maxAliasCount: 100 }) ?? null);
    } catch {
      // It refers to itself, or expands to too many values.
      throw this.wrong('a value without such references');
    }
  }

  wrong(expected: string): InputError {
    const text = this.kind === 'nothing' ? 'empty' : isScalar(this.#node) ? JSON.stringify(this.#node.value) : `a ${this.kind}`;
    return this.wrongAt(`${this.#what} is ${text.length > 60 ? `${text.slice(0, 57)}...` : text}; it has to be ${expected}`);
  }

  wrongAt(message: string): InputError {
    return new InputError('CONTENT', message, this.place);
  }
}

/** Limit of the length of a file written by hand. */
const MOST_CHARACTERS = 2 ** 20;

/** Limit of nesting, beyond which the library runs out of stack. */
function parseOrRefuse(text: string, what: string, lines: LineCounter): Document {
  try {
    // The library's own check of keys takes time that grows with their number squared.
    return parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: false });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new InputError('TOO_LARGE', `${what} is nested too deeply`, { cause: error });
  }
}

/** The first key that a mapping has twice. */
function repeatedKey(document: Document): { readonly key: string; readonly offset: number } | undefined {
  let found: { key: string; offset: number } | undefined;
  visit(document, {
    Map(_, map: YAMLMap) {
      const keys = new Set<unknown>();
      for (const { key } of map.items) {
        if (!isScalar(key)) continue;
        if (keys.has(key.value)) {
          found = { key: String(key.value), offset: key.range?.[0] ?? 0 };
          return visit.BREAK;
        }
        keys.add(key.value);
      }
      return undefined;
    },
  });
  return found;
}

interface Source {
  readonly document: Document;
  readonly lines: LineCounter;
}
