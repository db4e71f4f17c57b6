import { Fragment, type JSX } from 'preact';
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import type { Line } from '../../planner/explain/answer.js';
import { shownBy } from '../answer-links.js';
import type { Device, Shown, ShownPart, ShownPlan } from '../messages.js';
import { savedStudio } from '../saved.js';
import { exampleState, fragmentOf, type ViewName } from '../state.js';
import { MotionView } from './motion.js';
import { Settings } from './settings.js';
import { sheetOfLog, sheetOfPart } from '../sheets.js';
import { save, savePng, saveSvg } from './drawing.js';
import { startTour, Tour } from './tour.js';
import { droppedFiles } from './drops.js';
import {
  allFiles,
  busy,
  cancel,
  change,
  closeProblem,
  complete,
  completions,
  open,
  place,
  problem,
  refuse,
  shown,
  state,
} from './store.js';
import { ClusterView } from './cluster.js';
import { ChoiceView } from './choice.js';
import { LearnView } from './learn.js';
import { ChangesView, ChannelsView, LogView, MachineView, MatrixView } from './views.js';
import { WhyView } from './why.js';

const tabs: readonly (readonly [name: ViewName, label: string])[] = [
  ['machine', 'Machine'],
  ['cluster', 'Cluster'],
  ['matrix', 'Paths'],
  ['choice', 'Choice'],
  ['channels', 'Channels'],
  ['motion', 'Motion'],
  ['why', 'Why'],
  ['changes', 'Compare'],
  ['learn', 'Learn'],
  ['log', 'Incident'],
];

/** The page. */
export function App(): JSX.Element {
  useDrops();
  const views = shown.value;
  return (
    <>
      <header>
        <h1>
          tccl studio <span>{views?.plan?.title ?? state.value.file ?? ''}</span>
        </h1>
        <div class="row">
          <button type="button" class="jump" onClick={() => jumpTo('aside')}>
            Settings and files
          </button>
          <button type="button" onClick={() => history.back()}>
            Undo
          </button>
          <button type="button" onClick={() => history.forward()}>
            Redo
          </button>
          <button type="button" onClick={() => change(exampleState)}>
            Example
          </button>
          <button
            type="button"
            title="This view and all opened files, for others: open the file in the page"
            onClick={() => void saveAll()}
          >
            Save all
          </button>
          <button type="button" onClick={startTour}>
            Tour
          </button>
          <button type="button" onClick={() => window.print()}>
            Print
          </button>
        </div>
      </header>
      <div class="columns">
        <aside aria-label="Input">
          <Settings />
          <p class="hint">
            Drop or paste a topology (XML), a cluster file (YAML), a log of NCCL, or any files that tccl diagnose reads (also
            .gz). The page works without a network and sends nothing.
          </p>
          <button type="button" class="jump" onClick={() => jumpTo('[role=tablist]')}>
            Back to the views
          </button>
        </aside>
        <main aria-busy={busy.value !== undefined || (views === undefined && problem.value === undefined)}>
          <Status />
          <Tour />
          {views === undefined ? null : <Contents views={views} />}
        </main>
      </div>
    </>
  );
}

/** Scrolls to a part of the page, and moves the focus there: on a phone the settings are below the views. */
function jumpTo(selector: string): void {
  const part = document.querySelector(selector);
  part?.scrollIntoView();
  part?.querySelector<HTMLElement>('input, button:not([tabindex="-1"])')?.focus({ preventScroll: true });
}

async function saveAll(): Promise<void> {
  save('view.tccl', await savedStudio(fragmentOf(state.value), allFiles()));
}

function Status(): JSX.Element {
  const excerpt = place.value?.of === problem.value ? place.value?.excerpt : undefined;
  return (
    <>
      <div role="status" class="status">
        {busy.value === undefined ? '' : busy.value}
        {busy.value === undefined ? null : (
          <button type="button" onClick={cancel}>
            Cancel
          </button>
        )}
      </div>
      {problem.value === undefined ? null : (
        <p role="alert" class="problem">
          {problem.value}{' '}
          <button type="button" onClick={closeProblem}>
            Close
          </button>
          {excerpt === undefined ? null : (
            <code class="excerpt">
              {excerpt.line}: {excerpt.before}
              <mark>{excerpt.marked}</mark>
              {excerpt.after}
            </code>
          )}
        </p>
      )}
    </>
  );
}

function Contents({ views }: { readonly views: Shown }): JSX.Element {
  const { plan, log, unplanned } = views;
  return (
    <>
      {unplanned === undefined ? null : <p class="problem">The machine is not planned: {unplanned}</p>}
      {plan === undefined ? null : (
        <>
          <dl class="figures">
            {plan.figures.map(([value, label]) => (
              <div key={label}>
                <dt>{label}</dt>
                <dd>{value}</dd>
              </div>
            ))}
          </dl>
          {plan.limits.map(({ name, text }) => (
            <p key={name} class="limit">
              {name === undefined ? null : <b>{name}: </b>}
              {text}
            </p>
          ))}
          <Assumed {...plan.assumed} />
          <Questions views={views} />
        </>
      )}
      <Tabs views={views} />
      {plan === undefined || plan.notes.length === 0 ? null : (
        <details class="notes">
          <summary>{plan.notes.length === 1 ? '1 note' : `${plan.notes.length} notes`}</summary>
          <ul>
            {plan.notes.map((note) => (
              <li key={note}>{note}</li>
            ))}
          </ul>
        </details>
      )}
      {plan === undefined && log === undefined ? <p>There is nothing to show.</p> : null}
    </>
  );
}

/** All that is assumed about the machines, and what makes it certain. */
function Assumed({ facts, command }: ShownPlan['assumed']): JSX.Element | null {
  if (facts.length === 0) return null;
  return (
    <section class="card assumed" aria-label="Assumptions">
      <p>
        <b>{facts.length === 1 ? 'One fact is assumed.' : `${facts.length} facts are assumed.`}</b> To be certain, run on that
        machine <code>{command}</code>, and open the file. Or describe the devices in the field «Hardware».
      </p>
      <details>
        <summary>What is assumed</summary>
        <ul>
          {facts.map((fact) => (
            <li key={fact}>{fact}</li>
          ))}
        </ul>
      </details>
    </section>
  );
}

function Tabs({ views: { plan, log, part } }: { readonly views: Shown }): JSX.Element {
  const possible = tabs.filter(([name]) => (name === 'log' ? log !== undefined : plan !== undefined));
  const { view } = state.value;
  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const at = possible.findIndex(([name]) => name === view);
    const [next] = possible[(at + step + possible.length) % possible.length] ?? [];
    if (next === undefined) return;
    change({ view: next });
    document.getElementById(`tab-${next}`)?.focus();
  };
  const title = `${plan?.title ?? state.value.file ?? ''}: ${tabs.find(([name]) => name === view)?.[1] ?? ''}`;
  const ofPart = part?.view === view ? () => sheetOfPart(title, part) : undefined;
  const sheet = view === 'log' ? log && (() => sheetOfLog(title, log)) : ofPart;
  return (
    <>
      <div role="tablist" aria-label="Views" onKeyDown={move}>
        {possible.map(([name, label]) => (
          <button
            type="button"
            role="tab"
            id={`tab-${name}`}
            key={name}
            aria-selected={name === view}
            aria-controls="view"
            tabIndex={name === view ? 0 : -1}
            onClick={() => change({ view: name })}
          >
            {label}
          </button>
        ))}
      </div>
      <div role="tabpanel" id="view" aria-labelledby={`tab-${view}`}>
        {part === undefined || view === 'log' ? null : <Part part={part} />}
        {log !== undefined && view === 'log' ? <LogView log={log} /> : null}
      </div>
      {sheet === undefined ? null : (
        <div class="row export">
          <button type="button" onClick={() => saveSvg(view, sheet())}>
            Save the view as SVG
          </button>
          <button type="button" onClick={() => void savePng(view, sheet())}>
            Save the view as PNG
          </button>
        </div>
      )}
    </>
  );
}

/** The view that was made last; the one of a clicked tab follows. */
function Part({ part }: { readonly part: ShownPart }): JSX.Element {
  switch (part.view) {
    case 'machine':
      return <MachineView part={part} />;
    case 'cluster':
      return <ClusterView part={part} />;
    case 'matrix':
      return <MatrixView part={part} />;
    case 'choice':
      return <ChoiceView part={part} />;
    case 'channels':
      return <ChannelsView part={part} />;
    case 'motion':
      return <MotionView part={part} />;
    case 'why':
      return <WhyView part={part} />;
    case 'changes':
      return <ChangesView part={part} />;
    case 'learn':
      return <LearnView part={part} />;
  }
}

/** The box for questions, with the answer. */
function Questions({ views: { answer, plan } }: { readonly views: Shown }): JSX.Element {
  const { ask } = state.value;
  const [text, setText] = useState(ask);
  const devices = plan?.devices ?? [];
  // Before the page is painted: nothing is typed before it.
  useLayoutEffect(() => setText(ask), [ask]);
  useEffect(() => complete(text), [text]);
  return (
    <section class="questions" aria-label="Questions">
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          change({ ask: text.trim() });
        }}
      >
        <input
          aria-label="Ask a question about the plan"
          placeholder="what limits? · why 16 channels? · why Tree and not Ring at 4M?"
          list="questions"
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
        <button type="submit">Ask</button>
        <datalist id="questions">
          {completions.value.map(([whole, detail]) => (
            <option key={whole} value={whole}>
              {detail}
            </option>
          ))}
        </datalist>
      </form>
      {answer === undefined || ask === '' ? null : (
        <div class="card answer" aria-live="polite">
          <h2>
            <Sentence line={answer.title} devices={devices} />
          </h2>
          {answer.lines.map((line, index) => (
            <p key={index}>
              <Sentence line={line} devices={devices} />
            </p>
          ))}
        </div>
      )}
    </section>
  );
}

/** A sentence of an answer; a click on what it names shows it. */
function Sentence({
  line: { text, references },
  devices,
}: {
  readonly line: Line;
  readonly devices: readonly Device[];
}): JSX.Element {
  const links = references.flatMap((reference) => {
    const shows = shownBy(reference, devices);
    return shows === undefined ? [] : [{ reference, shows }];
  });
  const ends = [0, ...links.map(({ reference }) => reference.to)];
  return (
    <>
      {links.map(({ reference, shows }, index) => (
        <Fragment key={index}>
          {text.slice(ends[index], reference.from)}
          <button
            type="button"
            class="link"
            aria-label={'number' in reference ? `${reference.kind} ${reference.number}` : undefined}
            onClick={() => change(shows)}
          >
            {text.slice(reference.from, reference.to)}
          </button>
        </Fragment>
      ))}
      {text.slice(ends.at(-1))}
    </>
  );
}

/** Opens files that are dropped on the page, and texts that are pasted outside of fields. */
function useDrops(): void {
  // Before the page is painted: what is seen takes files.
  useLayoutEffect(() => {
    const allow = (event: DragEvent) => event.preventDefault();
    const drop = (event: DragEvent) => {
      event.preventDefault();
      droppedFiles(event.dataTransfer).then(open, () => {
        // Chromium has no entries of folders on a page from a disk.
        refuse('the browser does not give this page the files of the folder: choose it with «Open a folder», or drop its files');
      });
    };
    const paste = (event: ClipboardEvent) => {
      if (event.target instanceof HTMLInputElement) return;
      const files = [...(event.clipboardData?.files ?? [])].map((blob) => ({ name: blob.name, blob }));
      const text = event.clipboardData?.getData('text/plain') ?? '';
      if (files.length > 0) open(files);
      else if (text.trim() !== '') open([{ name: 'pasted text', blob: new Blob([text]) }]);
    };
    document.addEventListener('dragover', allow);
    document.addEventListener('drop', drop);
    document.addEventListener('paste', paste);
    return () => {
      document.removeEventListener('dragover', allow);
      document.removeEventListener('drop', drop);
      document.removeEventListener('paste', paste);
    };
  }, []);
}
