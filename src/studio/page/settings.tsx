import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { describeError, InvalidArgumentError } from '../../errors.js';
import { ncclVariables } from '../../planner/nccl-variables.js';
import { unknownVariable } from '../../planner/plan/cluster-text.js';
import { machines } from '../../planner/topology/catalogue/machines.js';
import { parameterTable } from '../../planner/parameters.js';
import { variableMeanings } from '../../planner/variable-meanings.js';
import { coveredVersions, defaultVersion } from '../../planner/versions/version.js';
import { MOST_NODES, variablesOf } from '../state.js';
import { change, fileNames, open, problem, shown, state } from './store.js';

/** The machine, its count, the version, variables and devices that are taken out. */
export function Settings(): JSX.Element {
  const { nodes, nccl, file } = state.value;
  const versions = [...coveredVersions];
  const version = nccl ?? defaultVersion;
  return (
    <form class="settings" aria-label="Settings" onSubmit={(event) => event.preventDefault()}>
      <MachineField />
      <FileField />
      <label>
        Machines
        <input
          type="number"
          min={1}
          max={MOST_NODES}
          value={nodes}
          onChange={({ currentTarget: { valueAsNumber } }) => {
            if (Number.isInteger(valueAsNumber) && valueAsNumber >= 1 && valueAsNumber <= MOST_NODES)
              change({ nodes: valueAsNumber });
            else problem.value = `the number of machines must be a whole number from 1 to ${MOST_NODES}`;
          }}
        />
      </label>
      <label>
        NCCL
        <select
          aria-label="Version of NCCL"
          value={version}
          onChange={({ currentTarget: { value } }) => change({ nccl: value === defaultVersion ? undefined : value })}
        >
          {versions.map((each) => (
            <option key={each} value={each} selected={each === version}>
              {each}
            </option>
          ))}
        </select>
      </label>
      <Variables />
      <Removed />
      {file === undefined ? null : <p class="hint">{file} stays on this computer: the page sends nothing.</p>}
    </form>
  );
}

function MachineField(): JSX.Element {
  const { file, machine } = state.value;
  return (
    <label>
      Machine of the catalogue
      <input
        list="machines"
        value={file === undefined ? machine : ''}
        placeholder={file === undefined ? '' : file}
        spellcheck={false}
        onChange={({ currentTarget: { value } }) => {
          const [, name = '', count] = /^\s*(.*?)(?::(\d+))?\s*$/.exec(value) ?? [];
          if (name === '') return;
          change({
            machine: name,
            file: undefined,
            channel: undefined,
            selected: undefined,
            gpusOff: [],
            nicsOff: [],
            ...(count === undefined ? {} : { nodes: Math.min(MOST_NODES, Math.max(1, Number(count))) }),
          });
        }}
      />
      <datalist id="machines">
        {machines.map(({ name, description }) => (
          <option key={name} value={name}>
            {description}
          </option>
        ))}
      </datalist>
    </label>
  );
}

function FileField(): JSX.Element {
  const names = fileNames.value;
  return (
    <>
      <label class="file">
        Open a file
        <input
          type="file"
          multiple
          onChange={({ currentTarget }) => {
            open([...(currentTarget.files ?? [])].map((blob) => ({ name: blob.name, blob })));
            currentTarget.value = '';
          }}
        />
      </label>
      {names.length < 2 ? null : (
        <label>
          Opened files
          <select value={state.value.file} onChange={({ currentTarget: { value } }) => change({ file: value })}>
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

function Variables(): JSX.Element {
  const { env } = state.value;
  const [text, setText] = useState('');
  const add = () => {
    if (text.trim() === '') return;
    try {
      const more = variablesOf(text);
      for (const name of Object.keys(more)) {
        const wrong = unknownVariable(name);
        if (wrong !== undefined) throw new InvalidArgumentError('UNKNOWN_NAME', wrong);
      }
      setText('');
      change({ env: { ...env, ...more } });
    } catch (error) {
      problem.value = describeError(error);
    }
  };
  const named = text.split('=')[0]?.trim() ?? '';
  const meaning = parameterTable.find(({ variable }) => variable === named)?.doc ?? variableMeanings.get(named);
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
          onInput={({ currentTarget }) => setText(currentTarget.value)}
          onKeyDown={({ key }) => {
            if (key === 'Enter') add();
          }}
        />
        <button type="button" onClick={add}>
          Set
        </button>
      </div>
      {meaning === undefined ? null : <p class="hint">{meaning}</p>}
      <datalist id="variables">
        {[...ncclVariables].map((name) => (
          <option key={name} value={`${name}=`} />
        ))}
      </datalist>
    </fieldset>
  );
}

/** Devices that are taken out, and the one that is selected. */
function Removed(): JSX.Element {
  const { gpusOff, nicsOff, selected } = state.value;
  const device = shown.value?.plan?.devices.find(({ subject }) => subject === selected);
  const takeOut = () => {
    if (device === undefined) return;
    const { off } = device;
    change({
      selected: undefined,
      channel: undefined,
      ...('gpu' in off ? { gpusOff: [...gpusOff, off.gpu] } : { nicsOff: [...nicsOff, off.nic] }),
    });
  };
  return (
    <fieldset>
      <legend>Devices taken out</legend>
      <ul class="chips">
        {gpusOff.map((dev) => (
          <li key={`gpu ${dev}`}>
            GPU {dev}
            <button
              type="button"
              aria-label={`Put GPU ${dev} back`}
              onClick={() => change({ gpusOff: gpusOff.filter((each) => each !== dev) })}
            >
              ×
            </button>
          </li>
        ))}
        {nicsOff.map((name) => (
          <li key={`nic ${name}`}>
            {name}
            <button
              type="button"
              aria-label={`Put ${name} back`}
              onClick={() => change({ nicsOff: nicsOff.filter((each) => each !== name) })}
            >
              ×
            </button>
          </li>
        ))}
      </ul>
      {device === undefined ? (
        <p class="hint">Select a GPU or a network port in the picture to take it out.</p>
      ) : (
        <button type="button" onClick={takeOut}>
          Take out {device.name}
        </button>
      )}
    </fieldset>
  );
}
