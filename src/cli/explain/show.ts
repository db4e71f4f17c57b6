import { inFile, InvalidArgumentError } from '../../errors.js';
import type { Answer } from '../../planner/explain/answer.js';
import { explain, mainQuestions } from '../../planner/explain/explain.js';
import { adviceOnFailures, nearestQuestions, questionForms } from '../../planner/explain/grammar/complete.js';
import { parseQuestions } from '../../planner/explain/grammar/parse.js';
import type { Question } from '../../planner/explain/grammar/question.js';
import { withNicNumbers } from '../../planner/explain/nic-names.js';
import { type Situation, situationOf, usesSearches } from '../../planner/explain/situation.js';
import { type ClusterInput, readCluster, rootsOf } from '../cluster-input.js';
import type { ClusterOptions } from '../cluster-options.js';
import { colorsFor, print, printJson, printNotes, progressLine } from '../output.js';

export interface ExplainOptions extends ClusterOptions {
  readonly json?: boolean;
  /** `--seconds`: time limit for trying changes. */
  readonly seconds?: string;
}

/** `tccl explain`. */
export async function showAnswer(name: string, text: string, options: ExplainOptions): Promise<void> {
  const limitMs = 1000 * secondsOf(options);
  const input = await readCluster([name], options);
  // Refuse an unknown question before planning anything.
  const questions = text.trim() === '' ? [] : understood(withNicNumbers(text, rootsOf(input).values()));
  const situation = planned(input, questions.length === 0 || questions.some(usesSearches));
  const asked = questions.length === 0 ? mainQuestions(situation) : questions;
  const answers = asked.map((question) => inFile(input.fileName, () => answer(situation, question, limitMs)));
  if (options.json === true) {
    const [only] = answers;
    printJson(questions.length === 0 ? { questions: questionForms, answers } : answers.length === 1 ? only : { answers });
  } else
    print(
      ...answers.flatMap((each, index) => [...(index > 0 ? [''] : []), ...answerLines(each)]),
      ...(questions.length === 0 ? ['', ...formsLines(name)] : []),
    );
  printNotes(input.notes);
}

/** @throws InvalidArgumentError with the nearest questions */
function understood(text: string): readonly Question[] {
  const questions = parseQuestions(text);
  if (questions.length > 0) return questions;
  const nearest = nearestQuestions(text)
    .map((form) => `'${form}'`)
    .join(', ');
  const advice = adviceOnFailures(text);
  throw new InvalidArgumentError(
    'UNKNOWN_NAME',
    `'${text}' is no question that can be answered; the nearest are ${nearest} (tccl explain CLUSTER lists all)${advice === undefined ? '' : `; ${advice}`}`,
  );
}

function secondsOf({ seconds = '8' }: ExplainOptions): number {
  const limit = Number(seconds);
  if (!(limit > 0)) throw new InvalidArgumentError('ARGUMENT_RANGE', `--seconds '${seconds}' must be a number above 0`);
  return limit;
}

function planned(
  { cluster, machines, fileName, parameters, environment, given, simulated }: ClusterInput,
  withSearches: boolean,
): Situation {
  const roots = rootsOf({ machines });
  return inFile(fileName, () =>
    situationOf(cluster, parameters, { searches: withSearches ? 'all' : 'none', simulated, roots, environment, ...given }),
  );
}

/** Answers a question; trying changes ends when the time is over, but a started one is finished. */
function answer(situation: Situation, question: Question, limitMs: number): Answer {
  const line = progressLine();
  const end = performance.now() + limitMs;
  try {
    return explain(situation, question, {
      keepGoing: () => performance.now() <= end,
      onProgress: ({ done, total }) => line.update(`${done}/${total} trying changes …`),
    });
  } finally {
    line.done();
  }
}

function answerLines({ title, lines }: Answer): string[] {
  const paint = colorsFor(process.stdout);
  return [paint.bold(title), ...lines.map(({ text }) => `  ${text}`)];
}

function formsLines(name: string): string[] {
  const paint = colorsFor(process.stdout);
  const width = Math.max(...questionForms.map(({ example }) => example.length));
  const lines = questionForms.map(({ example, purpose }) => `  ${example.padEnd(width)}  ${paint.dim(purpose)}`);
  return [paint.bold(`Ask in words of your own: tccl explain ${name} QUESTION`), ...lines];
}
