import { ncclLimits } from './schema.js';
import type { NoteEffect } from './notes.js';

/**
 * Imitates NCCL's own hand-written tokenizer (`xmlGetNode` in graph/xml.cc). It splits a tag at
 * single spaces only, knows no tab, and copies values as they stand.
 */
export interface LexicalTrouble {
  readonly effect: NoteEffect;
  readonly what: string;
}

/** A start tag that NCCL's tokenizer and every XML parser read in the same way. */
const plainTag = /^<[^\s=/>]+(?: [^\s=/>"']+=(?:"[^"&<]*"|'[^'&<]*'))*[ ]?\/?>$/;

/** Longer tags skip the expression, whose engine keeps a stack. */
const PLAIN_TAG_LENGTH = 4096;

/** `&amp;` or `&#38;`; NCCL and {@link parseXml} read any other & literally. */
const entity = /^&#?[A-Za-z0-9]+;/;
const LONGEST_ENTITY = 40;

/** Attributes that NCCL's tokenizer reads in a start tag, given from `<` to `>`. */
export function startTagTroubles(tag: string): LexicalTrouble[] {
  if (tag.length <= PLAIN_TAG_LENGTH && plainTag.test(tag)) return [];
  const found = new Map<string, LexicalTrouble>();
  const report = (effect: NoteEffect, what: string) => found.set(what, { effect, what });
  let quote = '';
  for (let index = 0; index < tag.length; index++) {
    const character = tag[index] ?? '';
    if (quote !== '') {
      if (character === quote) quote = '';
      else if (character === '&' && entity.test(tag.slice(index, index + LONGEST_ENTITY)))
        report('misread', 'an entity (&…;) in a value, which it would not decode');
    } else if (character === '"' || character === "'") quote = character;
    else if (character === '\n' || character === '\r') report('refuse', 'a line break inside a tag');
    else if (character === '\t') report('refuse', 'a tab inside a tag');
    else if (character === ' ') {
      const next = tag[index + 1];
      if (next === '=' || tag[index - 1] === '=') report('refuse', 'a space beside the = of an attribute');
      else if (next === ' ') report('misread', 'two spaces between attributes, where it sees an attribute without name');
    }
  }
  return [...found.values()];
}

/** The same for an end tag, given from `<` to `>`. */
export function endTagTrouble(tag: string): LexicalTrouble | undefined {
  return /\s/.test(tag) ? { effect: 'refuse', what: 'white space inside an end tag' } : undefined;
}

/** The same for text between two tags, or before the first or after the last. */
export function textTrouble(text: string): LexicalTrouble | undefined {
  if (/[^\s]/.test(text)) return { effect: 'refuse', what: 'text between elements' };
  if (text.includes('\t')) return { effect: 'refuse', what: 'a tab between elements' };
  return undefined;
}

/** The same for a comment, given without its `<!--` and `-->`. NCCL reads its first word as the name of a tag. */
export function commentTrouble(comment: string): LexicalTrouble | undefined {
  const firstWord = /^[^ />\n\r]*/.exec(comment.slice(0, ncclLimits.valueLength + 1))?.[0] ?? '';
  if (firstWord.includes('=')) return { effect: 'refuse', what: 'a comment whose first word holds a =' };
  if (firstWord.length > ncclLimits.valueLength - 3) {
    return { effect: 'refuse', what: `a comment whose first word is longer than ${ncclLimits.valueLength - 3} characters` };
  }
  return undefined;
}
