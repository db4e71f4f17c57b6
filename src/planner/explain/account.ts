import { TcclError } from '../../errors.js';
import { named } from '../plan/machine-edits.js';
import type { Draft } from './answer.js';
import { isAsItIs, rootsOf } from './counterfactual/apply.js';
import { adviceOnFailures, nearestQuestions, questionForms } from './grammar/complete.js';
import type { Counterfactual } from './counterfactual/counterfactual.js';
import type { Ask, Mention, Part, Question } from './grammar/question.js';
import { type Situation, titleOf } from './situation.js';

/** Number of things of each part that an answer uses; `all` stands for any number. */
type Uses = Readonly<Partial<Record<Part, number | 'all'>>>;

/** Parts that answers use, beside statements that are true of the cluster. */
const uses: Readonly<Record<Ask, Uses>> = {
  bandwidth: { call: 1, size: 'all', way: 1, nominal: 'all' },
  judge: { call: 1, size: 1, figure: 1, nominal: 'all' },
  exceeds: { call: 1, size: 'all', figure: 'all', nominal: 'all', way: 'all' },
  scaling: { call: 1, size: 1, count: 'all', nominal: 'all', figure: 'all', way: 'all' },
  time: { call: 1, size: 1 },
  choice: { call: 1, size: 1, way: 2 },
  limits: { call: 1, size: 1, nominal: 'all' },
  flips: { call: 1, size: 'all', way: 'all' },
  channels: { call: 1, size: 1, count: 'all', way: 'all' },
  connection: { id: 'all' },
  nic: { id: 'all' },
  gdr: { id: 'all' },
  pxn: {},
  rails: {},
  rings: { id: 'all', way: 'all', number: 'all' },
  nodes: { count: 'all' },
  use: { way: 1, call: 1, count: 'all' },
  calls: { call: 'all', size: 1, figure: 'all' },
  help: { call: 1, size: 'all', figure: 1 },
  change: { call: 1, size: 'all', way: 'all', count: 'all', hardware: 'all', figure: 0, id: 'all' },
  variable: { call: 1, size: 'all', way: 'all' },
  upgrade: { call: 1, size: 'all', way: 'all', software: 'all' },
  control: { call: 'all', way: 'all', id: 'all', count: 'all', interface: 'all' },
  observe: { call: 1, way: 'all', count: 'all' },
  aware: { count: 'all' },
  hang: { call: 1, size: 'all' },
  meaning: { way: 'all' },
  // Facts hold for any plan, and `unclear` judges nothing.
  fact: {
    call: 'all',
    size: 'all',
    way: 'all',
    count: 'all',
    hardware: 'all',
    id: 'all',
    interface: 'all',
    nominal: 'all',
    number: 'all',
  },
  unclear: {
    call: 'all',
    size: 'all',
    way: 'all',
    count: 'all',
    hardware: 'all',
    id: 'all',
    figure: 'all',
    nominal: 'all',
    number: 'all',
  },
};

/** Parts without which an answer would be about something else than the question. */
const ofThePlan: readonly Part[] = ['figure', 'count', 'hardware', 'number', 'id'];
const judged: Readonly<Partial<Record<Ask, readonly Part[]>>> = {
  judge: [...ofThePlan, 'way'],
  limits: ['figure', 'hardware', 'number', 'id'],
  scaling: ['hardware', 'id'],
  variable: ['id', 'figure'],
  control: ['figure'],
  change: ['figure'],
  help: ['id', 'number', 'hardware'],
  fact: [],
};

/** Statements of a question that its answer did not use: those that decide it, and others. */
export interface Account {
  readonly deciding: readonly string[];
  readonly others: readonly string[];
}

/**
 * Gives account of what a question states.
 *
 * @param there the cluster with the settings of the question
 */
export function accountOf(there: Situation, question: Question): Account {
  const own = uses[question.asks];
  const left = new Map<Part, number>();
  const isUsed = (mention: Mention): boolean => {
    if (mention.state !== undefined && isTrue(there, question, mention.state)) return true;
    const most = own[mention.part] ?? 0;
    if (most === 'all') return true;
    const before = left.get(mention.part) ?? 0;
    left.set(mention.part, before + 1);
    return before < most;
  };
  const seen = new Set<string>();
  const unused = question.mentions.filter((mention) => {
    const key = `${mention.part} ${mention.text.toLowerCase()}`;
    const isNew = !seen.has(key);
    seen.add(key);
    return isNew && !isUsed(mention);
  });
  const decides = judged[question.asks] ?? ofThePlan;
  const isOutweighed = wordsDecide(question);
  const textsOf = (isDeciding: boolean) => [
    ...unused.filter(({ part }) => decides.includes(part) === isDeciding).map(({ text }) => text),
    ...(isOutweighed === isDeciding ? question.unread : []),
  ];
  return { deciding: textsOf(true), others: textsOf(false) };
}

/** An answer may leave aside words that nothing reads, but not a third of the question. */
function wordsDecide({ asks, content, unread }: Question): boolean {
  // What makes a job wait is asked of its output, whatever the words.
  if (asks === 'hang' || asks === 'unclear') return false;
  return unread.length > (asks === 'fact' ? 1 : 0) && 3 * unread.length >= content.length;
}

/** True if the question compares what it states with something else, or if the cluster is so. */
function isTrue(there: Situation, { changes, variants }: Question, state: Counterfactual): boolean {
  const compared = [...changes, ...variants.map((variant) => variant.state)];
  return compared.some((change) => JSON.stringify(change) === JSON.stringify(state)) || holds(there, state);
}

function holds(there: Situation, state: Counterfactual): boolean {
  try {
    if (isAsItIs(there, state)) return true;
  } catch (error) {
    if (!(error instanceof TcclError)) throw error;
    return false;
  }
  const { nNodes, nRanks } = there.plan.nodes;
  if (state.kind === 'nodes') return state.count === nNodes;
  if (state.kind === 'gpus' || state.kind === 'ranks')
    return state.count === nRanks || rootsOf(there).every((root) => named(root, 'gpu').length === state.count);
  if (state.kind === 'nics')
    return rootsOf(there).every((root) => [1, nNodes].some((hosts) => named(root, 'net').length * hosts === state.count));
  return false;
}

/** Most parts that a refusal names. */
const MOST_NAMED = 6;

/** Refuses an answer that would be about something else than the question. */
export function refusal(there: Situation, { asks, text, unread }: Question, deciding: readonly string[]): Draft {
  const named = deciding.slice(0, MOST_NAMED).map((each) => `«${each}»`);
  const what = named.join(', ') + (deciding.length > MOST_NAMED ? ' …' : '');
  const purpose = questionForms.find((form) => form.asks === asks)?.purpose ?? asks;
  const isByWords = deciding.every((each) => unread.includes(each));
  const failure = adviceOnFailures(text);
  return {
    title: `I cannot tell: the answer would leave out ${what}`,
    sentences: [
      `I understood a question about this: ${purpose}. ${isByWords ? `I did not understand ${what}` : `The question states ${what}, which is neither so on ${titleOf(there)} nor a part of the question that I understand`}; an answer to something else would lead astray.`,
      isByWords
        ? 'This would tell: the same question without what is no part of it.'
        : 'This would tell: give the machine that is meant (nvidia-smi topo -m > machine.txt, or a name of tccl topo list), and one figure with its call, size and number of nodes, as is 200 GB/s good for all_reduce of 1 GiB on 2 nodes. A table of nccl-tests says all of it: tccl expect CLUSTER RESULTS.',
      ...(failure === undefined ? [] : [`${failure}.`]),
      `The nearest questions that can be answered: ${nearestQuestions(text).join('; ')}.`,
    ],
    evidence: { unused: [...deciding] },
  };
}
