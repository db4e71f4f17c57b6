import { TcclError } from '../../../errors.js';
import { nearestName } from '../../../suggest.js';
import { ncclVariables, outsideThePlan } from '../../nccl-variables.js';
import { defaultParameters, parameterTable } from '../../parameters.js';
import { formatBytes, formatRate, formatWay } from '../../plan/overview/format.js';
import { variableMeanings } from '../../variable-meanings.js';
import { missingUntil, newVariables, variableSince } from '../../versions/variables.js';
import type { Draft, Evidence } from '../answer.js';
import type { Question } from '../grammar/question.js';
import { valuesWorthATry } from '../help/changes.js';
import { type Situation, situationWith } from '../situation.js';
import { type ChangedCall, changeText, type Effect, effectEvidence, effectOf, isSame } from './change.js';

/** Explains variables of NCCL: the meaning, the value here, and what other values change here. */
export function answerVariable(situation: Situation, question: Question): Draft {
  const drafts = [...new Set(question.variables.map(({ name }) => name))].map((variable) => {
    const values = question.variables.flatMap(({ name, value }) => (name === variable && value !== undefined ? [value] : []));
    return explainVariable(situation, question, variable, values.length === 0 ? undefined : values);
  });
  const [first] = drafts;
  return {
    title: drafts.map(({ title }) => title).join(', '),
    sentences: drafts.flatMap(({ sentences }) => sentences),
    evidence: drafts.length === 1 && first !== undefined ? first.evidence : { variables: drafts.map(({ evidence }) => evidence) },
  };
}

/** Explains one variable, and tries `values`; by default those worth a try. */
export function explainVariable(
  situation: Situation,
  question: Question,
  variable: string,
  values: readonly (string | null)[] = valuesWorthATry(variable, situation.environment, situation.parameters),
): Draft {
  const { parameters } = situation;
  const setting = parameterTable.find((each) => each.variable === variable);
  const outside = outsideThePlan.get(variable);
  const meaning = meaningOf(variable);
  const answer = (title: string, sentences: readonly string[], rest: Draft['evidence'] = {}): Draft => ({
    title,
    sentences,
    evidence: { variable, isPlanned: setting !== undefined || graphFiles.has(variable), meaning: meaning ?? null, ...rest },
  });
  if (!ncclVariables.has(variable)) {
    const near = nearestName(variable, ncclVariables);
    return answer(`NCCL has no variable ${variable}`, [
      `NCCL ${parameters.ncclVersion} does not read it.${near === undefined ? '' : ` The nearest name is ${near}.`}`,
    ]);
  }
  const sentences: string[] = meaning === undefined ? [] : [sentence(meaning)];
  const missing = missingUntil(variable, parameters.ncclVersion);
  const since = variableSince.get(variable) ?? newVariables.get(variable);
  if (missing !== undefined) sentences.push(`NCCL ${parameters.ncclVersion} does not have it yet: it came with ${missing}.`);
  else if (since !== undefined) sentences.push(`NCCL has it since ${since}.`);
  if (setting !== undefined) {
    const text = written(parameters[setting.field]);
    const isDefault = text === written(defaultParameters[setting.field]);
    sentences.push(
      isDefault ? `Here it has its default${text === undefined ? '' : `, ${text}`}.` : `Here it is ${text ?? 'not set'}.`,
    );
    if (missing !== undefined) return answer(variable, sentences, { value: text ?? null, isDefault });
    const tried = values.map((value) => tryValue(situation, question, variable, value));
    sentences.push(
      ...(question.collective === 'SendRecv' || question.collective === 'AllToAll' || question.terms.includes('channel')
        ? channelSentences(situation, variable)
        : []),
      ...tried.map(({ text: told }) => told),
      ...(tried.length === 0 ? [`Another value is tried by naming it: ${variable}=VALUE.`] : []),
    );
    return answer(variable, sentences, { value: text ?? null, isDefault, tried: tried.map(({ evidence }) => evidence) });
  }
  if (outside !== undefined) sentences.push(sentence(`Plans do not take it into account: ${outside}`));
  else if (graphFiles.has(variable)) sentences.push('Plans take it into account.');
  else if (meaning === undefined) sentences.push('No decision of a plan depends on it, and nothing more is known of it here.');
  else sentences.push('No decision of a plan depends on it.');
  return answer(variable, sentences);
}

/** The meaning of a variable in some words, if it is known. */
export function meaningOf(variable: string): string | undefined {
  return (
    parameterTable.find((each) => each.variable === variable)?.doc ?? variableMeanings.get(variable) ?? graphFiles.get(variable)
  );
}

/** One value on the spot: what it changes, at which sizes. */
function tryValue(
  situation: Situation,
  { collective, sizes }: Question,
  name: string,
  value: string | null,
): { readonly text: string; readonly evidence: Evidence } {
  const what = value === null ? `${name} not set` : `${name}=${value}`;
  try {
    const effect = effectOf(situation, situationWith(situation, [{ kind: 'variable', name, value }]), collective, sizes);
    const figures = sizes.length === 0 ? [] : effect.calls.map(figureText);
    return { text: `${what}: ${[effectText(effect), ...figures].join('; ')}.`, evidence: { value, ...effectEvidence(effect) } };
  } catch (error) {
    if (!(error instanceof TcclError)) throw error;
    return { text: `${what}: NCCL fails, ${error.message}.`, evidence: { value, refused: error.message } };
  }
}

/** The bandwidth of a call whose size the question names. */
function figureText({ collective, bytes, before, after }: ChangedCall): string {
  return `${collective} of ${formatBytes(bytes)} has ${formatRate(after.busGBps)} GB/s of bus bandwidth by ${formatWay(after.choice)}, and ${formatRate(before.busGBps)} without`;
}

/** The effect in one line: decisions, then calls by what they gain or lose. */
function effectText({ differences, calls }: Effect): string {
  const decisions = differences
    .filter(({ section }) => section === 'graphs' || section === 'channels' || section === 'nvls' || section === 'transports')
    .slice(0, 3)
    .map(({ what, a, b }) => `${what} ${a} -> ${b}`);
  const changed = calls.filter((call) => !isSame(call));
  const times = changed.map(({ collective, bytes, ratio, before, after }) => {
    const ways =
      before.choice === undefined || formatWay(before.choice) === formatWay(after.choice) ? '' : ` by ${formatWay(after.choice)}`;
    return `${collective} of ${formatBytes(bytes)} ${changeText(ratio).replace(/^is /, '')}${ways}`;
  });
  const parts = [...decisions, ...times.slice(0, 6), ...(times.length > 6 ? [`${times.length - 6} more calls change`] : [])];
  if (parts.length > 0) return parts.join('; ');
  return differences.length === 0 ? 'nothing changes here' : 'no time changes here';
}

/** Variables that bound the channels of collectives, and which those of send and receive. */
function channelSentences({ plan }: Situation, variable: string): string[] {
  const bounds = ['NCCL_MAX_NCHANNELS', 'NCCL_MIN_NCHANNELS', 'NCCL_MAX_CTAS', 'NCCL_MIN_CTAS'];
  if (!bounds.includes(variable)) return [];
  const most = variable.startsWith('NCCL_MAX') ? 'MAX' : 'MIN';
  return [
    `It bounds the channels of rings and trees (${plan.nChannels} here). Send and receive, and all-to-all, take that number rounded up to a power of two (${plan.p2p.nChannels} here), within NCCL_MIN_P2P_NCHANNELS and NCCL_MAX_P2P_NCHANNELS: NCCL_${most}_P2P_NCHANNELS bounds them by itself.`,
    `A peer gets ${plan.p2p.channelsPerPeer} of these; messages to several peers run at the same time, so a grid can have up to ${plan.p2p.nChannels} blocks.`,
  ];
}

const graphFiles: ReadonlyMap<string, string> = new Map([
  ['NCCL_GRAPH_FILE', 'a file of graphs that replace the search'],
  ['NCCL_GRAPH_DUMP_FILE', 'where the graphs that were found are written; tccl graph writes the same'],
  ['NCCL_GRAPH_DUMP_FILE_RANK', 'which rank writes NCCL_GRAPH_DUMP_FILE'],
]);

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

function written(value: unknown): string | undefined {
  return typeof value === 'string' || value === undefined ? value : JSON.stringify(value);
}
