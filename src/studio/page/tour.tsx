import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { ViewName } from '../state.js';
import { change } from './store.js';

/** A stop of the tour. */
interface Stop {
  readonly title: string;
  readonly text: string;
  readonly view: ViewName;
  /** Element that gets a frame. */
  readonly at: string;
}

const stops: readonly Stop[] = [
  {
    title: 'A cluster',
    text: 'These numbers are what NCCL decides for it. Below them stands what limits its rings.',
    view: 'machine',
    at: '.figures',
  },
  {
    title: 'The machine',
    text: 'Links have the colour of their load. Select a GPU, a network port or a link: it is then selected in every view, and the column of settings shows how it can be changed.',
    view: 'machine',
    at: '#view',
  },
  {
    title: 'What if',
    text: 'Choose another machine, more of them, another version of NCCL, or set variables: the plan follows. Undo takes the last change back.',
    view: 'machine',
    at: 'aside',
  },
  {
    title: 'What it changes',
    text: 'Compare shows the calls and decisions that your settings change, and the rules behind another version.',
    view: 'changes',
    at: '#view',
  },
  { title: 'Why', text: 'The search step by step: each obstacle can be drawn on the machine.', view: 'why', at: '#view' },
  {
    title: 'Ask',
    text: 'Write a question, such as «what limits» or «why 16 channels». Words of the answer lead to the views.',
    view: 'machine',
    at: '.questions',
  },
  {
    title: 'Your own files',
    text: 'Drop a topology, a log or the folder of an incident: nothing of it leaves the page. Learn explains NCCL on your machine, with exercises.',
    view: 'learn',
    at: '.files',
  },
];

const at = signal<number | undefined>(undefined);

/** Begins the tour. */
export function startTour(): void {
  go(0);
}

function go(index: number): void {
  const stop = stops[index];
  at.value = stop === undefined ? undefined : index;
  if (stop !== undefined) change({ view: stop.view });
}

/** The present stop of the tour; nothing while there is no tour. */
export function Tour(): JSX.Element | null {
  const index = at.value;
  const stop = index === undefined ? undefined : stops[index];
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (stop === undefined) return;
    heading.current?.focus();
    const element = document.querySelector(stop.at);
    element?.classList.add('toured');
    return () => element?.classList.remove('toured');
  }, [stop]);
  if (index === undefined || stop === undefined) return null;
  return (
    <section class="card tour" aria-label="Tour">
      <h2 tabIndex={-1} ref={heading}>{`${index + 1} of ${stops.length}: ${stop.title}`}</h2>
      <p>{stop.text}</p>
      <div class="row">
        <button type="button" disabled={index === 0} onClick={() => go(index - 1)}>
          Previous
        </button>
        <button type="button" onClick={() => go(index + 1)}>
          {index + 1 === stops.length ? 'Done' : 'Next'}
        </button>
        <button type="button" onClick={() => go(stops.length)}>
          End the tour
        </button>
      </div>
    </section>
  );
}
