import type { JSX } from 'preact';
import type {
  Changes,
  ShownChanges,
  ShownChannels,
  ShownFinding,
  ShownLog,
  ShownMachines,
  ShownMatrices,
  ShownReplay,
} from '../messages.js';
import type { Picture } from '../../view/draw/picture.js';
import { Drawing } from './drawing.js';
import { Field } from './field.js';
import { change, shown, state } from './store.js';

/** The machine: links coloured by the load of the rings, all of them or one. */
export function MachineView({ part: { hosts, over } }: { readonly part: ShownMachines }): JSX.Element {
  return (
    <>
      {over === undefined ? null : <ChannelsOver channels={over} />}
      {hosts.map(({ name, picture, channels }) => (
        <section key={name}>
          <LoadPicker channels={channels} />
          <Drawing picture={picture} name={`${name}-machine`} />
        </section>
      ))}
      <LoadLegend />
    </>
  );
}

/** Channels over the selected link; each can be shown alone. */
function ChannelsOver({ channels }: { readonly channels: readonly number[] }): JSX.Element {
  return (
    <p class="row" aria-live="polite">
      {channels.length === 0 ? 'No ring goes over the selected link.' : 'Rings over the selected link: channel'}
      {channels.map((channel) => (
        <button
          type="button"
          class="chip"
          key={channel}
          aria-label={`Show channel ${channel}`}
          onClick={() => change({ channel })}
        >
          {channel}
        </button>
      ))}
    </p>
  );
}

function LoadPicker({ channels }: { readonly channels: readonly number[] }): JSX.Element {
  const { channel } = state.value;
  return (
    <label class="inline">
      Load of
      <select onChange={({ currentTarget: { value } }) => change({ channel: value === '' ? undefined : Number(value) })}>
        <option value="" selected={channel === undefined}>
          the rings of all channels
        </option>
        {channels.map((each) => (
          <option key={each} value={each} selected={each === channel}>
            the ring of channel {each}
          </option>
        ))}
      </select>
    </label>
  );
}

function LoadLegend(): JSX.Element {
  const steps = [
    ['load0', 'no load'],
    ['load1', 'to 20 %'],
    ['load2', 'to 40 %'],
    ['load3', 'to 60 %'],
    ['load4', 'to 80 %'],
    ['load5', 'to 100 %'],
    ['full', 'more than it has'],
  ] as const;
  return (
    <ul class="legend tccl" aria-label="Colours of links">
      {steps.map(([name, label]) => (
        <li key={name}>
          <svg width="28" height="10" aria-hidden="true">
            <path d="M2 5L26 5" class={`t-pci s-${name}`} style={{ strokeWidth: '4px' }} />
          </svg>
          {label}
        </li>
      ))}
    </ul>
  );
}

/** Path types between all devices. */
export function MatrixView({ part: { hosts, path } }: { readonly part: ShownMatrices }): JSX.Element {
  return (
    <>
      <MeasuredPairs pictures={shown.value?.log?.pairs ?? []} />
      {hosts.map(({ name, picture }) => (
        <Drawing key={name} picture={picture} name={`${name}-paths`} />
      ))}
      {path === undefined ? (
        <p class="hint">Select a cell to see its path on the machine.</p>
      ) : (
        <section class="card" aria-live="polite">
          <p>{path.text}</p>
          <Drawing picture={path.picture} name="path" />
        </section>
      )}
    </>
  );
}

/** Heat maps of pairs that files have measurements of. */
function MeasuredPairs({ pictures }: { readonly pictures: readonly Picture[] }): JSX.Element {
  return (
    <>
      {pictures.map((picture, index) => (
        <Drawing key={picture.title} picture={picture} name={`pairs-${index}`} />
      ))}
    </>
  );
}

/** Rings through the machines; a channel or device can be selected. */
export function ChannelsView({ part: { hosts, uses } }: { readonly part: ShownChannels }): JSX.Element {
  return (
    <>
      {hosts.map((host) => (
        <section key={host.name}>
          <h3>{`Rings within ${host.name}`}</h3>
          <ul class="rings">
            {host.rings.map((ring) => (
              <li key={ring.channels.join(' ')}>
                {ring.channels.map((channel) => (
                  <button
                    type="button"
                    key={channel}
                    aria-pressed={state.value.channel === channel}
                    onClick={() => change({ channel: state.value.channel === channel ? undefined : channel })}
                  >
                    channel {channel}
                  </button>
                ))}
                {ring.entry === undefined ? null : <Chip text={ring.entry} subject={ring.ends[0]} kind="net" />}
                {ring.ranks.map((rank, index) => (
                  <Chip key={rank} text={String(rank)} subject={ring.subjects[index]} kind="gpu" />
                ))}
                {ring.exit === undefined ? null : <Chip text={ring.exit} subject={ring.ends[1]} kind="net" />}
              </li>
            ))}
          </ul>
        </section>
      ))}
      <h3>In use</h3>
      <dl class="uses">
        {uses.map(({ name, used, text }) => (
          <div key={name}>
            <dt>
              {name} <b class={used}>{used}</b>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}

function Chip({
  text,
  subject,
  kind,
}: {
  readonly text: string;
  readonly subject: string | undefined;
  readonly kind: string;
}): JSX.Element {
  const isChosen = subject !== undefined && state.value.selected === subject;
  return (
    <button
      type="button"
      class={`chip ${kind}`}
      aria-pressed={isChosen}
      onClick={() => change({ selected: isChosen ? undefined : subject })}
    >
      {text}
    </button>
  );
}

/** Differences that the settings make, or from another machine. */
export function ChangesView({ part: { changes } }: { readonly part: ShownChanges }): JSX.Element {
  return (
    <>
      <AgainstField />
      {changes === undefined ? (
        <p>
          Nothing is set yet. Set a variable, choose another version of NCCL, take a device out, or name another machine: this
          view compares the plans.
        </p>
      ) : (
        <Compared changes={changes} />
      )}
    </>
  );
}

function AgainstField(): JSX.Element {
  return (
    <label class="against">
      Compare with another machine, or an opened file
      <Field
        value={state.value.against}
        others={{ list: 'others', placeholder: 'dgx-a100:2', spellcheck: false }}
        enter={({ value }) => change({ against: value.trim() })}
      />
    </label>
  );
}

function Compared({
  changes: { from, to, rules, calls, decisions, pictures, isMarked },
}: {
  readonly changes: Changes;
}): JSX.Element {
  return (
    <>
      {isMarked ? <p class="hint">Dashed frames and lines: devices and links that are not the same on both sides.</p> : null}
      {pictures.map(([a, b], index) => (
        <div class="sides" key={index}>
          <Side name="a" of={from} picture={a} index={index} />
          <Side name="b" of={to} picture={b} index={index} />
        </div>
      ))}
      {rules.map(({ name, lines }) => (
        <section key={name} class="card">
          <h3>Rule {name}</h3>
          <ul>
            {lines.map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
        </section>
      ))}
      <h3>Calls, by NCCL's own model</h3>
      {calls.length === 0 ? (
        <p>No call takes another time or another way.</p>
      ) : (
        <Table name="Calls" head={['collective', 'size', 'a', 'time', 'b', 'time', 'b / a']} rows={calls} />
      )}
      <h3>Decisions</h3>
      {decisions.length === 0 ? (
        <p>All decisions are the same.</p>
      ) : (
        <Table name="Decisions" head={['part', 'what', 'a', 'b']} rows={decisions} />
      )}
    </>
  );
}

function Side({
  name,
  of,
  picture,
  index,
}: {
  readonly name: string;
  readonly of: string;
  readonly picture: Picture;
  readonly index: number;
}): JSX.Element {
  return (
    <div>
      <p class="side">
        <b>{name}</b> {of}
      </p>
      <Drawing picture={{ ...picture, title: `${name}: ${picture.title}` }} name={`${name}-${index}`} />
    </div>
  );
}

function Table({
  name,
  head,
  rows,
}: {
  readonly name: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}): JSX.Element {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={name}>
      <table>
        <thead>
          <tr>
            {head.map((cell, index) => (
              <th key={index} scope="col">
                {cell}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, column) => (
                <td key={column}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The diagnosis of the opened files: the verdict first. */
export function LogView({ log }: { readonly log: ShownLog }): JSX.Element {
  return (
    <>
      <p class="verdict">
        <b>{{ fault: 'Fault:', healthy: 'Healthy:', undecided: 'Undecided:', replayed: 'Replayed:' }[log.outcome]}</b>{' '}
        {log.verdict}
        {log.where === '' ? null : <small> in {log.where}</small>}
      </p>
      {log.also.length === 0 ? null : (
        <ul class="also" aria-label="Other likely causes">
          {log.also.map(([where, problem], index) => (
            <li key={index}>
              {where === '' ? 'Also: ' : <b>{where}: </b>}
              {problem}
            </li>
          ))}
        </ul>
      )}
      {log.open.map((sentence) => (
        <p key={sentence}>{sentence}</p>
      ))}
      <p class="hint">{log.facts.join(' · ')}</p>
      {log.replay === undefined ? null : <ReplayTables replay={log.replay} />}
      {log.ranks.map((picture, index) => (
        <Drawing key={picture.title} picture={picture} name={`ranks-${index}`} />
      ))}
      <MeasuredPairs pictures={log.pairs} />
      <Findings findings={log.findings} />
    </>
  );
}

/** A replay of traces on the cluster: its sums, kinds of calls, and ranks. */
function ReplayTables({ replay: { summary, calls, ranks, notes } }: { readonly replay: ShownReplay }): JSX.Element {
  return (
    <section aria-label="Replay of the traces">
      {summary.map(([label, text]) => (
        <p key={label}>
          <b>{label}</b> {text}
        </p>
      ))}
      {calls === undefined ? null : <Table name="Calls of the traces" {...calls} />}
      {ranks === undefined ? null : <Table name="Ranks of the traces" {...ranks} />}
      {notes.map((note) => (
        <p class="hint" key={note}>
          {note}
        </p>
      ))}
    </section>
  );
}

/** Findings with their remedies and places. */
export function Findings({ findings }: { readonly findings: readonly ShownFinding[] }): JSX.Element {
  return (
    <ul class="findings">
      {findings.map(({ severity, problem, why, remedy, lines }, index) => (
        <li key={index} class="card">
          <p>
            <b class={severity}>{severity}</b> {problem}
          </p>
          <p>{why}</p>
          <p>To do: {remedy}</p>
          {lines.map((line) => (
            <pre key={line}>{line}</pre>
          ))}
        </li>
      ))}
    </ul>
  );
}
