import { ChannelPicker } from './channel-picker.js';
import type { JSX } from 'preact';
import type { ShownCluster } from '../messages.js';
import { Drawing } from './drawing.js';
import { change, state } from './store.js';
import { Findings } from './views.js';

/** A channel through every host and network port. */
export function ClusterView({ part }: { readonly part: ShownCluster }): JSX.Element {
  const { graph } = state.value;
  return (
    <>
      <div class="row">
        <ChannelPicker nChannels={part.nChannels} />
        <label class="inline">
          Graph
          <select onChange={({ currentTarget: { value } }) => change({ graph: value === 'tree' ? 'tree' : 'ring' })}>
            {(['ring', 'tree'] as const).map((each) => (
              <option key={each} value={each} selected={each === graph}>
                {each}
              </option>
            ))}
          </select>
        </label>
      </div>
      <Drawing picture={part.picture} name="cluster" />
      <p class="hint">
        Grey columns are rails: the ports of one number on all nodes. Rest the pointer on a line for its transport and devices.
      </p>
      {part.findings.length === 0 ? null : <h3>Faults of the cluster and its machines</h3>}
      <Findings findings={part.findings} />
    </>
  );
}
