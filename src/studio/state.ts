import { InvalidArgumentError } from '../errors.js';
import { type DeviceEdit, type DeviceEditName, describeEdit, deviceEdits } from '../planner/plan/device-edits.js';
import { type ScheduledCollective, scheduledCollectives } from '../planner/schedule/schedule.js';
import { windowsText } from '../planner/tuning/symmetric/reasons.js';
import { defaultVersion } from '../planner/versions/version.js';
import { windowKinds, type Windows } from '../planner/windows.js';

/** Names of the views, in the order of their tabs. */
export const viewNames = [
  'machine',
  'cluster',
  'matrix',
  'choice',
  'channels',
  'motion',
  'why',
  'changes',
  'learn',
  'log',
] as const;
/** Name of a view. */
export type ViewName = (typeof viewNames)[number];

/** All that a view depends on, but for the contents of files. It is the fragment of the page's address. */
export interface StudioState {
  /** A machine of the catalogue; ignored where a file is shown. */
  readonly machine: string;
  /** Name of an opened file. */
  readonly file: string | undefined;
  /** Names of opened files that describe the same machines as the file, as a folder does for `tccl plan`. */
  readonly fileSet: readonly string[];
  /** Number of equal machines. */
  readonly nodes: number;
  /** Version of NCCL; undefined for the default. */
  readonly nccl: string | undefined;
  /** Variables of NCCL. */
  readonly env: Readonly<Record<string, string>>;
  /** GPUs without ranks, by `dev`, and network devices that are not used, by name. */
  readonly gpusOff: readonly number[];
  readonly nicsOff: readonly string[];
  /** Changes of devices, in their order. */
  readonly edits: readonly DeviceEdit[];
  /** The equal machines whose devices are taken out or changed: all of them, or the first alone. */
  readonly edited: 'all' | 'first';
  /** Hardware of the machine in an opened file, as `8 x H100 SXM, 8 x 400G NIC`, in place of what is assumed; empty for that. */
  readonly hardware: string;
  /** Other hosts of the cluster: machines of the catalogue or opened files, each with a count, as `dgx-a100:2, b.xml`. */
  readonly others: string;
  /** Buffers of calls in symmetric windows. */
  readonly windows: Windows;
  readonly view: ViewName;
  /** Channel of the search whose ring is shown alone. */
  readonly channel: number | undefined;
  /** Graph of the channel that the cluster view draws. */
  readonly graph: 'ring' | 'tree';
  /** The call whose times and motion are shown; bytes as nccl-tests counts them. */
  readonly collective: ScheduledCollective;
  readonly bytes: number;
  /**
   * Another machine, as `dgx-a100:2`, or an opened file, which the comparison has at its left; empty for the same machine without
   * settings.
   */
  readonly against: string;
  /** Step of the searches that is drawn on the machine. */
  readonly step: number | undefined;
  /** Subject of the selected marks. */
  readonly selected: string | undefined;
  /** The question that is answered. */
  readonly ask: string;
}

/** The part of a state that no settings have changed; {@link settingsOf} names what has. */
export const unset = {
  nccl: undefined,
  env: {},
  gpusOff: [],
  nicsOff: [],
  edits: [],
  edited: 'all',
  others: '',
  windows: 'none',
} as const satisfies Partial<StudioState>;

/** Settings of a state as phrases. */
export function settingsOf({ nccl, env, gpusOff, nicsOff, edits, edited, others, windows }: StudioState): string[] {
  const devices = [
    ...gpusOff.map((dev) => `without GPU ${dev}`),
    ...nicsOff.map((name) => `without ${name}`),
    ...edits.map(describeEdit),
  ];
  return [
    ...(nccl === undefined || nccl === defaultVersion ? [] : [`NCCL ${nccl}`]),
    ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
    ...devices.map((change) => (edited === 'first' ? `${change} on the first host` : change)),
    ...(others === '' ? [] : [`with ${others}`]),
    ...(windows === 'none' ? [] : [`${windowsText(windows)} in symmetric windows`]),
  ];
}

/** The example that an empty page shows. */
export const exampleState: StudioState = {
  machine: 'dgx-h100',
  file: undefined,
  fileSet: [],
  nodes: 2,
  nccl: undefined,
  env: {},
  gpusOff: [],
  nicsOff: [],
  edits: [],
  edited: 'all',
  hardware: '',
  others: '',
  windows: 'none',
  view: 'machine',
  channel: undefined,
  graph: 'ring',
  collective: 'AllReduce',
  bytes: 2 ** 20,
  against: '',
  step: undefined,
  selected: undefined,
  ask: '',
};

/** Hosts at most: larger clusters are planned by the command line. */
export const MOST_NODES = 512;

/** Bytes at most of a call that is simulated. */
export const MOST_CALL_BYTES = 2 ** 34;

/** A state as the fragment of an address, without `#`. */
export function fragmentOf(state: StudioState): string {
  const parameters = new URLSearchParams();
  const set = (name: string, value: string | number | undefined) => {
    if (value !== undefined && value !== '') parameters.append(name, String(value));
  };
  // Traces in a file are replayed on the machine.
  if (state.file === undefined || state.machine !== exampleState.machine) set('machine', state.machine);
  set('file', state.file);
  for (const name of state.fileSet) set('file-set', name);
  set('nodes', state.nodes);
  set('nccl', state.nccl);
  for (const [name, value] of Object.entries(state.env)) set('env', `${name}=${value}`);
  for (const gpu of state.gpusOff) set('gpu-off', gpu);
  for (const nic of state.nicsOff) set('nic-off', nic);
  for (const { what, device } of state.edits) set('edit', `${what}:${device}`);
  if (state.edited !== 'all') set('edited', state.edited);
  set('hardware', state.hardware);
  set('others', state.others);
  if (state.windows !== 'none') set('windows', state.windows);
  if (state.view !== 'machine') set('view', state.view);
  set('channel', state.channel);
  if (state.graph !== 'ring') set('graph', state.graph);
  if (state.collective !== exampleState.collective) set('call', state.collective);
  if (state.bytes !== exampleState.bytes) set('bytes', state.bytes);
  set('against', state.against);
  set('step', state.step);
  set('selected', state.selected);
  set('ask', state.ask);
  return parameters.toString();
}

/** The state of a fragment. Values that make no sense are those of the example; a wrong machine is an error of the plan. */
export function stateOf(fragment: string): StudioState {
  const parameters = new URLSearchParams(fragment.replace(/^#/, ''));
  if ([...parameters.keys()].length === 0) return exampleState;
  const view = viewNames.find((name) => name === parameters.get('view')) ?? 'machine';
  const nodes = wholeNumber(parameters.get('nodes'));
  const bytes = wholeNumber(parameters.get('bytes'));
  return {
    machine: parameters.get('machine') ?? exampleState.machine,
    file: parameters.get('file') ?? undefined,
    fileSet: parameters.getAll('file-set'),
    nodes: nodes !== undefined && nodes >= 1 && nodes <= MOST_NODES ? nodes : 1,
    nccl: parameters.get('nccl') ?? undefined,
    env: Object.fromEntries(parameters.getAll('env').flatMap((text) => assignment(text) ?? [])),
    gpusOff: parameters.getAll('gpu-off').flatMap((text) => wholeNumber(text) ?? []),
    nicsOff: parameters.getAll('nic-off'),
    edits: parameters.getAll('edit').flatMap((text) => editOf(text) ?? []),
    edited: parameters.get('edited') === 'first' ? 'first' : 'all',
    hardware: parameters.get('hardware') ?? '',
    others: parameters.get('others') ?? '',
    windows: windowKinds.find((kind) => kind === parameters.get('windows')) ?? 'none',
    view,
    channel: wholeNumber(parameters.get('channel')),
    graph: parameters.get('graph') === 'tree' ? 'tree' : 'ring',
    collective: scheduledCollectives.find((name) => name === parameters.get('call')) ?? exampleState.collective,
    bytes: bytes !== undefined && bytes >= 1 && bytes <= MOST_CALL_BYTES ? bytes : exampleState.bytes,
    against: parameters.get('against') ?? '',
    step: wholeNumber(parameters.get('step')),
    selected: parameters.get('selected') ?? undefined,
    ask: parameters.get('ask') ?? '',
  };
}

function wholeNumber(text: string | null): number | undefined {
  return text !== null && /^\d{1,11}$/.test(text) ? Number(text) : undefined;
}

function editOf(text: string): DeviceEdit | undefined {
  const [, name, device] = /^([a-z-]+):(.+)$/s.exec(text) ?? [];
  const what = (Object.keys(deviceEdits) as DeviceEditName[]).find((each) => each === name);
  return what === undefined || device === undefined ? undefined : { what, device };
}

/** A machine or an opened file, and a count, as `dgx-a100:2`. */
interface CountedHosts {
  readonly name: string;
  readonly count: number | undefined;
}

/** Reads `dgx-a100:2`. */
export function machinesIn(text: string): CountedHosts {
  const [, name = '', count] = /^\s*(.*?)(?::(\d{1,9}))?\s*$/s.exec(text) ?? [];
  return { name, count: count === undefined ? undefined : Math.min(MOST_NODES, Math.max(1, Number(count))) };
}

/** Reads several, separated by commas. */
export function hostsIn(text: string): CountedHosts[] {
  return text
    .split(',')
    .map(machinesIn)
    .filter(({ name }) => name !== '');
}

/** Names in a state that may be those of opened files. */
export function filesOf({ file, fileSet, against, others, env }: StudioState): string[] {
  const names = [file, ...fileSet, against, env['NCCL_GRAPH_FILE'], ...hostsIn(others).map(({ name }) => name)];
  return [...new Set(names.flatMap((name) => (name === undefined || name === '' ? [] : [name])))];
}

function assignment(text: string): readonly (readonly [string, string])[] | undefined {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  return name === undefined || value === undefined ? undefined : [[name, value]];
}

/**
 * Variables as people write them: `NAME=VALUE`, separated by blanks or lines.
 *
 * @throws InvalidArgumentError for a word that sets nothing
 */
export function variablesOf(text: string): Record<string, string> {
  const words = text.split(/[\s,;]+(?=[A-Za-z_]+=)|\n/).flatMap((word) => (word.trim() === '' ? [] : [word.trim()]));
  return Object.fromEntries(
    words.map((word) => {
      const [pair] = assignment(word) ?? [];
      if (pair === undefined)
        throw new InvalidArgumentError('ARGUMENT_RANGE', `'${word}' sets nothing: write NAME=VALUE, as NCCL_CROSS_NIC=0`);
      return [pair[0].trim(), pair[1].trim()] as const;
    }),
  );
}
