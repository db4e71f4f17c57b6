/** Evidence of an answer: nested numbers and names, as in JSON. */
export type Evidence = string | number | boolean | null | readonly Evidence[] | { readonly [name: string]: Evidence };

/** The answer to one question. A plain value: `JSON.stringify` writes it. */
export interface Answer {
  /** Topic of the question that it answers. */
  readonly about: Topic;
  /** The answer in one line. */
  readonly title: string;
  /** Whole sentences, the most important first. */
  readonly sentences: readonly string[];
  /** The numbers in the sentences. */
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
