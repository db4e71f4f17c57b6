/** Evidence of an answer: numbers and names, nested, as in JSON. */
export type Evidence = string | number | boolean | null | readonly Evidence[] | { readonly [name: string]: Evidence };

/** The answer to one question. A plain value: `JSON.stringify` writes it. */
export interface Answer {
  /** Topic of the question that it answers. */
  readonly about: Topic;
  /** The answer in one line. */
  readonly title: string;
  /** Whole sentences, the most telling first. */
  readonly sentences: readonly string[];
  /** The numbers that the sentences speak of. */
  readonly evidence: { readonly [name: string]: Evidence };
}

/** Topics of questions. */
export type Topic =
  | 'limits'
  | 'channels'
  | 'rings'
  | 'nic'
  | 'connection'
  | 'choice'
  | 'time'
  | 'absence'
  | 'gdr'
  | 'pxn'
  | 'flips'
  | 'rails'
  | 'variable'
  | 'help';
