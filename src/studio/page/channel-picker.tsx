import { change, state } from './store.js';

/** Chooses the channel that a view shows, of `nChannels`. */
export function ChannelPicker({ nChannels }: { readonly nChannels: number }) {
  const { channel = 0 } = state.value;
  return (
    <label class="inline">
      Channel
      <select onChange={({ currentTarget: { value } }) => change({ channel: Number(value) })}>
        {Array.from({ length: nChannels }, (_, each) => (
          <option key={each} value={each} selected={each === channel}>
            {each}
          </option>
        ))}
      </select>
    </label>
  );
}
