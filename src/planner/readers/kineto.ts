import { type Fields, isFields, wordOf } from './json.js';

/** A call of NCCL in a profile of PyTorch: a kernel, with what the program asked for. */
export interface KinetoCall {
  /** Name of the process group; empty where the profile lacks it. */
  readonly group: string;
  /** Ranks of the group in its order; undefined where the profile lacks or cuts them. */
  readonly ranks: readonly number[] | undefined;
  /** Number of ranks; 0 where the profile lacks it. */
  readonly size: number;
  /** PyTorch's name, or that of the kernel. */
  readonly operation: string;
  /** Type of the elements, as PyTorch names it. */
  readonly type: string;
  /** Elements of the input and of the output; 0 where the profile lacks them. */
  readonly inputElements: number;
  readonly outputElements: number;
  /** Rows of the input for each rank, and of the output from each, of an all-to-all; undefined where equal or cut. */
  readonly inputSplits: readonly number[] | undefined;
  readonly outputSplits: readonly number[] | undefined;
  /** Sends and receives that the kernel carries. */
  readonly messages: readonly KinetoMessage[];
  /** The same for all ranks of a call (`Comms Id`); undefined in older profiles. */
  readonly id: string | undefined;
  readonly stream: string;
  readonly startUs: number;
  readonly durationUs: number;
}

/** A message that a rank sends or receives. */
export interface KinetoMessage {
  readonly isSend: boolean;
  /** The other rank, by its number in the job. */
  readonly peer: number;
  readonly elements: number;
  /** Type of the elements, as PyTorch names it. */
  readonly type: string;
}

/** Profile of one rank: the Chrome trace that `torch.profiler` exports. */
export interface KinetoTrace {
  /** Undefined where the profile lacks it. */
  readonly rank: number | undefined;
  readonly nRanks: number | undefined;
  readonly nccl: string | undefined;
  readonly gpu: string | undefined;
  /** In the order of their starts. */
  readonly calls: readonly KinetoCall[];
  /** Times in which other kernels or copies ran, µs: ascending, without overlap. */
  readonly compute: readonly (readonly [startUs: number, endUs: number])[];
}

const EVENT_LIMIT = 20_000_000;
const computeKinds: ReadonlySet<unknown> = new Set(['kernel', 'gpu_memcpy', 'gpu_memset']);

/** True if a value of JSON is a profile of PyTorch. */
export function isKinetoTrace(value: unknown): value is Fields {
  return isFields(value) && Array.isArray(value['traceEvents']);
}

/** Reads the kernels of a profile. Times of the CPU are not read: kernels run later than they are launched. */
export function readKineto(value: Fields): KinetoTrace {
  const events = (value['traceEvents'] as readonly unknown[]).slice(0, EVENT_LIMIT).filter(isFields);
  const job = isFields(value['distributedInfo']) ? value['distributedInfo'] : {};
  const groups = groupsOf(job['pg_config']);
  // Older versions describe a call at the operator that launched its kernel.
  const asked = new Map<unknown, Fields>();
  for (const event of events) {
    const given = argsOf(event);
    if (event['name'] === 'record_param_comms' && 'Collective name' in given && 'External id' in given)
      asked.set(given['External id'], given);
  }
  const annotated = annotations(events, numberOf(job['world_size']));
  const batchOf = messageBatches(events);
  const calls: KinetoCall[] = [];
  const compute: [number, number][] = [];
  for (const event of events) {
    if (event['ph'] !== 'X' || !computeKinds.has(event['cat'])) continue;
    const [startUs, durationUs] = [Number(event['ts']), Number(event['dur'])];
    if (!Number.isFinite(startUs) || !(durationUs >= 0)) continue;
    const [, kernel] = /^nccl(?:Dev)?Kernel_?(\w+)/.exec(String(event['name'])) ?? [];
    if (kernel === undefined) {
      compute.push([startUs, startUs + durationUs]);
      continue;
    }
    const own = argsOf(event);
    const given =
      'Collective name' in own ? own : { ...own, ...(asked.get(own['External id']) ?? annotated(own['correlation'])) };
    const single = messageOf(given);
    const batch = single === undefined && kernel.startsWith('SendRecv') ? batchOf(own['correlation']) : [];
    const messages = single === undefined ? batch.flatMap((each) => messageOf(each) ?? []) : [single];
    // A batch has the group of its messages.
    const described = wordOf(given['Process Group Name']) === '' ? { ...batch[0], ...given } : given;
    calls.push({ ...callOf(described, kernel, groups), messages, stream: wordOf(own['stream']), startUs, durationUs });
  }
  const devices = Array.isArray(value['deviceProperties']) ? value['deviceProperties'].filter(isFields) : [];
  return {
    rank: numberOf(job['rank']),
    nRanks: numberOf(job['world_size']),
    nccl: wordOf(job['nccl_version']) || undefined,
    gpu: wordOf(devices[0]?.['name']) || undefined,
    calls: calls.sort((a, b) => a.startUs - b.startUs),
    compute: merged(compute),
  };
}

/** A part of a CPU thread in which it makes a call. */
interface Annotation {
  readonly fromUs: number;
  readonly toUs: number;
  readonly given: Fields;
}

/**
 * Profiles of PyTorch before 2.3 do not describe calls, but mark them (`nccl:all_reduce`, with the shape of the input) on the
 * thread that launches their kernels. Their process group is not known: that of all ranks is assumed.
 *
 * @returns a function that finds the description of a kernel by its correlation with a launch
 */
function annotations(events: readonly Fields[], nRanks: number | undefined): (correlation: unknown) => Fields | undefined {
  const byThread = new Map<string, Annotation[]>();
  const launches = new Map<unknown, Fields>();
  for (const event of events) {
    if (event['cat'] === 'cuda_runtime' || event['cat'] === 'cuda_driver') launches.set(argsOf(event)['correlation'], event);
    const [, name] = /^nccl:(\w+)$/.exec(wordOf(event['name'])) ?? [];
    if (event['cat'] !== 'user_annotation' || name === undefined) continue;
    const fromUs = Number(event['ts']);
    const { 'Input Dims': dims, 'Input type': types } = argsOf(event);
    const type = Array.isArray(types) ? wordOf(types[0]) : '';
    const given = {
      ...{ 'Collective name': name, 'In msg nelems': elementsOf(dims), 'Group size': nRanks },
      dtype: typesOfC[type] ?? type,
    };
    const own = byThread.get(threadOf(event)) ?? [];
    byThread.set(threadOf(event), own);
    own.push({ fromUs, toUs: fromUs + Number(event['dur']), given });
  }
  for (const own of byThread.values()) own.sort((a, b) => a.fromUs - b.fromUs);
  return (correlation) => {
    const launch = launches.get(correlation);
    if (launch === undefined) return undefined;
    const atUs = Number(launch['ts']);
    const last = (byThread.get(threadOf(launch)) ?? []).findLast(({ fromUs }) => fromUs <= atUs);
    return last !== undefined && atUs <= last.toUs ? last.given : undefined;
  };
}

/** The message of a send or a receive. */
function messageOf(given: Fields): KinetoMessage | undefined {
  const name = wordOf(given['Collective name']);
  const isSend = name === 'send';
  if (!isSend && name !== 'recv') return undefined;
  const peer = numberOf(given[isSend ? 'Dst Rank' : 'Src Rank']);
  if (peer === undefined) return undefined;
  const elements = numberOf(given[isSend ? 'In msg nelems' : 'Out msg nelems']) ?? 0;
  return { isSend, peer, elements, type: wordOf(given['dtype']) };
}

/**
 * Sends and receives that PyTorch gave NCCL together (`batch_isend_irecv`) are recorded one by one on the thread that then
 * launches their kernel.
 *
 * @returns a function that finds the records of a kernel by its correlation with a launch: those since the launch before
 */
function messageBatches(events: readonly Fields[]): (correlation: unknown) => readonly Fields[] {
  const correlations = new Set<unknown>();
  const byThread = new Map<string, { readonly atUs: number; readonly event: Fields; readonly isLaunch: boolean }[]>();
  for (const event of events)
    if (event['cat'] === 'kernel' && /^nccl(?:Dev)?Kernel_?SendRecv/.test(wordOf(event['name'])))
      correlations.add(argsOf(event)['correlation']);
  for (const event of events) {
    const isLaunch =
      (event['cat'] === 'cuda_runtime' || event['cat'] === 'cuda_driver') && correlations.has(argsOf(event)['correlation']);
    const isMessage = event['name'] === 'record_param_comms' && messageOf(argsOf(event)) !== undefined;
    if (!isLaunch && !isMessage) continue;
    const thread = threadOf(event);
    const own = byThread.get(thread) ?? [];
    byThread.set(thread, own);
    own.push({ atUs: Number(event['ts']), event, isLaunch });
  }
  const batches = new Map<unknown, readonly Fields[]>();
  for (const own of byThread.values()) {
    let pending: Fields[] = [];
    for (const { event, isLaunch } of own.sort((a, b) => a.atUs - b.atUs)) {
      if (!isLaunch) pending.push(argsOf(event));
      else {
        batches.set(argsOf(event)['correlation'], pending);
        pending = [];
      }
    }
  }
  return (correlation) => batches.get(correlation) ?? [];
}

function threadOf({ pid, tid }: Fields): string {
  return `${String(pid)} ${String(tid)}`;
}

/** PyTorch's names of types by those of C++. */
const typesOfC: Readonly<Record<string, string>> = {
  ...{ 'long int': 'Long', 'unsigned char': 'Byte', 'signed char': 'Char', 'short int': 'Short' },
  ...{ 'c10::Half': 'Half', 'c10::BFloat16': 'BFloat16' },
};

/** Elements of all tensors of a list of shapes. */
export function elementsOf(shapes: unknown): number {
  if (!Array.isArray(shapes)) return 0;
  return shapes.reduce(
    (sum: number, shape: unknown) =>
      sum + (Array.isArray(shape) ? shape.reduce((product: number, length: unknown) => product * Number(length), 1) : 0),
    0,
  );
}

function callOf(
  given: Fields,
  kernel: string,
  groups: ReadonlyMap<string, readonly number[]>,
): Omit<KinetoCall, 'messages' | 'stream' | 'startUs' | 'durationUs'> {
  const group = wordOf(given['Process Group Name'] ?? given['Process Group ID']);
  const size = numberOf(given['Group size']) ?? 0;
  return {
    group,
    ranks: ranksOf(given, size) ?? groups.get(group),
    size,
    operation: wordOf(given['Collective name']) || (/^[A-Za-z]+/.exec(kernel)?.[0] ?? kernel),
    type: wordOf(given['dtype']),
    inputElements: numberOf(given['In msg nelems']) ?? 0,
    outputElements: numberOf(given['Out msg nelems']) ?? 0,
    inputSplits: splitsOf(given['In split size'], size),
    outputSplits: splitsOf(given['Out split size'], size),
    id: wordOf(given['Comms Id']) || undefined,
  };
}

/** PyTorch writes lists as text, and cuts long ones; ranks at equal distances have a start and a distance, too. */
function ranksOf(given: Fields, size: number): readonly number[] | undefined {
  const listed = given['Process Group Ranks'];
  const ranks = Array.isArray(listed)
    ? listed.map(Number)
    : [...wordOf(listed).matchAll(/\d{1,7}/g)].map(([rank]) => Number(rank));
  if (ranks.length > 0 && ranks.length === size) return ranks;
  const [start, stride] = [numberOf(given['Global rank start']), numberOf(given['Global rank stride'])];
  return start === undefined || stride === undefined || start < 0 || stride < 1 || size > 1e6
    ? undefined
    : Array.from({ length: size }, (_, index) => start + index * stride);
}

/** Sizes of parts, one for each rank: a list, or its text, which PyTorch cuts where it is long. */
function splitsOf(listed: unknown, size: number): readonly number[] | undefined {
  const splits = Array.isArray(listed)
    ? listed.map(Number)
    : [...wordOf(listed).matchAll(/\d{1,15}/g)].map(([rows]) => Number(rows));
  return splits.length === size && splits.some((rows) => rows !== splits[0]) ? splits : undefined;
}

function groupsOf(config: unknown): ReadonlyMap<string, readonly number[]> {
  const listed = Array.isArray(config) ? config.filter(isFields) : [];
  return new Map(
    listed.flatMap((group): [string, number[]][] =>
      Array.isArray(group['ranks']) ? [[wordOf(group['pg_name']), group['ranks'].map(Number)]] : [],
    ),
  );
}

/** Intervals in ascending order, those that overlap as one. */
export function merged(intervals: readonly (readonly [number, number])[]): [number, number][] {
  const all: [number, number][] = [];
  for (const [start, end] of [...intervals].sort((a, b) => a[0] - b[0])) {
    const last = all.at(-1);
    if (last !== undefined && start <= last[1]) last[1] = Math.max(last[1], end);
    else all.push([start, end]);
  }
  return all;
}

function argsOf(event: Fields): Fields {
  return isFields(event['args']) ? event['args'] : {};
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}
