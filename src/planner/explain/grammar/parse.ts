import type { ScheduledCollective } from '../../schedule/schedule.js';
import { collectives } from '../../tuning/names.js';
import type { Counterfactual } from '../counterfactual/counterfactual.js';
import { readSupposed } from '../counterfactual/read.js';
import { type Entities, takeEntities } from './entities.js';
import { factPhrases, rulesOfNccl, surelyAsked, systemFactPhrases, unsettable } from './fact-phrases.js';
import { type Intent, intents, type Sign } from './intents.js';
import { phrasePattern, phraseTable, Words } from './phrases.js';
import type { Controlled, Fact, PartialWay, Question, Term } from './question.js';
import { corrected, isEnglish } from './spelling.js';
import { type WordCount, wordsOf } from './unread.js';
import { type Concept, conceptPhrases, controlPhrases } from './vocabulary.js';

/** Most questions that one text may hold. */
const MOST_QUESTIONS = 3;

/** Most words of statements that an answer lists as not used. */
const MOST_WORDS = 4;
/** Fewest words that say what a clause asks. */
const LEAST_WORDS = 2;

/**
 * Reads questions in free words: names, numbers and ideas count, not the grammar around them. Misspelt words are read as the
 * nearest known ones if the text is not understood otherwise. A text may hold several questions; a later one is about the call
 * that an earlier one names.
 *
 *     parseQuestions('Why Tree and not Ring at 4 MiB?')
 *     // [{ asks: 'choice', sizes: [4194304], ways: [{ algorithm: 'Tree' }, { algorithm: 'Ring' }], … }]
 *
 * @returns none where nothing can be answered; `nearestQuestions` then lists similar ones that can
 */
export function parseQuestions(text: string): readonly Question[] {
  if (!isEnglish(text)) return [];
  const whole = understood(text);
  const clauses = clausesOf(text);
  if (clauses.length === 1) return whole === undefined ? [] : [whole];
  const statements = clauses.filter((clause) => !asks.test(clause));
  const asking = clauses.filter((clause) => asks.test(clause));
  const found: Question[] = [];
  const lost: string[] = [];
  for (const clause of asking.length === 0 ? clauses : asking) {
    // In the order of the text: a figure belongs to the call before it.
    const joined = clauses.filter((each) => each === clause || statements.includes(each)).join(', ');
    const question = asking.length === 0 || statements.length === 0 ? understood(clause) : inContext(clause, joined);
    if (question === undefined) {
      if (!asksForReason.test(clause)) lost.push(clause);
      continue;
    }
    const before = found.at(-1);
    const inherited = before === undefined ? question : inherit(question, before);
    if (!found.some((other) => other.asks === inherited.asks)) found.push(inherited);
  }
  // One clause alone has no more than the whole has: `H100 nodes. Why so slow?`
  if (found.length <= 1 && whole !== undefined && (asking.length === 0 || statements.length === 0 || found.length === 0))
    return [whole].map((question) => focusedOn(question, asking, lost));
  // Hardware that another clause states.
  const stated = whole?.setting.filter(({ kind }) => kind !== 'variable') ?? [];
  return found
    .slice(0, MOST_QUESTIONS)
    .map((question) => (question.setting.length === 0 ? { ...question, setting: stated } : question))
    .map((question, index) => focusedOn(question, asking, index === 0 ? lost : []));
}

/**
 * Words of statements around a question are told, and do not decide, unless the question has none of its own: `Why?`. Clauses
 * that ask for something unknown are told, too.
 */
function focusedOn(question: Question, asking: readonly string[], lost: readonly string[]): Question {
  const asked = asking.join(' ').toLowerCase();
  const isAsked = (word: string) => new RegExp(`\\b${word}\\b`).test(asked);
  const own = question.content.filter(isAsked);
  const isWhole = own.length < LEAST_WORDS;
  const stated = isWhole ? [] : question.unread.filter((word) => !isAsked(word)).slice(0, MOST_WORDS);
  return {
    ...question,
    ...(isWhole ? {} : { content: own, unread: question.unread.filter(isAsked) }),
    mentions: [...question.mentions, ...[...stated, ...lost].map((text) => ({ part: 'word', text }) as const)],
  };
}

/** `… and why`: answers give reasons. */
const asksForReason = /^(?:why|how so)\W*$/i;

/** A clause that asks; others state what there is. */
const asks =
  /\?\s*$|\b(?:how|why|what|whats|whether)\b|(?<!, )\bwhich\b|^(?:and |so |also |but )?(?:is|are|does|do|did|will|would|can|could|should|shall|has|have)\b/i;

/** Subjects whose answer depends on figures that a statement before may have. */
const needsFigures: ReadonlySet<Question['asks']> = new Set([
  'judge',
  'bandwidth',
  'limits',
  'help',
  'time',
  'exceeds',
  'scaling',
]);

/** `what is this option doing` names what a statement before does. */
const refersInside = /\b(?:this|that|the) (?:option|variable|setting|flag|parameter|env\w*)\b/i;

/** Reads a clause that asks, with the hardware, calls and figures of statements around it. */
function inContext(clause: string, withStatements: string): Question | undefined {
  const alone = understood(clause);
  const joined = understood(withStatements);
  if (refersInside.test(clause)) return joined ?? alone;
  if (
    alone === undefined ||
    joined === undefined ||
    needsFigures.has(alone.asks) ||
    joined.asks === 'fact' ||
    joined.variants.length > 1
  )
    return joined ?? alone;
  return {
    ...alone,
    collective: alone.collective ?? joined.collective,
    setting: [...alone.setting, ...joined.setting.filter((change) => !alone.setting.some(({ kind }) => kind === change.kind))],
  };
}

/** `is 365 GB/s good, and how do I improve it?` has two. A question keeps its mark. */
function clausesOf(text: string): string[] {
  return text
    .split(
      /(?<=\?)\s*|[!;]+\s*|\.\s+|,?\s+(?:and|also|or)\s+(?=(?:how|what|why|which|is|are|does|do|should|can)\b)|,\s+(?=(?:how|what|why|which)\b)/i,
    )
    .map((clause) => clause.trim())
    .filter((clause) => /\w/.test(clause))
    .reduce<string[]>((clauses, clause) => {
      const before = clauses.at(-1);
      if (before !== undefined && refersBack.test(clause))
        clauses[clauses.length - 1] = `${before.replace(/\?$/, '')}, ${clause}`;
      else clauses.push(clause);
      return clauses;
    }, []);
}

/** `which one is faster`, `is that normal` ask about what was said before. */
const refersBack =
  /^(?:which (?:one )?(?:is|are|of)|what is (?:the )?(?:difference|better)|(?:is|are|does|do) (?:that|this|it|these|they)\b)/i;

/** A question that names no call is about the one before. */
function inherit(question: Question, before: Question): Question {
  const isBare = question.collective === undefined && question.sizes.length === 0;
  return {
    ...question,
    collective: question.collective ?? before.collective,
    sizes: isBare ? before.sizes : question.sizes,
    setting: question.setting.length === 0 ? before.setting : question.setting,
  };
}

function understood(text: string): Question | undefined {
  const asWritten = read(text);
  if (asWritten !== undefined && asWritten.intent.isGuess !== true) return asWritten.question;
  const fixed = corrected(text);
  return ((fixed === text.toLowerCase() ? undefined : read(fixed)) ?? asWritten)?.question;
}

function read(text: string): { readonly intent: Intent; readonly question: Question } | undefined {
  const { entities, ...others } = readSigns(text);
  const intent = intents.find((each) => isMet(each, others.signs));
  if (intent === undefined) return undefined;
  const { lower, rest, facts, controls, read: supposed } = others;
  const own = [
    ...(intent.asks === 'fact' ? patternsOf(factTable, facts) : []),
    ...(intent.asks === 'control' ? patternsOf(controlTable, controls) : []),
    ...supposed,
  ];
  return { intent, question: { ...questionOf(intent, entities, others, text), ...wordsOf(lower, rest, intent.asks, own) } };
}

/** All that is read in a text, for intents. */
export interface ReadSigns {
  readonly signs: ReadonlySet<Sign>;
  readonly entities: Entities;
  readonly isNegated: boolean;
  readonly changes: readonly Counterfactual[];
  readonly setting: readonly Counterfactual[];
  /** Text without names and numbers. */
  readonly rest: string;
  readonly controls: readonly Controlled[];
  readonly facts: readonly Fact[];
  /** Patterns of the changes that were read. */
  readonly read: readonly string[];
  readonly lower: string;
}

const conceptPatterns = (Object.keys(conceptPhrases) as Concept[]).map((name) => ({
  name,
  pattern: phrasePattern(conceptPhrases[name]),
}));

const controlTable = phraseTable(controlPhrases);
const factTable = phraseTable([...systemFactPhrases, ...factPhrases]);

/** Names of a table whose phrases a text has. */
function namesIn<Name>(table: readonly { readonly name: Name; readonly pattern: RegExp }[], text: string): Name[] {
  return table.filter(({ pattern }) => text.search(pattern) >= 0).map(({ name }) => name);
}

function patternsOf<Name>(table: readonly { readonly name: Name; readonly pattern: RegExp }[], names: readonly Name[]): string[] {
  return table.flatMap(({ name, pattern }) => (names.includes(name) ? [pattern.source] : []));
}

/** True for `4x H100 and 2x A100` of one job; two models beside `or` or `faster than` are compared. */
function listsModels(text: string, { gpuModels, machine }: Entities): boolean {
  const isCompared =
    /\b(?:or|vs|versus|than|instead|compar\w+|replac\w+|upgrad\w+|faster|slower|better|worse|differ\w*|switch\w*|mov\w+)\b/;
  return (
    machine === undefined && gpuModels.length > 1 && gpuModels.every(({ count }) => count !== undefined) && !isCompared.test(text)
  );
}

/** Features that are used or not. */
const featureTerms: readonly Term[] = ['p2p', 'shm', 'gdr', 'pxn', 'nvlink', 'nvswitch', 'sockets'];

export function readSigns(text: string): ReadSigns {
  const plain = text
    .replaceAll(/[’‘`]/g, "'")
    .replaceAll(/[“”]/g, '"')
    .replaceAll('–', '-')
    // Calls by the names of the API: `ncclAllReduce`.
    .replaceAll(/\bnccl(?=all|reduce|broadcast|bcast|send|recv|gather|scatter)/gi, '')
    .replaceAll(/(\d),(\d{3})\b/g, '$1$2');
  const words = new Words(plain);
  const entities = takeEntities(words);
  const lower = plain.toLowerCase();
  const { rest } = words;
  const signs = new Set<Sign>();
  for (const { name, pattern } of conceptPatterns) {
    pattern.lastIndex = 0;
    if (pattern.test(rest)) signs.add(name);
  }
  const { measured, sizes, collective, isWorkload, ways, terms, ranks, nic, channel, counts, versions, machine, variables } =
    entities;
  const add = (isThere: boolean, ...added: readonly Sign[]) => {
    if (isThere) for (const sign of added) signs.add(sign);
  };
  for (const term of terms) signs.add(`#${term}`);
  add(measured !== undefined && measured.kind !== 'time', '#rate');
  add(measured?.kind === 'time', '#took');
  add(sizes.length > 0, '#size');
  add(collective !== undefined, '#collective');
  add(isWorkload, '#workload');
  add(collective !== undefined && !(collectives as readonly string[]).includes(collective), '#pairs');
  add(ways.length > 0, '#way');
  add(ways.length > 1, '#ways');
  add(
    ways.some(({ algorithm }) => algorithm === 'NVLS' || algorithm === 'NVLSTree'),
    '#nvls',
  );
  add(
    ways.some(({ algorithm }) => algorithm === 'Ring'),
    '#ring',
  );
  add(
    ways.some(({ algorithm }) => algorithm === 'CollNetDirect' || algorithm === 'CollNetChain') ||
      featureTerms.some((term) => terms.has(term)),
    '#feature',
  );
  add(ranks.length > 0, '#rank');
  add(ranks.length > 1, '#ranks');
  add(nic !== undefined, '#nic', '#nics');
  add(channel !== undefined, '#ringNumber');
  add(counts.nodes !== undefined, '#nodes');
  add(entities.comparesNodes, '#twoNodeCounts');
  add(counts.gpus !== undefined || counts.ranks !== undefined, '#gpus');
  add(counts.channels !== undefined, '#channels', '#channel');
  add(counts.nics !== undefined, '#nics');
  add(versions.length > 0, '#version');
  add(versions.length > 1, '#versions');
  add(machine !== undefined, '#machine');
  add(variables.length > 0, '#variable');
  add(
    variables.some(({ value }) => value !== undefined && value !== null),
    '#value',
  );
  const isCause = signs.has('why');
  const controls = namesIn(controlTable, lower);
  const isMixed = listsModels(lower, entities);
  const facts = [...(isMixed ? (['mixedGpus'] as const) : []), ...namesIn(factTable, lower)];
  // Rules of NCCL hold for any plan: what they name is not supposed.
  const isAboutRules = isMixed || facts.some((fact) => rulesOfNccl.has(fact));
  const {
    changes,
    setting,
    read: supposed,
  } = isAboutRules ? { changes: [], setting: [], read: [] } : readSupposed(lower, entities, isCause);
  add(changes.length > 0, '#change');
  add((terms.size > 0 || ways.length > 0) && isDefinition(lower, rest), '#definition');
  add(controls.length > 0, '#controlled');
  add(facts.length > 0, '#fact');
  add(isMixed || facts.some((fact) => surelyAsked.has(fact)), '#sureFact');
  add(
    facts.some((fact) => unsettable.has(fact)),
    '#unsettable',
  );
  add(entities.collectives.length > 1, '#calls');
  add(entities.beyond !== undefined, '#beyond');
  add(entities.gpuCounts.length > 1, '#gpuCounts');
  add(
    variables.some(({ name, value }) =>
      variables.some((other) => other.name === name && value !== undefined && other.value !== undefined && other.value !== value),
    ),
    '#values',
  );
  add(entities.figures > 1, '#figures');
  add(entities.variants.length > 1, '#comparedFigures', '#variants');
  add(entities.figuresOfCalls.length > 1, '#figuresOfCalls');
  add(
    entities.figures > 1 && (entities.gpuCounts.length > 1 || entities.comparesNodes || entities.layouts.length > 1),
    '#comparedFigures',
  );
  return { signs, entities, isNegated: signs.has('negation'), changes, setting, read: supposed, lower, rest, controls, facts };
}

const definition = phrasePattern(
  'difference between|what does .{1,40} (mean|stand for)|meaning of|stands? for|definition of|define|how (is|are) .{1,40} (calculated|computed|defined|measured)|explain the (term|concept|difference|meaning)',
);

/** `what is LL128`: nothing is said about the term. */
function isDefinition(text: string, rest: string): boolean {
  definition.lastIndex = 0;
  if (definition.test(text)) return true;
  return (
    /^\W*(?:(?:hi|hello|please|can you|could you)\W+)*(?:what(?:'s| is| are|s)|explain|define)\b/.test(text) &&
    rest
      .replaceAll(
        /\b(?:what|whats|is|are|s|exactly|explain|define|a|an|the|nccl|in|protocol|algorithm|mode|feature|and|term|meant by|please|hi|hello|here)\b/g,
        '',
      )
      .replaceAll(/[^a-z0-9]/g, '') === ''
  );
}

/** True if one way of asking is there, and nothing that excludes it. */
export function isMet({ when, not = [] }: Intent, signs: ReadonlySet<Sign>): boolean {
  return (
    !not.some((sign) => signs.has(sign)) && when.some((groups) => groups.every((group) => group.some((sign) => signs.has(sign))))
  );
}

function questionOf(
  { asks }: Intent,
  {
    beyond,
    gpuCounts,
    layouts,
    collectives: named,
    collective,
    sizes,
    ways,
    measured,
    counts,
    ranks,
    nic,
    channel,
    terms,
    variables,
    versions,
    variants,
    figuresOfCalls,
    mentions,
  }: Entities,
  { signs, isNegated, changes, setting, controls, facts }: Omit<ReadSigns, 'entities'>,
  text: string,
): Omit<Question, keyof WordCount> {
  const ofVariables = variables.flatMap(({ name, value }): Counterfactual[] =>
    value === undefined || changes.some((change) => change.kind === 'variable' && change.name === name)
      ? []
      : [{ kind: 'variable', name, value }],
  );
  const isTried = asks === 'change' || asks === 'variable';
  const forced = asks === 'judge' && !ofVariables.some(({ kind }) => kind === 'variable') ? forcedBy(ways) : [];
  return {
    asks,
    collective: collective ?? (asks === 'judge' && terms.has('p2p') ? 'SendRecv' : undefined) ?? collectiveOf(ways[0]?.algorithm),
    sizes,
    ways,
    isNegated,
    isOff: signs.has('off'),
    measured,
    count: counts.channels ?? counts.nodes,
    ranks,
    nic,
    channel,
    terms: [...terms],
    variables,
    controls,
    facts,
    collectives: named,
    beyond,
    gpuCounts,
    layouts,
    changes: isTried ? [...changes, ...ofVariables] : changes,
    setting: [...setting, ...(isTried ? [] : ofVariables), ...forced].filter((each) => asks !== 'change' || !isIn(changes, each)),
    versions,
    variants,
    figuresOfCalls,
    mentions,
    text,
  };
}

/** True if a change is among others, whatever the case of a variable's value. */
function isIn(changes: readonly Counterfactual[], change: Counterfactual): boolean {
  return changes.some((other) => JSON.stringify(other).toLowerCase() === JSON.stringify(change).toLowerCase());
}

/** A figure of one algorithm or protocol is one with that forced. */
function forcedBy(ways: readonly PartialWay[]): Counterfactual[] {
  const [way, ...others] = ways;
  if (way === undefined || others.length > 0) return [];
  return [
    ...(way.algorithm === undefined ? [] : [{ kind: 'variable', name: 'NCCL_ALGO', value: way.algorithm } as const]),
    ...(way.protocol === undefined ? [] : [{ kind: 'variable', name: 'NCCL_PROTO', value: way.protocol } as const]),
  ];
}

/** PAT is for all-gather and reduce-scatter only. */
function collectiveOf(algorithm: string | undefined): ScheduledCollective | undefined {
  return algorithm === 'PAT' ? 'AllGather' : undefined;
}
