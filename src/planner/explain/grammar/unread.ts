import { intents, type Sign } from './intents.js';
import { phrasePattern } from './phrases.js';
import type { Ask } from './question.js';
import { type Concept, conceptPhrases, isPlain, isWeighed } from './vocabulary.js';

/** Ideas that any answer may leave aside: they change how a question is put, not what it is about. */
const light: ReadonlySet<Concept> = new Set<Concept>([
  'why',
  'what',
  'howMany',
  'is',
  'does',
  'used',
  'choose',
  'good',
  'expect',
  'negation',
  'nodes',
  'mean',
  'connected',
  'within',
  'between',
  'oneNode',
  'countsAs',
  'aware',
  'observe',
  'control',
  'network',
  'optionAsked',
]);

/** Ideas that answers which compare plans, or hold for all, may leave aside as well. */
const figures: ReadonlySet<Concept> = new Set<Concept>(['bandwidth', 'speed', 'time', 'slow', 'exceed', 'improve']);
const aboveFigures: ReadonlySet<Ask> = new Set<Ask>(['change', 'variable', 'upgrade', 'fact', 'unclear', 'flips']);

const patterns = new Map((Object.keys(conceptPhrases) as Concept[]).map((name) => [name, phrasePattern(conceptPhrases[name])]));

/** Words of a question: all that say something, and those of them that nothing reads. */
export interface WordCount {
  readonly content: readonly string[];
  readonly unread: readonly string[];
}

/**
 * Counts the words that neither the subject of a question nor its names and numbers use.
 *
 * @param text the question in lower case
 * @param rest the same without names and numbers, which are spaces
 * @param own texts and patterns that the subject has read beside its ideas
 */
export function wordsOf(text: string, rest: string, asks: Ask, own: readonly string[]): WordCount {
  const ideas = new Set<Sign>(intents.filter((each) => each.asks === asks).flatMap(({ when }) => when.flat(2)));
  let left = rest;
  for (const [name, pattern] of patterns)
    if (light.has(name) || ideas.has(name) || (figures.has(name) && aboveFigures.has(asks)))
      left = left.replaceAll(pattern, (match) => ' '.repeat(match.length));
  const literals = own.flatMap(literalsOf);
  const isRead = (word: string) =>
    literals.some(({ stem, isWhole }) => (isWhole ? word.replace(/\d+$/, '') === stem : word.startsWith(stem)));
  return { content: contentIn(text), unread: [...new Set(contentIn(left).filter((word) => !isRead(word)))] };
}

function contentIn(text: string): string[] {
  return (text.match(/[a-z][a-z0-9]*/g) ?? []).filter((word) => word.length > 1 && (isWeighed(word) || !isPlain(word)));
}

/** Words of a pattern; one that goes on with other letters is a beginning. */
function literalsOf(pattern: string): { readonly stem: string; readonly isWhole: boolean }[] {
  const plain = pattern.replaceAll(/\\[bsd]/g, ' ');
  // `over ?subscribed` is one word or two.
  return [plain, plain.replaceAll('[ _-]?', '')].flatMap((each) =>
    [...each.replaceAll(/\[[^\]]*\]/g, (set) => (set.includes('_') ? ' ' : '(')).matchAll(/([a-z][a-z0-9]*)([\\(?]?)/g)].map(
      ({ 1: word = '', 2: more = '' }) => ({
        stem: more === '?' ? word.slice(0, -1) : word,
        isWhole: more === '' || word.length < 3,
      }),
    ),
  );
}
