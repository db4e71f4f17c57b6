import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { Exercise, ShownLearn } from '../messages.js';
import { isSolution } from '../exercise.js';
import { change } from './store.js';

/** Stages of NCCL with the values of this cluster, and exercises. */
export function LearnView({ part: { stages, exercises } }: { readonly part: ShownLearn }): JSX.Element {
  return (
    <>
      <ol class="stages">
        {stages.map(({ title, sentences, values, page, view }) => (
          <li key={title} class="card">
            <h3>{title}</h3>
            <p>{sentences.join(' ')}</p>
            <pre>{values.join('\n')}</pre>
            <p class="hint">
              Read on: <code>{page}</code>{' '}
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
  const { question, options, because } = exercise;
  const [answer, setAnswer] = useState('');
  const [checked, setChecked] = useState<string>();
  const isRight = checked !== undefined && isSolution(exercise, checked);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        setChecked(answer);
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
      <p aria-live="polite">
        {checked === undefined ? '' : isRight ? `Right. ${because}` : 'Not so. Look at the plan, and try again.'}
      </p>
    </form>
  );
}
