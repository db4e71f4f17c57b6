import type { Ask } from './grammar/question.js';
import type { Reference } from './references.js';

/** Evidence of an answer: nested numbers and names, as in JSON. */
export type Evidence = string | number | boolean | null | readonly Evidence[] | { readonly [name: string]: Evidence };

/** The answer to one question. A plain value: `JSON.stringify` writes it. */
export interface Answer {
  /** Subject of the question that it answers. */
  readonly asks: Ask;
  /** The answer in one line. */
  readonly title: string;
  /** Whole sentences, the most important first. */
  readonly lines: readonly Line[];
  /** The numbers in the lines. */
  readonly evidence: { readonly [name: string]: Evidence };
}

/** A sentence, and the things of the plan that it names. */
export interface Line {
  readonly text: string;
  readonly references: readonly Reference[];
}

/** An answer before its references are found. */
export interface Draft {
  readonly title: string;
  readonly sentences: readonly string[];
  readonly evidence: Answer['evidence'];
}
