import type { JSX } from 'preact';
import { scheduledCollectives } from '../../planner/schedule/schedule.js';
import type { ShownTimes } from '../messages.js';
import { Drawing } from './drawing.js';
import { change, state } from './store.js';

/** Bandwidth that NCCL believes and its choice by size; and of one collective belief, prediction and measurement. */
export function ChoiceView({ part: { believed, note, picture } }: { readonly part: ShownTimes }): JSX.Element {
  return (
    <>
      <Drawing picture={believed} name="choice" />
      <CollectiveField of={scheduledCollectives} label="Times of" />
      {note === undefined ? null : <p class="hint">{note}</p>}
      <Drawing picture={picture} name={`times-${state.value.collective}`} />
    </>
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
