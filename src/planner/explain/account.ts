import { TcclError } from '../../errors.js';
import { named } from '../plan/machine-edits.js';
import type { Draft } from './answer.js';
import { isAsItIs, rootsOf } from './counterfactual/apply.js';
import { nearestQuestions } from './grammar/complete.js';
import type { Counterfactual } from './counterfactual/counterfactual.js';
import type { Ask, Mention, Part, Question } from './grammar/question.js';
import { type Situation, titleOf } from './situation.js';

/** Number of things of each part that an answer uses; `all` stands for any number. */
type Uses = Readonly<Partial<Record<Part, number | 'all'>>>;

/** Parts that answers use, beside statements that are true of the cluster. Answers to other subjects give no account. */
const uses: Readonly<Partial<Record<Ask, Uses>>> = {
  bandwidth: { call: 1, size: 'all', way: 1, nominal: 'all' },
  judge: { call: 1, size: 1, figure: 1, nominal: 'all' },
  exceeds: { call: 1, size: 'all', figure: 'all', nominal: 'all', way: 'all' },
  scaling: { call: 1, size: 1, count: 'all', nominal: 'all' },
  time: { call: 1, size: 1 },
  choice: { call: 1, size: 1, way: 2 },
  limits: { call: 1, size: 1, nominal: 'all' },
  flips: { call: 1, size: 'all' },
  channels: { call: 1, size: 1, count: 'all' },
  connection: { id: 'all' },
  nic: { id: 'all' },
  gdr: { id: 'all' },
  calls: { call: 'all', size: 1, figure: 'all' },
  help: { call: 1, size: 'all', figure: 1 },
  change: { call: 1, size: 'all', way: 'all', count: 'all', hardware: 'all', figure: 0, id: 'all' },
};

/** Subjects whose figures are about the call and the machine that the question states, and about no others. */
const judged: Readonly<Partial<Record<Ask, readonly Part[]>>> = {
  judge: ['figure', 'count', 'hardware', 'way', 'number', 'id'],
  bandwidth: ['count', 'hardware'],
  time: ['count', 'hardware'],
  calls: ['count', 'hardware'],
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
  if (own === undefined) return { deciding: [], others: [] };
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
  const decides = judged[question.asks] ?? [];
  const textsOf = (isDeciding: boolean) =>
    unused.filter(({ part }) => decides.includes(part) === isDeciding).map(({ text }) => `«${text}»`);
  return { deciding: textsOf(true), others: textsOf(false) };
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

/** Refuses an answer that would be about another machine or call than the question. */
export function refusal(there: Situation, { text }: Question, deciding: readonly string[]): Draft {
  const what = deciding.join(', ');
  return {
    title: `I cannot tell: the answer would leave out ${what}`,
    sentences: [
      `The question states ${what}, which is neither so on ${titleOf(there)} nor a part of the question that I understand; figures for something else would lead astray.`,
      'This would tell: give the machine that is meant (nvidia-smi topo -m > machine.txt, or a name of tccl topo list), and one figure with its call, size and number of nodes, as is 200 GB/s good for all_reduce of 1 GiB on 2 nodes. A table of nccl-tests says all of it: tccl expect CLUSTER RESULTS.',
      `The nearest questions that can be answered: ${nearestQuestions(text).join('; ')}.`,
    ],
    evidence: { unused: [...deciding] },
  };
}
