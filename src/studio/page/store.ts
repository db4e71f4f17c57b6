import { computed, signal } from '@preact/signals';
import { describeError } from '../../errors.js';
import { partOfFile } from '../files.js';
import type { Excerpt, Known, OpenFile, Reply, Request, Shown } from '../messages.js';
import { readSavedStudio } from '../saved.js';
import { NARROW } from '../../view/choice/axis.js';
import { exampleState, fragmentOf, stateOf, type StudioState } from '../state.js';

/** The state of the page. It is the fragment of the address: Back undoes, a copied address reproduces the view. */

/** The state that is shown. */
export const state = signal<StudioState>(stateOf(location.hash));
/** The views of the latest state that could be shown. */
export const shown = signal<Shown | undefined>(undefined);
/** An error of what was entered or opened: it stays until something else is entered or opened. */
const refused = signal<string | undefined>(undefined);
/** An error of the latest request, or of the page's server: it stays until a request succeeds. */
const failed = signal<string | undefined>(undefined);
/** The error that is shown. */
export const problem = computed(() => refused.value ?? failed.value);
/** The place of an error of the worker, with its text: another problem has none. */
export const place = signal<{ readonly of: string; readonly excerpt: Excerpt | undefined } | undefined>(undefined);
/** Progress of the worker; undefined while it rests. */
export const busy = signal<string | undefined>(undefined);
/** Names of the opened files, the newest last. */
export const fileNames = signal<readonly string[]>([]);
/** Width of pictures on a phone; undefined on larger screens. */
export const phoneWidth = signal(phoneWidthNow());
/** Variables of NCCL with their meanings; empty until the worker has begun. */
export const variables = signal<ReadonlyMap<string, string>>(new Map());
/** Completions of the question that is typed, with what it gives. */
export const completions = signal<readonly (readonly [text: string, detail: string])[]>([]);
/** The machines of the catalogue with their descriptions; empty until the worker has begun. */
export const machines = signal<readonly (readonly [name: string, description: string])[]>([]);
/** Subject of the selected marks, with those that go with it. */
export const selected = computed(() => state.value.selected);

/** Borders of page and frame beside a picture, and pixels of one at least. */
const BESIDE = 40;
const LEAST_WIDTH = 280;

function phoneWidthNow(): number | undefined {
  return window.innerWidth < NARROW ? Math.max(LEAST_WIDTH, window.innerWidth - BESIDE) : undefined;
}

/** Bytes at most of a file. */
const MOST_FILE_BYTES = 2 ** 30;
/** Files at most that describe a machine together, and bytes of each: outputs of tools are short. */
const MOST_IN_SET = 64;
const MOST_SET_BYTES = 2 ** 22;

const files = new Map<string, OpenFile>();
let nextKey = 1;

const READING = 'reading …';

/** Files that are being opened, with the files that had their names and the state before: they stay if they can be shown. */
let opening: Opening | undefined;

interface Opening {
  readonly before: StudioState;
  readonly files: ReadonlyMap<string, OpenFile | undefined>;
  /** True when the worker has been asked for them. Until then it may answer an earlier request. */
  isRequested: boolean;
}

/** Says why what was entered or opened is not taken. */
export function refuse(text: string): void {
  refused.value = text;
}

/** Removes the error that is shown. */
export function closeProblem(): void {
  refused.value = undefined;
  failed.value = undefined;
}

/** Changes the state as the user wants and adds it to the history. */
export function change(part: Partial<StudioState>): void {
  refused.value = undefined;
  go(part, 'push');
}

/** Changes the state; `replace` changes the present entry of the history. */
function go(part: Partial<StudioState>, how: 'push' | 'replace'): void {
  const next = { ...state.value, ...part };
  const fragment = `#${fragmentOf(next)}`;
  if (how === 'push' && fragment !== location.hash) history.pushState(null, '', fragment);
  else history.replaceState(null, '', fragment);
  apply(next);
}

function apply(next: StudioState): void {
  const before = state.value;
  state.value = next;
  // The tab and most selections change what is drawn, not what is computed.
  const needed = ({ selected = '' }: StudioState) => (/^(?:link|path)\//.test(selected) ? selected : '');
  const key = (each: StudioState) => JSON.stringify({ ...each, view: '', selected: needed(each), step: 0 });
  const isMissing = next.view !== 'log' && shown.value?.part?.view !== next.view;
  if (key(before) !== key(next) || shown.value === undefined || isMissing) request();
}

/** Reports at most that are kept of a watched job, and their characters. */
const MOST_REPORTS = 200;
const MOST_REPORT_CHARACTERS = 2 ** 26;

/** Name of what `tccl inspect` says, for the list of opened files. */
const INSPECTED = 'the inspected jobs';

/** Shows jobs that the page's own server follows, by lines of recordings of `tccl watch` or of `tccl inspect --json`. */
export function follow(address: string): void {
  const name = 'the watched job';
  const lines: string[] = [];
  let length = 0;
  let hasBegun = false;
  const events = new EventSource(address);
  events.onmessage = ({ data }: MessageEvent<string>) => {
    lines.push(data);
    length += data.length;
    while (lines.length > MOST_REPORTS || (length > MOST_REPORT_CHARACTERS && lines.length > 2))
      length -= lines.shift()?.length ?? 0;
    files.set(name, { key: nextKey++, name, blob: new Blob([lines.join('\n'), '\n']) });
    fileNames.value = [...files.keys()];
    if (lines.length === 1 && state.value.file !== name) go({ file: name, view: 'log' }, 'replace');
    if (state.value.file === name) request();
  };
  events.addEventListener('inspection', ({ data }: MessageEvent<string>) => {
    files.set(INSPECTED, { key: nextKey++, name: INSPECTED, blob: new Blob([data, '\n']) });
    fileNames.value = [...files.keys()];
    if (state.value.file !== INSPECTED && !hasBegun) go({ file: INSPECTED, fileSet: [], view: 'log' }, 'replace');
    else if (state.value.file === INSPECTED) request();
    hasBegun = true;
  });
  events.addEventListener('problem', ({ data }: MessageEvent<string>) => (failed.value = data));
  events.onerror = () => (failed.value = 'tccl studio does not answer: what is shown is the last report');
}

/** All opened files, for one that holds them all. */
export function allFiles(): OpenFile[] {
  return [...files.values()];
}

/** Opens files: shows the cluster of the topologies among them, else the last, or the view of a `.tccl` file. */
export function open(opened: readonly { readonly name: string; readonly blob: Blob }[]): void {
  refused.value = undefined;
  const saved = opened.find(({ name }) => /\.tccl$/i.test(name));
  if (saved !== undefined) {
    void openSaved(saved.name, saved.blob);
    return;
  }
  const large = opened.find(({ blob }) => blob.size > MOST_FILE_BYTES);
  if (large !== undefined) {
    refuse(
      `${large.name}: ${Math.round(large.blob.size / 2 ** 20)} MiB are more than the ${MOST_FILE_BYTES / 2 ** 20} MiB that the page reads; tccl log takes longer logs`,
    );
    return;
  }
  if (opened.length === 0) return;
  take(opened);
  busy.value = READING;
  void show(opened);
}

/** Adds files until it is known whether they can be shown. */
function take(opened: readonly { readonly name: string; readonly blob: Blob }[]): void {
  forget();
  opening = { before: state.value, files: new Map(opened.map(({ name }) => [name, files.get(name)])), isRequested: false };
  for (const { name, blob } of opened) files.set(name, { key: nextKey++, name, blob });
}

/** Shows the opened files: the address changes when they are shown. */
function propose(next: StudioState): void {
  state.value = next;
  if (opening !== undefined) opening.isRequested = true;
  request();
}

/** The opened files are shown: they stay, and their state comes into the address. */
function keep(): void {
  if (opening?.isRequested !== true) return;
  opening = undefined;
  fileNames.value = [...files.keys()];
  const fragment = `#${fragmentOf(state.value)}`;
  if (fragment !== location.hash) history.pushState(null, '', fragment);
}

/** The opened files cannot be shown: they go, and the state before comes back. */
function forget(): void {
  if (opening === undefined) return;
  const { before, files: previous } = opening;
  opening = undefined;
  for (const [name, file] of previous) {
    if (file === undefined) files.delete(name);
    else files.set(name, file);
  }
  // A setting can have come into the address meanwhile, with the file.
  const isInAddress = location.hash === `#${fragmentOf(state.value)}`;
  state.value = before;
  if (isInAddress) history.replaceState(null, '', `#${fragmentOf(before)}`);
}

async function show(opened: readonly { readonly name: string; readonly blob: Blob }[]): Promise<void> {
  const names: Record<'topology' | 'graphs' | 'other', string[]> = { topology: [], graphs: [], other: [] };
  const set: string[] = [];
  for (const { name, blob } of opened) {
    const part = await partOf(blob);
    names[part].push(name);
    if (part === 'other' && blob.size <= MOST_SET_BYTES && set.length < MOST_IN_SET) set.push(name);
  }
  const { topology, graphs, other } = names;
  const graphFile = graphs.at(-1);
  const env = graphFile === undefined ? {} : { env: { ...state.value.env, NCCL_GRAPH_FILE: graphFile } };
  const file = topology[0] ?? other.at(-1);
  if (file === undefined) propose({ ...state.value, ...env, channel: undefined, selected: undefined });
  else
    propose({
      ...state.value,
      ...env,
      file,
      fileSet: topology.length === 0 && set.length > 1 ? set : [],
      nodes: 1,
      channel: undefined,
      selected: undefined,
      gpusOff: [],
      nicsOff: [],
      edits: [],
      hardware: '',
      others: topology.slice(1).join(', '),
      ask: '',
      view: topology.length > 0 && other.length > 0 ? 'log' : 'machine',
    });
}

/** A damaged compressed file is one of no part: the worker says what is wrong. */
function partOf(blob: Blob): ReturnType<typeof partOfFile> {
  return partOfFile(blob).catch(() => 'other');
}

async function openSaved(name: string, blob: Blob): Promise<void> {
  try {
    const saved = readSavedStudio(name, await blob.text());
    take(saved.files);
    propose(stateOf(saved.state));
  } catch (error) {
    refuse(describeError(error));
  }
}

/** Starts a worker; undefined until the browser has read its script. */
let startWorker: (() => Worker) | undefined;
let worker: Worker | undefined;
let latest = 0;
/** True while the worker has a request that is not done. */
let isWorking = false;

/** Shows the example, which is planned when the page is built, if neither the address nor a file names something else. */
export function showBeginning(example: Shown, first: readonly unknown[]): void {
  if (state.value === exampleState && first.length === 0) shown.value = example;
}

/** Begins to follow the address, and shows the first state. */
export function begin(makeWorker: () => Worker, first: readonly { readonly name: string; readonly blob: Blob }[]): void {
  startWorker = makeWorker;
  const follow = () => {
    refused.value = undefined;
    forget();
    apply(stateOf(location.hash));
  };
  window.addEventListener('popstate', follow);
  window.addEventListener('hashchange', follow);
  window.addEventListener('resize', () => {
    const width = phoneWidthNow();
    if (width === phoneWidth.value) return;
    phoneWidth.value = width;
    request();
  });
  if (first.length > 0 && (location.hash.length <= 1 || state.value.file === undefined)) open(first);
  else {
    for (const { name, blob } of first) files.set(name, { key: nextKey++, name, blob });
    fileNames.value = [...files.keys()];
    // A phone shows the picture of the page until the worker has drawn its own.
    if (shown.value === undefined || state.value !== exampleState || phoneWidth.value !== undefined) request();
    else {
      // The example is shown already: the worker plans it so that the first change takes as long as later ones.
      readyWorker()?.postMessage(messageOf(latest));
    }
  }
}

/** Asks for completions of a question. */
export function complete(question: string): void {
  worker?.postMessage({ question });
}

function messageOf(id: number): Request {
  return { id, state: state.value, width: phoneWidth.value, files: [...files.values()] };
}

/** Ends the work on the present state; the views of the latest one stay. Another worker has completions and tables of fields. */
export function cancel(): void {
  stop();
  forget();
  readyWorker();
}

function stop(): void {
  worker?.terminate();
  worker = undefined;
  isWorking = false;
  latest++;
  busy.value = undefined;
}

/** Has the worker show the present state; ends its work on an older one. */
function request(): void {
  if (isWorking) stop();
  if (startWorker === undefined) return; // begin() requests what the state is then
  const id = ++latest;
  const ready = readyWorker();
  if (ready === undefined) return;
  busy.value = 'planning …';
  ready.postMessage(messageOf(id));
  isWorking = true;
}

/** The worker, started if there is none; undefined if the browser refuses it. */
function readyWorker(): Worker | undefined {
  try {
    return (worker ??= startWorker && listen(startWorker()));
  } catch (error) {
    failed.value = describeError(error);
    return undefined;
  }
}

function listen(started: Worker): Worker {
  started.onmessage = ({ data }: MessageEvent<Reply | Known>) => {
    if (data.kind === 'tables') {
      variables.value = new Map(data.variables);
      machines.value = data.machines;
      return;
    }
    if (data.kind === 'completions') {
      completions.value = data.completions;
      return;
    }
    if (data.id !== latest) return;
    if (data.kind === 'progress') {
      busy.value = data.text;
      return;
    }
    isWorking = data.kind === 'shown' && !data.isLast;
    const isReading = opening?.isRequested === false;
    busy.value = isWorking ? 'looking for an answer …' : isReading ? READING : undefined;
    if (data.kind === 'error') {
      place.value = { of: data.message, excerpt: data.excerpt };
      if (opening?.isRequested !== true) failed.value = data.message;
      else {
        refuse(data.message);
        forget();
        if (shown.value === undefined) request();
      }
      return;
    }
    failed.value = undefined;
    shown.value = data.shown;
    keep();
    const own = data.shown.plan?.ownCount;
    if (own !== undefined && own !== state.value.nodes) {
      // The address says what the file says.
      state.value = { ...state.value, nodes: own };
      history.replaceState(null, '', `#${fragmentOf(state.value)}`);
    }
    const { view } = state.value;
    if (data.shown.plan === undefined && view !== 'log') go({ view: 'log' }, 'replace');
    else if (data.shown.log === undefined && view === 'log') go({ view: 'machine' }, 'replace');
  };
  started.onerror = (event) => {
    stop();
    forget();
    failed.value = `the worker failed: ${event.message}`;
  };
  return started;
}
