import { nearestName } from '../../../suggest.js';
import { collectivePhrases, conceptPhrases, isPlain } from './vocabulary.js';

/** Words of the vocabulary, without the patterns around them. */
const knownWords: ReadonlySet<string> = new Set(
  [...Object.values(conceptPhrases), ...collectivePhrases.map(([, phrases]) => phrases)].flatMap(
    (phrases) => phrases.replaceAll(/\(([a-z|]*)\)\??/g, '').match(/[a-z]{3,}/g) ?? [],
  ),
);

const domainWords = [
  'channels',
  'channel',
  'order',
  'rails',
  'crossed',
  'limits',
  'bottleneck',
  'flips',
  'choice',
  'connected',
  'between',
  'help',
  'faster',
  'bandwidth',
  'busbw',
  'algbw',
  'latency',
  'ring',
  'rings',
  'tree',
  'nvls',
  'nvlstree',
  'collnet',
  'simple',
  'll128',
  'gpudirect',
  'allreduce',
  'all_reduce',
  'allgather',
  'all_gather',
  'alltoall',
  'reducescatter',
  'reduce_scatter',
  'sendrecv',
  'broadcast',
  'reduce',
  'expected',
  'improve',
  'network',
];

/** The text with misspelt words replaced by the nearest known ones. */
export function corrected(text: string): string {
  return text
    .toLowerCase()
    .replace(/[a-z_]{4,}/g, (word) =>
      isPlain(word) || knownWords.has(word) || domainWords.includes(word) ? word : (nearestName(word, domainWords) ?? word),
    );
}

/** Least share of plain or known words in a text of four words or more. */
const LEAST_KNOWN = 0.4;

/** False for a text of another language or another subject: most of its words are unknown. */
export function isEnglish(text: string): boolean {
  const letters = text.match(/\p{L}/gu) ?? [];
  const foreign = letters.filter((letter) => !/[a-z]/i.test(letter) && !/[µμ]/.test(letter));
  if (foreign.length > 0.2 * letters.length) return false;
  const words = (text.toLowerCase().match(/[a-z][a-z']*/g) ?? []).filter((word) => word.length > 1);
  if (words.length < 4) return true;
  const known = words.filter((word) => isPlain(word) || isKnown(word));
  return known.length >= LEAST_KNOWN * words.length;
}

function isKnown(word: string): boolean {
  return (
    knownWords.has(word) ||
    domainWords.includes(word) ||
    [...knownWords].some((known) => known.length > 4 && word.startsWith(known))
  );
}
