import type { Counterfactual } from '../counterfactual/counterfactual.js';
import type { Mention, Part } from './question.js';

/**
 * A pattern of phrases as in vocabulary.ts: whole words, and a space stands for spaces, hyphens and underlines.
 *
 *     phrasePattern('all ?reduces?')      // all-reduce, all_reduce, allreduces
 */
export function phrasePattern(phrases: string): RegExp {
  const spaced = phrases.replaceAll(' ?', '[\\s_-]?').replaceAll(' ', '[\\s_-]+');
  return new RegExp(`(?<![a-z0-9_])(?:${spaced})(?![a-z0-9])`, 'g');
}

/** Patterns of a table, compiled once. */
export function phraseTable<Name>(
  table: readonly (readonly [Name, string])[],
): readonly { readonly name: Name; readonly pattern: RegExp }[] {
  return table.map(([name, phrases]) => ({ name, pattern: phrasePattern(phrases) }));
}

/** Text of a question, of which parts are taken out as they are understood. */
export class Words {
  /** Parts of the text that were noted, in the order of the grammar. */
  readonly mentions: Mention[] = [];
  #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** The text that is left, in lower case; parts that were taken are spaces. */
  get rest(): string {
    return this.#text.toLowerCase();
  }

  /** The text that is left, as it was written. */
  get written(): string {
    return this.#text;
  }

  /** Notes a statement of the question, for the account of what its answer used. */
  mention(part: Part, text: string, state?: Counterfactual): void {
    this.mentions.push({ part, text: text.trim(), ...(state === undefined ? {} : { state }) });
  }

  /**
   * Takes all matches out of the text.
   *
   * @param use of a match; false leaves it in the text
   * @param part as which the matches that are used are noted
   */
  take(pattern: RegExp, use: (match: RegExpExecArray) => boolean, part?: Part): void {
    const flags = pattern.flags.includes('g') ? pattern.flags : `${pattern.flags}g`;
    for (const match of this.#text.matchAll(new RegExp(pattern.source, flags.includes('i') ? flags : `${flags}i`))) {
      if (!use(match)) continue;
      if (part !== undefined) this.mention(part, match[0]);
      this.#text = `${this.#text.slice(0, match.index)}${' '.repeat(match[0].length)}${this.#text.slice(match.index + match[0].length)}`;
    }
  }

  has(pattern: RegExp): boolean {
    pattern.lastIndex = 0;
    return pattern.test(this.rest);
  }
}

/** The whole numbers in a text, in their order. */
export function numbersIn(text = ''): number[] {
  return (text.match(/\d+/g) ?? []).map(Number);
}

/** A number in digits or as a word. */
export const NUMBER = '\\d{1,6}|one|a single|single|two|dual|three|four|quad|five|six|seven|eight|sixteen';

const numberWords: Readonly<Record<string, number>> = {
  one: 1,
  single: 1,
  two: 2,
  dual: 2,
  three: 3,
  four: 4,
  quad: 4,
  five: 5,
  six: 6,
  seven: 7,
  eight: 8,
  sixteen: 16,
};

export function countOf(digits: string): number {
  return numberWords[digits.toLowerCase().replace(/^a /, '')] ?? Number(digits);
}
