import { inFile, InvalidArgumentError } from '../../errors.js';
import type { Answer } from '../../planner/plan/explain/answer.js';
import { explain, mainQuestions } from '../../planner/plan/explain/explain.js';
import { nearestForms, parseQuestion, type Question, questionForms } from '../../planner/plan/explain/question.js';
import { answerHelp, type Tried, tryChanges } from '../../planner/plan/explain/help/try-changes.js';
import { type Situation, situationOf, usesSearches } from '../../planner/plan/explain/situation.js';
import { type ClusterInput, readCluster } from '../cluster-input.js';
import type { ClusterOptions } from '../cluster-options.js';
import { colorsFor, print, printJson, printNotes, progressLine } from '../output.js';

export interface ExplainOptions extends ClusterOptions {
  readonly json?: boolean;
  /** `--seconds`: time limit for trying changes. */
  readonly seconds?: string;
}

/** `tccl explain`. */
export async function showAnswer(name: string, text: string, options: ExplainOptions): Promise<void> {
  // Refuse an unknown question before planning anything.
  const question = text.trim() === '' ? undefined : understood(text);
  const input = await readCluster([name], options);
  if (question === undefined) {
    const situation = planned(input);
    const answers = mainQuestions(situation).map((each) => explain(situation, each));
    if (options.json === true) printJson({ questions: questionForms, answers });
    else print(...answers.flatMap((answer) => [...answerLines(answer), '']), ...formsLines(name));
  } else {
    const answer =
      question.about === 'help' ? helpFor(input, question, options) : explain(planned(input, usesSearches(question)), question);
    if (options.json === true) printJson(answer);
    else print(...answerLines(answer));
  }
  printNotes(input.notes);
}

/** @throws InvalidArgumentError with the nearest questions */
function understood(text: string): Question {
  const question = parseQuestion(text);
  if (question !== undefined) return question;
  const forms = nearestForms(text)
    .map((form) => `'${form}'`)
    .join(', ');
  throw new InvalidArgumentError(
    'UNKNOWN_NAME',
    `'${text}' is no question that can be answered; the nearest are ${forms} (tccl explain CLUSTER lists all)`,
  );
}

function planned({ cluster, fileName, parameters, given, simulated }: ClusterInput, withSearches = true): Situation {
  return inFile(fileName, () =>
    situationOf(cluster, parameters, { searches: withSearches ? 'all' : 'none', simulated, ...given }),
  );
}

/** Tries changes until all are tried or the time is over; a started one is finished. */
function helpFor(input: ClusterInput, question: Extract<Question, { about: 'help' }>, { seconds = '8' }: ExplainOptions): Answer {
  const limit = Number(seconds);
  if (!(limit > 0)) throw new InvalidArgumentError('ARGUMENT_RANGE', `--seconds '${seconds}' must be a number above 0`);
  const { cluster, machines, fileName, parameters, environment, given } = input;
  const line = progressLine();
  const end = performance.now() + 1000 * limit;
  const tried: Tried[] = [];
  let total = 0;
  try {
    inFile(fileName, () => {
      const roots = new Map(machines.map(({ system, root }) => [system, root]));
      for (const progress of tryChanges({ cluster, roots, parameters, environment, ...given }, question)) {
        tried.push(progress.tried);
        total = progress.total;
        line.update(`${progress.done}/${total} trying changes …`);
        if (performance.now() > end) break;
      }
    });
  } finally {
    line.done();
  }
  return answerHelp(question, tried, total - tried.length);
}

function answerLines({ title, sentences }: Answer): string[] {
  const paint = colorsFor(process.stdout);
  return [paint.bold(title), ...sentences.map((sentence) => `  ${sentence}`)];
}

function formsLines(name: string): string[] {
  const paint = colorsFor(process.stdout);
  const width = Math.max(...questionForms.map(({ example }) => example.length));
  const lines = questionForms.map(({ example, purpose }) => `  ${example.padEnd(width)}  ${paint.dim(purpose)}`);
  return [paint.bold(`Ask in words of your own: tccl explain ${name} QUESTION`), ...lines];
}
