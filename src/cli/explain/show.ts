import { inFile, InvalidArgumentError } from '../../errors.js';
import type { Answer } from '../../plan/explain/answer.js';
import { type DirectQuestion, explain, mostTelling } from '../../plan/explain/explain.js';
import { nearestForms, parseQuestion, questionForms } from '../../plan/explain/question.js';
import { type Situation, situationOf } from '../../plan/explain/situation.js';
import { type ClusterInput, type ClusterOptions, readCluster } from '../cluster-input.js';
import { colorsFor, printNotes } from '../output.js';

export interface ExplainOptions extends ClusterOptions {
  readonly json?: boolean;
}

/** `tccl explain`. */
export async function showAnswer(name: string, text: string, options: ExplainOptions): Promise<void> {
  // A question that nobody understands is said before anything is planned.
  const question = text.trim() === '' ? undefined : understood(text);
  const input = await readCluster([name], options);
  const situation = planned(input);
  if (question === undefined) {
    const answers = mostTelling(situation).map((each) => explain(situation, each));
    if (options.json === true) console.log(JSON.stringify({ questions: questionForms, answers }));
    else process.stdout.write([...answers.map(answerText), formsText(name)].join('\n'));
  } else {
    const answer = explain(situation, question);
    if (options.json === true) console.log(JSON.stringify(answer));
    else process.stdout.write(answerText(answer));
  }
  printNotes(input.notes);
}

/** @throws InvalidArgumentError with the nearest questions */
function understood(text: string): DirectQuestion {
  const question = parseQuestion(text);
  if (question !== undefined && question.about !== 'help') return question;
  const forms = nearestForms(text).map((form) => `'${form}'`).join(', ');
  throw new InvalidArgumentError('UNKNOWN_NAME', `'${text}' is no question that can be answered; the nearest are ${forms} (tccl explain CLUSTER lists all)`);
}

export function planned({ cluster, machines, parameters, graphFile }: ClusterInput): Situation {
  const fileName = machines.length === 1 ? machines[0]?.fileName : undefined;
  return inFile(fileName, () => situationOf(cluster, parameters, graphFile === undefined ? {} : { graphFile }));
}

function answerText({ title, sentences }: Answer): string {
  const paint = colorsFor(process.stdout);
  return `${paint.bold(title)}\n${sentences.map((sentence) => `  ${sentence}\n`).join('')}`;
}

function formsText(name: string): string {
  const paint = colorsFor(process.stdout);
  const width = Math.max(...questionForms.map(({ example }) => example.length));
  const lines = questionForms.map(({ example, purpose }) => `  ${example.padEnd(width)}  ${paint.dim(purpose)}`);
  return `${paint.bold(`Ask in words of your own: tccl explain ${name} QUESTION`)}\n${lines.join('\n')}\n`;
}
