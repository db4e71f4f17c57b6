import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import type { Exercise, ShownLearn } from '../messages.js';
import { isSolution } from '../exercise.js';
import { change } from './store.js';

/** A given answer: its text, and the one that was checked last. */
interface Given {
  readonly answer: string;
  readonly checked: string | undefined;
}

const nothing: Given = { answer: '', checked: undefined };

/** Answers by their questions: they stay while a solution is looked at in another view. */
const given = signal<ReadonlyMap<string, Given>>(new Map());

/** Stages of NCCL with the values of this cluster, and exercises. */
export function LearnView({ part: { stages, exercises } }: { readonly part: ShownLearn }): JSX.Element {
  return (
    <>
      <ol class="stages">
        {stages.map(({ title, sentences, values, page, command, view }) => (
          <li key={title} class="card">
            <h3>{title}</h3>
            <p>{sentences.join(' ')}</p>
            <pre>{values.join('\n')}</pre>
            <p class="hint">
              Read on: <code>{page}</code> · In a terminal: <code>{command}</code>{' '}
              {view === undefined ? null : (
                <button type="button" class="chip" aria-label={`Show: ${title}`} onClick={() => change({ view })}>
                  show
                </button>
              )}
            </p>
          </li>
        ))}
      </ol>
      <h3>Exercises</h3>
      <p class="hint">Answer first, then look: the planner computes the solutions for this cluster.</p>
      <ol class="stages">
        {exercises.map((exercise) => (
          <li key={exercise.question} class="card">
            <Task exercise={exercise} />
          </li>
        ))}
      </ol>
    </>
  );
}

function Task({ exercise }: { readonly exercise: Exercise }): JSX.Element {
  const { question, options } = exercise;
  // The same question has another solution on another cluster.
  const key = `${question} ${exercise.solution}`;
  const { answer, checked } = given.value.get(key) ?? nothing;
  const give = (part: Partial<Given>) => (given.value = new Map(given.value).set(key, { answer, checked, ...part }));
  const setAnswer = (text: string) => give({ answer: text });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        give({ checked: answer });
      }}
    >
      <p>{question}</p>
      <div class="row">
        {options === undefined ? (
          <input aria-label={question} value={answer} onInput={({ currentTarget }) => setAnswer(currentTarget.value)} />
        ) : (
          <select aria-label={question} onChange={({ currentTarget }) => setAnswer(currentTarget.value)}>
            {['', ...options].map((option) => (
              <option key={option} value={option} selected={option === answer}>
                {option}
              </option>
            ))}
          </select>
        )}
        <button type="submit">Check</button>
        <button type="button" onClick={() => change(exercise.change)}>
          Show in the plan
        </button>
      </div>
      <p aria-live="polite">{checked === undefined ? '' : judgement(exercise, checked)}</p>
    </form>
  );
}

function judgement(exercise: Exercise, checked: string): string {
  if (checked.trim() === '') return 'Give an answer first.';
  return isSolution(exercise, checked) ? `Right. ${exercise.because}` : 'Not so. Look at the plan, and try again.';
}
