import type { JSX } from 'preact';
import { scheduledCollectives } from '../../planner/schedule/schedule.js';
import { windowKinds, type Windows } from '../../planner/windows.js';
import type { ShownTimes } from '../messages.js';
import { Drawing } from './drawing.js';
import { change, state } from './store.js';

/** Bandwidth that NCCL believes and its choice by size; and of one collective belief, prediction and measurement. */
export function ChoiceView({ part: { believed, windows, note, picture } }: { readonly part: ShownTimes }): JSX.Element {
  return (
    <>
      <Drawing picture={believed} name="choice" />
      <p class="hint">Select a band to ask why NCCL chooses it.</p>
      <WindowsField />
      {windows === undefined ? null : <Drawing picture={windows} name="windows" />}
      <CollectiveField of={scheduledCollectives} label="Times of" />
      {note === undefined ? null : <p class="hint">{note}</p>}
      <Drawing picture={picture} name={`times-${state.value.collective}`} />
    </>
  );
}

const windowNames = [
  ['none', 'none'],
  ['both', 'input and result'],
  ['send', 'input only'],
  ['receive', 'result only'],
] as const satisfies readonly (readonly [Windows, string])[];

/** Buffers that lie in windows registered as symmetric, which other kernels serve. */
function WindowsField(): JSX.Element {
  return (
    <label class="inline">
      Buffers in symmetric windows
      <select
        onChange={({ currentTarget: { value } }) => {
          const chosen = windowKinds.find((kind) => kind === value);
          if (chosen !== undefined) change({ windows: chosen });
        }}
      >
        {windowNames.map(([kind, label]) => (
          <option key={kind} value={kind} selected={kind === state.value.windows}>
            {label}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Field of the collective that the state is about. */
export function CollectiveField({
  of,
  label,
}: {
  readonly of: readonly (typeof scheduledCollectives)[number][];
  readonly label: string;
}): JSX.Element {
  return (
    <label class="inline">
      {label}
      <select
        onChange={({ currentTarget: { value } }) => {
          const collective = of.find((each) => each === value);
          if (collective !== undefined) change({ collective });
        }}
      >
        {of.map((each) => (
          <option key={each} value={each} selected={each === state.value.collective}>
            {each}
          </option>
        ))}
      </select>
    </label>
  );
}
