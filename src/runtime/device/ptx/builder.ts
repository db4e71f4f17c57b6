import { instructions, type Instruction, type Kind } from './instructions.js';
import type { Level } from './targets.js';

/** A virtual register. The compiler refuses one of a kind that an instruction does not take. */
export interface Register<K extends Kind = Kind> {
  readonly kind: K;
  readonly name: string;
}

export type Predicate = Register<'pred'>;
export type Word = Register<'b32'>;
export type Double = Register<'b64'>;
/** A register with elements: one of 64 bits, or as many smaller ones as fit into 32. */
export type Lane = Word | Double;

/** A source: a register, or an integer where the kind has them. */
export type Operand<K extends Kind> = Register<K> | (K extends 'b32' ? number : K extends 'b64' ? number | bigint : never);

type Operands<Kinds> = { [I in keyof Kinds]: Kinds[I] extends Kind ? Operand<Kinds[I]> : never };
type Result<I extends Instruction> = (typeof instructions)[I][0];
type Sources<I extends Instruction> = (typeof instructions)[I] extends readonly [Kind, ...infer Rest] ? Operands<Rest> : never;

/** A place in memory: bytes after the address in a register, which has 64 bits outside shared memory. */
export type Address =
  | { readonly space: 'global' | 'param'; readonly base: Double; readonly offset?: number }
  | { readonly space: 'shared'; readonly base: Word; readonly offset?: number };

/**
 * Ordering of an access (PTX ISA, "Memory Consistency Model"): `weak` ones order nothing; the others are atomic and seen by
 * the whole system, other GPUs and the host included.
 */
export type Order = 'weak' | 'relaxed' | 'acquire' | 'release';

/** Shape of an access: bits of an element, elements. A vector is so many accesses, in no order. */
export interface Shape {
  readonly bits: 8 | 16 | 32 | 64;
  readonly count?: 1 | 2 | 4;
}

const prefixes: Record<Kind, string> = { pred: '%p', b16: '%h', b32: '%r', b64: '%d' };

/** Writes the body of one kernel, instruction by instruction. */
export class Builder {
  /** The oldest architecture that the kernel is for, which decides the instructions that exist. */
  readonly level: Level;
  /** This thread in its block, the block in the grid, and how many there are of each. */
  readonly thread: Word;
  readonly threads: Word;
  readonly block: Word;
  readonly blocks: Word;
  readonly #lines: string[] = [];
  readonly #counts: Record<Kind, number> = { pred: 0, b16: 0, b32: 0, b64: 0 };
  #labels = 0;

  constructor(level: Level) {
    this.level = level;
    this.thread = this.#special('%tid.x');
    this.threads = this.#special('%ntid.x');
    this.block = this.#special('%ctaid.x');
    this.blocks = this.#special('%nctaid.x');
  }

  register<K extends Kind>(kind: K): Register<K> {
    return { kind, name: `${prefixes[kind]}${this.#counts[kind]++}` };
  }

  /** Appends an instruction whose result is a new register. */
  make<I extends Instruction>(instruction: I, ...sources: Sources<I>): Register<Result<I>> {
    const result = this.register(instructions[instruction][0]);
    this.into(result, instruction, ...sources);
    return result;
  }

  /** Appends an instruction that changes a register. */
  into<I extends Instruction>(result: Register<Result<I>>, instruction: I, ...sources: Sources<I>): void {
    this.#emit(instruction, [result, ...sources].map(textOf).join(', '));
  }

  /** Joins two halves to a word, the low one first. */
  join(low: Register<'b16'>, high: Register<'b16'>): Word {
    const result = this.register('b32');
    this.#emit('mov.b32', `${result.name}, {${low.name}, ${high.name}}`);
    return result;
  }

  /** Joins two words, the low one first. */
  joinWords(low: Word, high: Word): Double {
    const result = this.register('b64');
    this.#emit('mov.b64', `${result.name}, {${low.name}, ${high.name}}`);
    return result;
  }

  /** The two halves of a word, the low one first. */
  split(word: Word): [Register<'b16'>, Register<'b16'>] {
    const halves = [this.register('b16'), this.register('b16')] as [Register<'b16'>, Register<'b16'>];
    this.#emit('mov.b32', `{${halves[0].name}, ${halves[1].name}}, ${word.name}`);
    return halves;
  }

  /** The two words of a double, the low one first. */
  splitWords(double: Double): [Word, Word] {
    const words = [this.register('b32'), this.register('b32')] as [Word, Word];
    this.#emit('mov.b64', `{${words[0].name}, ${words[1].name}}, ${double.name}`);
    return words;
  }

  /** Address of a parameter of the kernel, or of a shared variable of the module. */
  addressOf(kind: 'b64', name: string): Double;
  addressOf(kind: 'b32', name: string): Word;
  addressOf(kind: 'b32' | 'b64', name: string): Word | Double {
    const result = this.register(kind);
    this.#emit(`mov.${kind}`, `${result.name}, ${name}`);
    return result;
  }

  // ── memory ────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Loads into registers of 64 bits, or of 32 bits for all smaller elements, which are extended by zeros. */
  load(address: Address, shape: Shape & { bits: 64 }, order?: Order): Double[];
  load(address: Address, shape: Shape & { bits: 8 | 16 | 32 }, order?: Order): Word[];
  load(address: Address, shape: Shape, order?: Order): (Word | Double)[];
  load(address: Address, { bits, count = 1 }: Shape, order: Order = 'weak'): (Word | Double)[] {
    const results = Array.from({ length: count }, () => this.register(bits === 64 ? 'b64' : 'b32'));
    this.#emit(`ld${qualifiers(address, order)}${vector(count)}.${element(bits)}`, `${list(results)}, ${place(address)}`);
    return results;
  }

  store(address: Address, bits: Shape['bits'], values: readonly (Word | Double)[], order: Order = 'weak'): void {
    this.#emit(`st${qualifiers(address, order)}${vector(values.length)}.${element(bits)}`, `${place(address)}, ${list(values)}`);
  }

  /** Reads a place of all members of a multicast object and combines them on the switch. */
  loadReduced(base: Double, offset: number, operation: string, registers: readonly (Word | Double)[]): void {
    const address: Address = { space: 'global', base, offset };
    this.#emit(`multimem.ld_reduce.relaxed.sys.global.${operation}`, `${list(registers)}, ${place(address)}`);
  }

  /** Writes to a place of all members. */
  storeMulticast(base: Double, offset: number, type: string, values: readonly (Word | Double)[]): void {
    const address: Address = { space: 'global', base, offset };
    this.#emit(`multimem.st.relaxed.sys.global.${type}`, `${place(address)}, ${list(values)}`);
  }

  /** Adds to a flag of all members, after all that this thread has seen or written. */
  addMulticast(base: Double, value: Double): void {
    this.#emit('multimem.red.release.sys.global.add.u64', `[${base.name}], ${value.name}`);
  }

  // ── control ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Executes `body` where the predicate holds. */
  when(predicate: Predicate, body: () => void): void {
    const end = this.#label();
    this.#emit(`@!${predicate.name} bra`, end);
    body();
    this.#place(end);
  }

  /** Executes the first body where the predicate holds, else the second. */
  either(predicate: Predicate, holds: () => void, fails: () => void): void {
    const [other, end] = [this.#label(), this.#label()];
    this.#emit(`@!${predicate.name} bra`, other);
    holds();
    this.#emit('bra', end);
    this.#place(other);
    fails();
    this.#place(end);
  }

  /** Repeats `body` while the predicate that `condition` computes holds. */
  while(condition: () => Predicate, body: () => void): void {
    const [start, end] = [this.#label(), this.#label()];
    this.#place(start);
    this.#emit(`@!${condition().name} bra`, end);
    body();
    this.#emit('bra', start);
    this.#place(end);
  }

  /** Repeats `body` until the predicate that it returns holds. */
  until(body: () => Predicate): void {
    const start = this.#label();
    this.#place(start);
    this.#emit(`@!${body().name} bra`, start);
  }

  /** Counts a word from `from` up to, not including, `end`. */
  count(from: number, end: Word, body: (index: Word) => void): void {
    const index = this.make('mov.b32', from);
    this.while(
      () => this.make('setp.lt.u32', index, end),
      () => {
        body(index);
        this.into(index, 'add.u32', index, 1);
      },
    );
  }

  /** Waits for all threads of the block; orders their accesses within it. */
  barrier(): void {
    this.#emit('bar.sync', '0');
  }

  /** The same; the result holds where `predicate` holds in any thread. */
  barrierAny(predicate: Predicate): Predicate {
    const result = this.register('pred');
    this.#emit('bar.red.or.pred', `${result.name}, 0, ${predicate.name}`);
    return result;
  }

  /** Ends the thread where the predicate holds. */
  leaveWhen(predicate: Predicate): void {
    this.#emit(`@${predicate.name} ret`);
  }

  /** A comment, for those who read the text. */
  note(text: string): void {
    this.#lines.push(`  // ${text}`);
  }

  /** The body so far, with the declarations of its registers. */
  text(): string {
    const declared = (Object.keys(prefixes) as Kind[])
      .filter((kind) => this.#counts[kind] > 0)
      .map((kind) => `  .reg .${kind} ${prefixes[kind]}<${this.#counts[kind]}>;\n`);
    return `${declared.join('')}${this.#lines.join('\n')}\n  ret;\n`;
  }

  /** Copies a register that the hardware sets, which other instructions do not take. */
  #special(name: string): Word {
    const result = this.register('b32');
    this.#emit('mov.b32', `${result.name}, ${name}`);
    return result;
  }

  #label(): string {
    return `L${this.#labels++}`;
  }

  #place(label: string): void {
    this.#lines.push(`${label}:`);
  }

  #emit(instruction: string, operands?: string): void {
    this.#lines.push(`  ${instruction}${operands === undefined ? '' : ` ${operands}`};`);
  }
}

const textOf = (operand: Operand<Kind>): string => (typeof operand === 'object' ? operand.name : operand.toString());
const list = (registers: readonly Register[]): string => {
  const names = registers.map(({ name }) => name).join(', ');
  return registers.length === 1 ? names : `{${names}}`;
};
const place = ({ base, offset = 0 }: Address): string => `[${base.name}${offset === 0 ? '' : `+${offset}`}]`;
const vector = (count: number): string => (count === 1 ? '' : `.v${count}`);
/** Loads of `b8` and `b16` take wider registers, too. */
const element = (bits: Shape['bits']): string => `b${bits}`;

function qualifiers({ space }: Address, order: Order): string {
  return order === 'weak' ? `.${space}` : `.${order}.sys.${space}`;
}
