import { GdrMode } from '../topology/paths/gdr.js';
import type { ScheduledCollective } from '../schedule/schedule.js';
import { parameterTable } from '../parameters.js';
import { accountOf, refusal } from './account.js';
import type { Answer, Draft } from './answer.js';
import { answerBandwidth, isModelled } from './answers/bandwidth.js';
import { answerCallChannels, answerChannels } from './answers/channels.js';
import { answerChange, callSentences, decisionSentences, effectOf } from './answers/change.js';
import { answerChoice } from './answers/choice.js';
import { answerCalls } from './answers/calls.js';
import { answerControl } from './answers/control.js';
import { answerFact } from './answers/fact.js';
import { answerConnection } from './answers/connection.js';
import { answerExceeds } from './answers/exceeds.js';
import { answerFlips } from './answers/flips.js';
import { answerGdr, answerPxn } from './answers/gdr.js';
import { answerAware } from './answers/aware.js';
import { answerHang } from './answers/hang.js';
import { answerObserve } from './answers/observe.js';
import { answerJudge } from './answers/judge.js';
import { answerCallLimits, answerLimits } from './answers/limits.js';
import { answerMeaning } from './answers/meaning.js';
import { answerNic, networkUse } from './answers/nic.js';
import { answerNodes } from './answers/nodes.js';
import { answerPairChannels } from './answers/pairs.js';
import { answerRails } from './answers/rails.js';
import { answerRings } from './answers/rings.js';
import { answerScaling } from './answers/scaling.js';
import { answerTime } from './answers/time.js';
import { answerUnclear } from './answers/unclear.js';
import { answerUpgrade } from './answers/upgrade.js';
import { answerUse } from './answers/use.js';
import { answerVariable } from './answers/variable.js';
import { answerWay } from './answers/way.js';
import { changedSubject, describeCounterfactual, isAsItIs } from './counterfactual/apply.js';
import type { Counterfactual } from './counterfactual/counterfactual.js';
import { list } from './format.js';
import type { Question } from './grammar/question.js';
import { answerHelp, type Progress, simulatesHelp, type Tried, tryChanges } from './help/try-changes.js';
import { referencesIn } from './references.js';
import { nodeViews, type Situation, situationWith, usesSearches } from './situation.js';

/** Limits and news of an answer that tries many plans: `what would help`, and causes of a slow measurement. */
export interface ExplainOptions {
  /** Asked before each further plan; false ends the search. By default all are tried. */
  readonly keepGoing?: () => boolean;
  readonly onProgress?: (progress: Progress) => void;
}

/**
 * Answers a question about a planned cluster.
 *
 *     const situation = situationOf({ hosts: [{ machine: root, count: 2 }] }, defaultParameters);
 *     for (const question of parseQuestions('why 16 channels')) explain(situation, question).lines
 *
 * @throws InvalidArgumentError where the question names a rank, NIC or channel that does not exist
 */
export function explain(situation: Situation, question: Question, options: ExplainOptions = {}): Answer {
  const setting = settingOf(situation, question);
  const there = setting.length === 0 ? situation : situationWith(situation, setting, usesSearches(question) ? 'all' : 'none');
  const { deciding, others } = accountOf(there, question);
  if (deciding.length > 0) return answered('unclear', refusal(there, question, deciding), []);
  const draft = draftOf(there, question, options);
  if (setting.length === 0) return answered(question.asks, draft, others);
  const what = list(setting.map(describeCounterfactual));
  const variables = setting.filter(({ kind }) => kind === 'variable');
  const effect = variables.length === 0 ? [] : settingEffect(situation, there, question, what);
  return answered(
    question.asks,
    { ...draft, title: `with ${what}: ${draft.title}`, sentences: [...draft.sentences, ...effect] },
    others,
  );
}

function answered(asks: Question['asks'], { title, sentences, evidence }: Draft, unused: readonly string[]): Answer {
  const texts = [
    ...sentences,
    ...(unused.length === 0 ? [] : [`I did not use: ${unused.map((each) => `«${each}»`).join(', ')}.`]),
  ];
  return { asks, title, lines: texts.map((text) => ({ text, references: referencesIn(text) })), evidence };
}

/** Suppositions of the question that are not true of the cluster already, each after those before it. */
function settingOf(situation: Situation, { asks, setting }: Question): Counterfactual[] {
  if (isAboutNumbers.has(asks)) return [];
  const wanted: Counterfactual[] = [];
  for (const change of setting) {
    // Several kinds of hosts have no single number.
    if (asks === 'scaling' && (change.kind === 'nodes' || change.kind === 'ranks')) continue;
    if (situation.cluster.hosts.length > 1 && (change.kind === 'nodes' || change.kind === 'gpus' || change.kind === 'ranks'))
      continue;
    if (!isAsItIs(changedSubject(situation, wanted), change)) wanted.push(change);
  }
  return wanted;
}

/** Subjects for which numbers in a question are no description of a cluster. */
const isAboutNumbers: ReadonlySet<Question['asks']> = new Set(['nodes', 'hang', 'meaning', 'control', 'fact']);

/** The plan with a variable of the question beside the one without it. */
function settingEffect(before: Situation, after: Situation, { collective, sizes }: Question, what: string): string[] {
  const effect = effectOf(before, after, collective, sizes);
  return [...callSentences(effect, what, 'without'), ...decisionSentences(effect.differences)];
}

/** A size at which bandwidth decides. */
const LARGE_BYTES = 2 ** 30;
/** The size of a question about a choice or a time that names none. */
const USUAL_BYTES = 128 * 2 ** 20;
/** Sizes of `what would help` where none is named. */
const helpSizes: readonly number[] = [4 * 2 ** 20, 128 * 2 ** 20, 2 ** 30];

function draftOf(situation: Situation, question: Question, options: ExplainOptions): Draft {
  const { asks, collective, sizes, ways, ranks, nic, channel, count, terms, changes, versions, measured } = question;
  const keepGoing = options.keepGoing ?? (() => true);
  const [bytes] = sizes;
  switch (asks) {
    case 'bandwidth':
      return answerBandwidth(situation, collective, sizes, ways[0]);
    case 'judge':
      return measured === undefined
        ? answerBandwidth(situation, collective, sizes, ways[0])
        : answerJudge(situation, measured, collective, sizes, keepGoing);
    case 'exceeds':
      return answerExceeds(situation, collective, sizes);
    case 'scaling':
      return answerScaling(situation, collective, bytes, {
        most: nodesOf(question),
        beyond: question.beyond,
        gpus: question.gpuCounts,
        layouts: question.layouts,
        feature: featureOf(question),
        variants: question.variants,
        kind: measured?.kind,
      });
    case 'time':
      return answerTime(situation, collective ?? 'AllReduce', bytes ?? USUAL_BYTES);
    case 'choice':
      return ofChoice(situation, question);
    case 'flips':
      return answerFlips(situation, modelled(collective), bytes);
    case 'use':
      return ways[0] === undefined
        ? answerUse(situation, terms)
        : answerWay(situation, modelled(collective) ?? 'AllReduce', ways[0]);
    case 'limits':
      return ofLimits(situation, question);
    case 'channels':
      return isPairs(collective)
        ? answerPairChannels(situation, count)
        : bytes === undefined
          ? answerChannels(situation, count)
          : answerCallChannels(situation, modelled(collective) ?? 'AllReduce', bytes);
    case 'rings':
      return answerRings(situation, channel);
    case 'nodes':
      return answerNodes(situation, count);
    case 'nic':
      return nic === undefined && ranks.length === 0
        ? answerUse(situation, ['nics'])
        : answerNic(situation, { rank: ranks[0], nic });
    case 'connection':
      return answerConnection(situation, ranks[0] ?? 0, ranks[1] ?? 0);
    case 'gdr':
      return answerGdr(situation, ranks[0]);
    case 'pxn':
      return answerPxn(situation);
    case 'rails':
      return answerRails(situation);
    case 'variable':
      return answerVariable(situation, question);
    case 'change':
      return changes.length > 0 && changes.every(isOutsideOfPlans)
        ? answerVariable(situation, question)
        : answerChange(situation, changes, collective, sizes);
    case 'upgrade':
      return answerUpgrade(situation, versions, collective);
    case 'help':
      return ofHelp(situation, question, options);
    case 'hang':
      return answerHang(situation);
    case 'observe':
      return answerObserve(situation, collective);
    case 'control':
      return answerControl(situation, question);
    case 'fact':
      return answerFact(situation, question.facts);
    case 'calls':
      return answerCalls(situation, question.collectives, bytes ?? LARGE_BYTES, question.figuresOfCalls, measured?.kind);
    case 'aware':
      return answerAware(situation);
    case 'unclear':
      return answerUnclear(measured);
    case 'meaning':
      return answerMeaning(situation, terms, ways);
  }
}

/** True for a variable that no decision of a plan depends on: a plan with it says nothing. */
function isOutsideOfPlans(change: Counterfactual): boolean {
  return change.kind === 'variable' && !parameterTable.some(({ variable }) => variable === change.name);
}

/** The feature whose use a question about numbers of nodes is about: it is compared with its absence. */
function featureOf({ ways, changes }: Question): Counterfactual | undefined {
  const named = changes.find(({ kind }) => kind === 'variable');
  if (named !== undefined) return named;
  const algorithm = ways[0]?.algorithm;
  if (algorithm === undefined) return undefined;
  return algorithm === 'NVLS' || algorithm === 'NVLSTree'
    ? { kind: 'variable', name: 'NCCL_NVLS_ENABLE', value: '0' }
    : { kind: 'variable', name: 'NCCL_ALGO', value: `^${algorithm.toLowerCase()}` };
}

/** The number of nodes that a question names. */
function nodesOf({ setting, changes }: Question): number | undefined {
  for (const change of [...setting, ...changes]) if (change.kind === 'nodes') return change.count;
  return undefined;
}

/** Two ways are compared; one alone is claimed, or denied. */
function ofChoice(situation: Situation, { collective, sizes, ways, isNegated }: Question): Draft {
  const [bytes = USUAL_BYTES] = sizes;
  if (isPairs(collective)) return answerTime(situation, collective, bytes);
  const isDenied = ways.length === 1 && isNegated;
  return answerChoice(situation, {
    collective: modelled(collective) ?? 'AllReduce',
    bytes,
    claimed: isDenied ? undefined : ways[0],
    instead: isDenied ? ways[0] : ways[1],
  });
}

function ofLimits(situation: Situation, { collective, sizes }: Question): Draft {
  const [bytes] = sizes;
  if (isPairs(collective) || bytes !== undefined)
    return answerCallLimits(situation, collective ?? 'AllReduce', bytes ?? LARGE_BYTES);
  return answerLimits(situation, modelled(collective));
}

function ofHelp(situation: Situation, { collective, sizes }: Question, { keepGoing, onProgress }: ExplainOptions): Draft {
  const question = { collective: collective ?? 'AllReduce', sizes: sizes.length === 0 ? helpSizes : sizes };
  const tried: Tried[] = [];
  let total = 0;
  for (const progress of tryChanges(situation, question)) {
    tried.push(progress.tried);
    total = progress.total;
    onProgress?.(progress);
    if (keepGoing !== undefined && !keepGoing()) break;
  }
  return answerHelp(question, tried, total - tried.length, simulatesHelp(situation.plan.nodes.nRanks, question));
}

function modelled(collective: ScheduledCollective | undefined) {
  return collective !== undefined && isModelled(collective) ? collective : undefined;
}

/** True if NCCL carries it out by messages between pairs of ranks. */
function isPairs(collective: ScheduledCollective | undefined): collective is ScheduledCollective {
  return collective !== undefined && !isModelled(collective);
}

/** The questions whose answers are most informative about a plan: its limits first, then its peculiarities. */
export function mainQuestions(situation: Situation, most = 3): readonly Question[] {
  const { plan } = situation;
  const views = nodeViews(situation);
  const leaves = (node: number, kindRanks: readonly number[]) =>
    kindRanks.flatMap((local) => networkUse(situation, (plan.nodes.rankBase[node] ?? 0) + local));
  const hasNoGdr = views.some(({ node, kind }) =>
    leaves(node, kind.ranks).some(({ connection }) => connection.gdr === GdrMode.DISABLED),
  );
  const hasSwitch = views.some(({ local }) => local.system.nvSwitches.length > 0);
  const questions: Question[] = [{ ...bare, asks: 'limits' }];
  if (hasNoGdr) questions.push({ ...bare, asks: 'gdr' });
  if (hasSwitch && plan.nvls === undefined)
    questions.push({ ...bare, asks: 'use', ways: [{ algorithm: 'NVLS' }], isNegated: true });
  if (plan.nodes.nRanks > 1) questions.push({ ...bare, asks: 'channels' }, { ...bare, asks: 'flips', collective: 'AllReduce' });
  return questions.slice(0, most);
}

/** A question that names nothing. */
const bare: Question = {
  asks: 'limits',
  collective: undefined,
  sizes: [],
  ways: [],
  isNegated: false,
  isOff: false,
  measured: undefined,
  count: undefined,
  ranks: [],
  nic: undefined,
  channel: undefined,
  terms: [],
  variables: [],
  controls: [],
  facts: [],
  collectives: [],
  beyond: undefined,
  gpuCounts: [],
  layouts: [],
  changes: [],
  setting: [],
  versions: [],
  variants: [],
  figuresOfCalls: [],
  mentions: [],
  content: [],
  unread: [],
  text: '',
};
