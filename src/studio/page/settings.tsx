import type { JSX } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';
import { counted } from '../../counted.js';
import { describeError, InvalidArgumentError } from '../../errors.js';
import { type DeviceEditName, describeEdit } from '../../planner/plan/device-edits.js';
import { unknownAmong } from '../../planner/plan/unknown-variable.js';
import { coveredVersions, defaultVersion } from '../../planner/versions/version.js';
import type { Device } from '../messages.js';
import { type LinkEdits, linkEdits } from '../links.js';
import { machinesIn, MOST_NODES, variablesOf } from '../state.js';
import { Field } from './field.js';
import { change, fileNames, machines, open, refuse, shown, state, variables } from './store.js';

/** The machine, its count, the version, variables and devices that are taken out. */
export function Settings(): JSX.Element {
  const { file } = state.value;
  return (
    <form class="settings" aria-label="Settings" onSubmit={(event) => event.preventDefault()}>
      <MachineField />
      <FileField />
      <HardwareField />
      <CountField />
      <OthersField />
      <VersionField />
      <Variables />
      <Devices />
      {file === undefined ? null : <p class="hint">Opened files stay on this computer: the page sends nothing.</p>}
    </form>
  );
}

/** The number of machines; a file can have its own. */
function CountField(): JSX.Element {
  const { nodes, file } = state.value;
  const own = shown.value?.plan?.ownCount;
  return (
    <>
      <label>
        Machines
        <Field
          value={own ?? nodes}
          others={{
            type: 'number',
            min: 1,
            max: MOST_NODES,
            disabled: own !== undefined,
            'aria-describedby': own === undefined ? undefined : 'own-count',
          }}
          enter={({ valueAsNumber }) => {
            if (Number.isInteger(valueAsNumber) && valueAsNumber >= 1 && valueAsNumber <= MOST_NODES)
              change({ nodes: valueAsNumber });
            else refuse(`the number of machines must be a whole number from 1 to ${MOST_NODES}`);
          }}
        />
      </label>
      {own === undefined ? null : <p class="hint" id="own-count">{`${file ?? 'The file'} says how many.`}</p>}
    </>
  );
}

/** Hardware that the opened file does not name. */
function HardwareField(): JSX.Element | null {
  const { hardware } = state.value;
  if (hardware === '' && (shown.value?.plan?.assumed.facts.length ?? 0) === 0) return null;
  return (
    <label>
      Hardware
      <Field
        value={hardware}
        others={{ placeholder: '8 x H100 SXM, 8 x 400G NIC', spellcheck: false }}
        enter={({ value }) => change({ hardware: value.trim(), channel: undefined, selected: undefined })}
      />
    </label>
  );
}

function MachineField(): JSX.Element {
  const { file, fileSet, machine } = state.value;
  // Traces have no machine: the one of the catalogue is what they are replayed on.
  const isTraced = shown.value?.plan === undefined && shown.value?.log?.replay !== undefined;
  const isNamed = file === undefined || isTraced;
  return (
    <label>
      Machine of the catalogue
      <Field
        value={isNamed ? machine : ''}
        others={{ list: 'machines', placeholder: isNamed ? '' : file, spellcheck: false }}
        enter={({ value }) => {
          const { name, count } = machinesIn(value);
          if (name === '') return;
          change({
            machine: name,
            ...(isTraced ? { file, fileSet } : { file: undefined, fileSet: [] }),
            channel: undefined,
            selected: undefined,
            gpusOff: [],
            nicsOff: [],
            edits: [],
            hardware: '',
            ...(count === undefined ? {} : { nodes: count }),
          });
        }}
      />
      <datalist id="machines">
        {machines.value.map(([name, description]) => (
          <option key={name} value={name}>
            {description}
          </option>
        ))}
      </datalist>
    </label>
  );
}

function OthersField(): JSX.Element {
  return (
    <label>
      Other hosts beside them
      <Field
        value={state.value.others}
        others={{ list: 'others', placeholder: 'dgx-a100:2, b.xml', spellcheck: false }}
        enter={({ value }) => change({ others: value.trim(), selected: undefined })}
      />
      <datalist id="others">
        {[...fileNames.value, ...machines.value.map(([name]) => name)].map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </label>
  );
}

/** Versions of NCCL, the oldest first, as the slider has them. */
const versions = [...coveredVersions].reverse();

/** The version as a slider, with the rules that changed in it. */
function VersionField(): JSX.Element {
  const version = state.value.nccl ?? defaultVersion;
  const choose = (chosen: string | undefined) => change({ nccl: chosen === defaultVersion ? undefined : chosen });
  const at = versions.indexOf(version);
  const news = shown.value?.plan?.news;
  return (
    <fieldset>
      <legend>NCCL</legend>
      <div class="row">
        <input
          type="range"
          aria-label="Version of NCCL, as a slider"
          aria-valuetext={version}
          min={0}
          max={versions.length - 1}
          value={at}
          onChange={({ currentTarget: { valueAsNumber } }) => choose(versions[valueAsNumber])}
        />
        <select aria-label="Version of NCCL" value={version} onChange={({ currentTarget: { value } }) => choose(value)}>
          {coveredVersions.map((each) => (
            <option key={each} value={each} selected={each === version}>
              {each}
            </option>
          ))}
        </select>
      </div>
      {news === undefined ? null : (
        <details class="hint">
          <summary>{`${news.rules.length === 0 ? 'No rule' : counted(news.rules.length, 'rule')} changed since ${news.since}`}</summary>
          <ul>
            {news.rules.map(([name, text]) => (
              <li key={name}>
                <b>{name}</b>: {text}
              </li>
            ))}
          </ul>
        </details>
      )}
    </fieldset>
  );
}

function FileField(): JSX.Element {
  const names = fileNames.value;
  return (
    <>
      <label class="files">
        Open a file
        <input type="file" multiple onChange={openChosen} />
      </label>
      <label>
        Open a folder, as of an incident
        <input type="file" {...{ webkitdirectory: true }} onChange={openChosen} />
      </label>
      {names.length < 2 ? null : (
        <label>
          Opened files
          <select
            value={state.value.file}
            onChange={({ currentTarget: { value } }) =>
              change({
                file: value,
                fileSet: state.value.fileSet.includes(value) ? state.value.fileSet : [],
                nodes: 1,
                hardware: '',
              })
            }
          >
            {names.map((name) => (
              <option key={name} selected={name === state.value.file}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
    </>
  );
}

function openChosen({ currentTarget }: { readonly currentTarget: HTMLInputElement }): void {
  open([...(currentTarget.files ?? [])].map((blob) => ({ name: blob.webkitRelativePath || blob.name, blob })));
  currentTarget.value = '';
}

function Variables(): JSX.Element {
  const { env } = state.value;
  const [text, setText] = useState('');
  const [isWaiting, setWaiting] = useState(false);
  const known = new Set(variables.value.keys());
  const add = (entered: string) => {
    // The names come with the worker's first message: what is entered before is checked then.
    setWaiting(known.size === 0);
    if (known.size === 0 || entered.trim() === '') return;
    try {
      const more = variablesOf(entered);
      for (const name of Object.keys(more)) {
        const wrong = unknownAmong(name, known);
        if (wrong !== undefined) throw new InvalidArgumentError('UNKNOWN_NAME', wrong);
      }
      setText('');
      change({ env: { ...env, ...more } });
    } catch (error) {
      refuse(describeError(error));
    }
  };
  useLayoutEffect(() => {
    if (isWaiting && known.size > 0) add(text);
  }, [isWaiting, known.size]);
  const named = text.split('=')[0]?.trim() ?? '';
  const meaning = variables.value.get(named) ?? '';
  return (
    <fieldset>
      <legend>Variables of NCCL</legend>
      <ul class="chips">
        {Object.entries(env).map(([name, value]) => (
          <li key={name}>
            <code>{`${name}=${value}`}</code>
            <button
              type="button"
              aria-label={`Remove ${name}`}
              onClick={() => change({ env: Object.fromEntries(Object.entries(env).filter(([other]) => other !== name)) })}
            >
              ×
            </button>
          </li>
        ))}
      </ul>
      <div class="row">
        <input
          aria-label="Set a variable: NAME=VALUE"
          placeholder="NCCL_CROSS_NIC=0"
          list="variables"
          value={text}
          spellcheck={false}
          onInput={({ currentTarget }) => {
            setText(currentTarget.value);
            setWaiting(false);
          }}
          onKeyDown={({ key, currentTarget }) => {
            if (key === 'Enter') add(currentTarget.value);
          }}
        />
        <button type="button" onClick={() => add(text)}>
          Set
        </button>
      </div>
      {meaning === '' ? null : <p class="hint">{meaning}</p>}
      <datalist id="variables">
        {[...known].map((name) => (
          <option key={name} value={`${name}=`} />
        ))}
      </datalist>
    </fieldset>
  );
}

/** Devices that are taken out or changed, and the one that is selected. */
function Devices(): JSX.Element {
  const { gpusOff, nicsOff, edits, selected } = state.value;
  const devices = shown.value?.plan?.devices ?? [];
  const device = devices.find(({ subject }) => subject === selected);
  const link = selected?.startsWith('link/') === true ? linkEdits(selected, devices) : undefined;
  const changes = [
    ...gpusOff.map((dev) => ({
      text: `GPU ${dev} taken out`,
      label: `Put GPU ${dev} back`,
      undone: { gpusOff: gpusOff.filter((each) => each !== dev) },
    })),
    ...nicsOff.map((name) => ({
      text: `${name} taken out`,
      label: `Put ${name} back`,
      undone: { nicsOff: nicsOff.filter((each) => each !== name) },
    })),
    ...edits.map((edit, index) => ({
      text: describeEdit(edit),
      label: `Undo: ${describeEdit(edit)}`,
      undone: { edits: edits.filter((_, other) => other !== index) },
    })),
  ];
  return (
    <fieldset>
      <legend>Devices and links</legend>
      <EditedField />
      <ul class="chips">
        {changes.map(({ text, label, undone }, index) => (
          <li key={index}>
            {text}
            <button type="button" aria-label={label} onClick={() => change(undone)}>
              ×
            </button>
          </li>
        ))}
      </ul>
      <Selection devices={devices} />
      {device !== undefined ? (
        <DeviceButtons device={device} devices={devices} />
      ) : link !== undefined ? (
        <LinkButtons link={link} />
      ) : (
        <p class="hint">
          Select a GPU or a network port in the picture to take it out, slow it down or add another; or a link to slow it down or
          remove it.
        </p>
      )}
    </fieldset>
  );
}

/** The hosts that changes of devices are for, where there are several equal ones. */
function EditedField(): JSX.Element | null {
  const { edited } = state.value;
  const nEqual = shown.value?.plan?.nEqual ?? 1;
  if (nEqual === 1 && edited === 'all') return null;
  return (
    <label>
      Changes are for
      <select
        onChange={({ currentTarget: { value } }) => change({ edited: value === 'first' ? 'first' : 'all', channel: undefined })}
      >
        <option value="all" selected={edited === 'all'}>
          {nEqual === 2 ? 'both hosts' : `all ${nEqual} hosts`}
        </option>
        <option value="first" selected={edited === 'first'}>
          the first host only
        </option>
      </select>
    </label>
  );
}

/** Selects a device or link without a pointer. */
function Selection({ devices }: { readonly devices: readonly Device[] }): JSX.Element {
  const { selected } = state.value;
  const part = shown.value?.part;
  const pictures = part?.view === 'machine' ? part.hosts.map(({ picture }) => picture) : [];
  const subjects = pictures.flatMap(({ marks }) => marks.flatMap(({ subject }) => subject ?? []));
  const links = [...new Set(subjects)].filter((subject) => subject.startsWith('link/'));
  const option = (value: string, name: string) => (
    <option key={value} value={value} selected={value === selected}>
      {name}
    </option>
  );
  return (
    <label>
      Selected
      <select onChange={({ currentTarget: { value } }) => change({ selected: value === '' ? undefined : value })}>
        {option('', 'nothing')}
        {devices.map(({ subject, name }) => option(subject, name))}
        {links.map((subject) => option(subject, linkEdits(subject, devices).name))}
      </select>
    </label>
  );
}

function LinkButtons({ link: { name, edits } }: { readonly link: LinkEdits }): JSX.Element {
  return (
    <>
      <p class="hint">{edits.length === 0 ? `${name}: nothing of it can be changed.` : name}</p>
      <div class="row">
        {edits.map(({ what, device, label }) => (
          <button
            key={what}
            type="button"
            onClick={() => change({ edits: [...state.value.edits, { what, device }], selected: undefined })}
          >
            {label}
          </button>
        ))}
      </div>
    </>
  );
}

function DeviceButtons({
  device: { name, key, off },
  devices,
}: {
  readonly device: Device;
  readonly devices: readonly Device[];
}): JSX.Element {
  const { gpusOff, nicsOff, edits } = state.value;
  const possible: readonly (readonly [DeviceEditName, string])[] = [
    ...('gpu' in off
      ? ([
          ['half-nvlinks', 'Half its NVLinks'],
          ['no-nvlinks', 'No NVLinks'],
        ] as const)
      : ([['half-speed', 'Half its speed']] as const)),
    ['half-lanes', 'Half its PCIe lanes'],
    ['another', 'Add another like it'],
  ];
  const takeOut = () =>
    change({
      selected: undefined,
      channel: undefined,
      ...('gpu' in off ? { gpusOff: [...new Set([...gpusOff, off.gpu])] } : { nicsOff: [...new Set([...nicsOff, off.nic])] }),
    });
  return (
    <div class="row">
      <button type="button" onClick={takeOut}>
        Take out {name}
      </button>
      {possible.map(([what, label]) => (
        <button key={what} type="button" onClick={() => change({ edits: [...edits, { what, device: key }] })}>
          {label}
        </button>
      ))}
      {'gpu' in off ? <NewNvlink from={key} devices={devices} /> : null}
    </div>
  );
}

/** Adds an NVLink from a GPU to a chosen other one. */
function NewNvlink({ from, devices }: { readonly from: string; readonly devices: readonly Device[] }): JSX.Element {
  const others = devices.filter(({ key, off }) => 'gpu' in off && key !== from);
  return (
    <select
      aria-label="Add an NVLink to another GPU"
      onChange={({ currentTarget }) => {
        const { value } = currentTarget;
        currentTarget.value = '';
        if (value !== '') change({ edits: [...state.value.edits, { what: 'add-nvlink', device: `${from}+${value}` }] });
      }}
    >
      <option value="">Add an NVLink to …</option>
      {others.map(({ key, name }) => (
        <option key={key} value={key}>
          {name}
        </option>
      ))}
    </select>
  );
}
