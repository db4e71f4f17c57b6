import { ncclVariables } from '../../nccl-variables.js';
import { parameterTable } from '../../parameters.js';
import { variableMeanings } from '../../variable-meanings.js';
import { algorithms, protocols } from '../../tuning/names.js';
import { type Intent, intents, type Sign } from './intents.js';
import { readSigns } from './parse.js';
import { phrasePattern } from './phrases.js';
import { corrected } from './spelling.js';
import { conceptPhrases, isPlain } from './vocabulary.js';

/** Examples of questions, one for each way to ask, with what the answer gives. */
export const questionForms: readonly Pick<Intent, 'asks' | 'example' | 'purpose'>[] = intents.map(
  ({ asks, example, purpose }) => ({ asks, example, purpose }),
);

/** Examples that have most in common with a text that is not understood, the nearest first, each of another subject. */
export function nearestQuestions(text: string, most = 3): readonly string[] {
  const fixed = corrected(text);
  const { signs } = readSigns(fixed);
  const words = new Set(fixed.match(/[a-z0-9_]{3,}/g) ?? []);
  const ranked = intents
    .map((intent, place) => ({ ...intent, place, score: signScore(intent, signs) + wordScore(intent, words) }))
    .sort((a, b) => b.score - a.score || order(a) - order(b) || a.place - b.place);
  return ranked
    .filter(({ asks }, index) => ranked.findIndex((other) => other.asks === asks) === index)
    .slice(0, most)
    .map(({ example }) => example);
}

const failures = phrasePattern(conceptPhrases.broken);

/** Advice for a question about a failure, which no plan explains. */
export function adviceOnFailures(text: string): string | undefined {
  return text.toLowerCase().search(failures) < 0
    ? undefined
    : "an error, a crash, a lost rank or a wrong result shows in the job's own output: tccl diagnose FOLDER reads logs and outputs, and names the cause; tccl watch looks at a job that runs";
}

/** The largest part of the signs of one way to ask that is there. */
function signScore({ when }: Intent, signs: ReadonlySet<Sign>): number {
  return Math.max(
    ...when.map((groups) => groups.filter((group) => group.some((sign) => signs.has(sign))).length / groups.length),
  );
}

function wordScore({ example, purpose }: Intent, words: ReadonlySet<string>): number {
  const wordsOf = (text: string) => new Set(text.toLowerCase().match(/[a-z0-9_]{3,}/g) ?? []);
  const [asked, answered] = [wordsOf(example), wordsOf(purpose)];
  let score = 0;
  for (const word of words) if (!isPlain(word)) score += asked.has(word) ? 0.5 : answered.has(word) ? 0.2 : 0;
  return score;
}

/** Questions that are asked most come first where nothing else decides. */
const frequentFirst = [
  'what limits',
  'what busbw should I expect',
  'is 365 GB/s good for all_reduce',
  'what would help all_reduce 1G',
  'what if one NIC is down',
];

function order({ example }: Intent): number {
  const place = frequentFirst.indexOf(example);
  return place < 0 ? frequentFirst.length : place;
}

/** A way to go on with a question that is being written. */
export interface Completion {
  readonly kind: 'question' | 'collective' | 'algorithm' | 'protocol' | 'variable';
  /** The whole text with this completion. */
  readonly text: string;
  readonly detail: string;
}

const collectiveNames = [
  'all_reduce',
  'all_gather',
  'reduce_scatter',
  'alltoall',
  'send/recv',
  'broadcast',
  'reduce',
  'gather',
  'scatter',
];

/** Most completions of one kind. */
const MOST_ALIKE = 12;

/**
 * Completions of a question that is being written: examples that begin as it does, then names for its last word.
 *
 *     completeQuestion('what if NCCL_CROSS')[0]      // { kind: 'variable', text: 'what if NCCL_CROSS_NIC', … }
 */
export function completeQuestion(text: string): Completion[] {
  const lower = text.toLowerCase();
  const examples = questionForms
    .filter(({ example }) => example.toLowerCase().startsWith(lower.trimStart()))
    .map(({ example, purpose }): Completion => ({ kind: 'question', text: example, detail: purpose }));
  const word = /[\w/]+$/.exec(text)?.[0] ?? '';
  const before = text.slice(0, text.length - word.length);
  const names = (kind: Completion['kind'], all: readonly (readonly [name: string, detail: string])[]) =>
    word.length < 2
      ? []
      : all
          .filter(([name]) => name.toLowerCase().startsWith(word.toLowerCase()) && name !== word)
          .slice(0, MOST_ALIKE)
          .map(([name, detail]): Completion => ({ kind, text: `${before}${name}`, detail }));
  return [
    ...examples,
    ...names('variable', variableNames()),
    ...names(
      'collective',
      collectiveNames.map((name) => [name, 'a call'] as const),
    ),
    ...names(
      'algorithm',
      algorithms.map((name) => [name, 'an algorithm'] as const),
    ),
    ...names(
      'protocol',
      protocols.map((name) => [name, 'a protocol'] as const),
    ),
  ];
}

/** Variables that plans depend on first, each with its meaning. */
function variableNames(): readonly (readonly [string, string])[] {
  const planned = parameterTable.map(({ variable, doc }) => [variable, doc] as const);
  const known = new Set(planned.map(([name]) => name));
  return [
    ...planned,
    ...[...ncclVariables]
      .filter((name) => !known.has(name))
      .map((name) => [name, variableMeanings.get(name) ?? 'a variable of NCCL'] as const),
  ];
}
