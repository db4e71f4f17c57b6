import type { JSX } from 'preact';
import { highlighted } from '../../view/machine/highlight.js';
import type { StoryStep } from '../../view/why/story.js';
import type { ShownReport, ShownWhy } from '../messages.js';
import { Drawing } from './drawing.js';
import { change, state } from './store.js';
import { Findings } from './views.js';

/** A sentence that can be drawn: its number is the state's step. */
interface Drawn {
  readonly number: number;
  readonly text: string;
  readonly places: readonly string[];
  readonly host: number;
}

/** The search of each graph as a story, each obstacle drawn on the machine, and findings of the doctor. */
export function WhyView({ part: { machines, reports, findings } }: { readonly part: ShownWhy }): JSX.Element {
  const drawn = drawnSteps(reports);
  const now = drawn.find(({ number }) => number === state.value.step);
  const at = now === undefined ? -1 : drawn.indexOf(now);
  const machine = now === undefined ? undefined : machines[now.host];
  const go = (index: number) => change({ step: drawn[index]?.number });
  return (
    <>
      {findings.length === 0 ? null : <h3>Faults of the cluster and its machines</h3>}
      <Findings findings={findings} />
      {drawn.length === 0 ? null : (
        <div class="row steps">
          <button type="button" disabled={at <= 0} onClick={() => go(at - 1)}>
            Previous obstacle
          </button>
          <button type="button" disabled={at + 1 >= drawn.length} onClick={() => go(at + 1)}>
            {at < 0 ? 'Draw the obstacles' : 'Next obstacle'}
          </button>
          {now === undefined ? null : (
            <button type="button" onClick={() => change({ step: undefined })}>
              Close the picture
            </button>
          )}
        </div>
      )}
      {now === undefined || machine === undefined ? null : (
        <section class="card" aria-live="polite">
          <p>{`${at + 1} of ${drawn.length}: ${now.text}`}</p>
          <Drawing picture={highlighted(machine, now.places, now.text)} name="obstacle" />
        </section>
      )}
      <Reports reports={reports} />
    </>
  );
}

function Reports({ reports }: { readonly reports: readonly ShownReport[] }): JSX.Element {
  let number = 0;
  return (
    <>
      {reports.map(({ title, steps }) => (
        <details key={title} open={reports.length <= 3}>
          <summary>{title}</summary>
          <ol>
            {steps.map((step, index) => {
              const first = number;
              number += step.details.length;
              return <Step key={index} step={step} first={first} />;
            })}
          </ol>
        </details>
      ))}
    </>
  );
}

function Step({ step: { text, details, alike }, first }: { readonly step: StoryStep; readonly first: number }): JSX.Element {
  return (
    <li>
      {text}
      <ul>
        {details.map(({ text: detail, places }, index) => (
          <li key={index}>
            {detail}{' '}
            {places.length === 0 ? null : (
              <button
                type="button"
                class="chip"
                aria-label={`Draw: ${detail}`}
                aria-pressed={state.value.step === first + index}
                onClick={() => change({ step: first + index })}
              >
                draw
              </button>
            )}
          </li>
        ))}
      </ul>
      {alike.length === 0 ? null : (
        <details>
          <summary>{alike.length === 1 ? 'One more step like it' : `${alike.length} more steps like it`}</summary>
          <ul>
            {alike.map((each) => (
              <li key={each}>{each}</li>
            ))}
          </ul>
        </details>
      )}
    </li>
  );
}

function drawnSteps(reports: readonly ShownReport[]): Drawn[] {
  return reports
    .flatMap(({ host, steps }) => steps.flatMap(({ details }) => details.map((detail) => ({ ...detail, host }))))
    .map((detail, number) => ({ ...detail, number }))
    .filter(({ places }) => places.length > 0);
}
