import type { JSX } from 'preact';
import { scheduledCollectives } from '../../planner/schedule/schedule.js';
import type { ShownPart, ShownPlan } from '../messages.js';
import { Drawing } from './drawing.js';
import { change, state } from './store.js';

/** Bandwidth that NCCL believes and its choice by size; and of one collective belief, prediction and measurement. */
export function ChoiceView({ plan, part }: { readonly plan: ShownPlan; readonly part: ShownPart | undefined }): JSX.Element {
  return (
    <>
      <Drawing picture={plan.choice} name="choice" />
      <CollectiveField of={scheduledCollectives} label="Times of" />
      {part?.view !== 'choice' ? null : (
        <>
          {part.note === undefined ? null : <p class="hint">{part.note}</p>}
          <Drawing picture={part.picture} name={`times-${state.value.collective}`} />
        </>
      )}
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
