import { ncclVariables, outsideThePlan } from '../../../nccl-variables.js';
import { defaultParameters, parameterTable } from '../../../parameters.js';
import { nearestName } from '../../../../suggest.js';
import { variableMeanings } from '../../../variable-meanings.js';
import { missingUntil, newVariables, variableSince } from '../../../versions/variables.js';
import { compareVersions } from '../../../versions/version.js';
import type { Answer } from '../answer.js';
import type { Question } from '../question.js';
import type { Situation } from '../situation.js';

/** Explains a variable of NCCL: its effect, its value here, and its role in plans. */
export function answerVariable({ parameters }: Situation, { variable }: Extract<Question, { about: 'variable' }>): Answer {
  const setting = parameterTable.find((each) => each.variable === variable);
  const outside = outsideThePlan.get(variable);
  const meaning = setting?.doc ?? variableMeanings.get(variable) ?? graphFiles.get(variable);
  const answer = (title: string, sentences: readonly string[], rest: Answer['evidence'] = {}): Answer => ({
    about: 'variable',
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
  const brought = newVariables.get(variable);
  const missing =
    brought !== undefined && compareVersions(parameters.ncclVersion, '2.31') < 0
      ? brought
      : missingUntil(variable, parameters.ncclVersion);
  const since = variableSince.get(variable) ?? brought;
  if (missing !== undefined) sentences.push(`NCCL ${parameters.ncclVersion} does not have it yet: it came with ${missing}.`);
  else if (since !== undefined) sentences.push(`NCCL has it since ${since}.`);
  if (setting !== undefined) {
    const value = parameters[setting.field];
    const text = written(value);
    const isDefault = text === written(defaultParameters[setting.field]);
    sentences.push(
      isDefault ? `Here it has its default${text === undefined ? '' : `, ${text}`}.` : `Here it is ${text ?? 'not set'}.`,
      `Plans depend on it: tccl diff CLUSTER --env-b ${variable}=VALUE shows the effect of another value.`,
    );
    return answer(variable, sentences, { value: text ?? null, isDefault });
  }
  if (outside !== undefined) sentences.push(sentence(`Plans do not take it into account: ${outside}`));
  else if (graphFiles.has(variable)) sentences.push('Plans take it into account.');
  else if (meaning === undefined) sentences.push('No decision of a plan depends on it, and nothing more is known of it here.');
  else sentences.push('No decision of a plan depends on it.');
  return answer(variable, sentences);
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
