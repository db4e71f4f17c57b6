import type { FlightCall, FlightMessage, FlightRecording } from '../readers/flight.js';
import type { KinetoCall, KinetoTrace } from '../readers/kineto.js';
import type { TimedCall } from '../readers/timeline.js';
import type { ScheduledCollective } from '../schedule/schedule.js';
import { collectivesOfTests } from '../schedule/schedule.js';
import type { DataTypeName } from '../tuning/names.js';

/** One rank's calls with times, from a recording in any format. */
export interface RankTrace {
  readonly rank: number;
  /** File or files that it was read from. */
  readonly file: string;
  /** Ranks of the job, where the recording says so. */
  readonly nRanks?: number | undefined;
  readonly nccl?: string | undefined;
  readonly gpu?: string | undefined;
  readonly calls: readonly RankCall[];
  /** Times in which the GPU computed, µs: ascending, without overlap. Undefined where the recording lacks them. */
  readonly compute: readonly Interval[] | undefined;
  /**
   * `gpu`: starts of kernels. `cpu`: when the program made the calls. `none`: durations only, so that calls follow each other
   * without a gap. `order`: dependencies in place of times, by {@link order}.
   */
  readonly clock: 'gpu' | 'cpu' | 'none' | 'order';
  /** Something that the recording lacks, and how to record it. */
  readonly lacks?: string;
  /** Steps of a recording that has dependencies in place of times, the work of all of them, and the time with known calls, µs. */
  readonly order?: { readonly steps: readonly TraceStep[]; readonly workUs: number; readonly endUs: number };
}

/** A rank makes a call, or does nothing until it has ended, after that much work of its own, µs. */
export interface TraceStep {
  readonly kind: 'issue' | 'wait';
  readonly call: RankCall;
  readonly atUs: number;
}

/** Start and end, µs. */
export type Interval = readonly [startUs: number, endUs: number];

/** A rank's part in a call. */
export interface RankCall {
  /** Communicator: calls of all ranks with the same text belong to the same. */
  readonly group: string;
  /** Name for messages. */
  readonly groupName: string;
  /** Ranks of the communicator in its order; undefined where the recording lacks them. */
  readonly members: readonly number[] | undefined;
  /** Number of its ranks; 0 where the recording lacks it. */
  readonly size: number;
  /** The same for all ranks of the call; undefined where the recording has none. */
  readonly sequence: string | undefined;
  /** The recording's name of the call. */
  readonly operation: string;
  /** Undefined where it is none that is simulated. */
  readonly collective: ScheduledCollective | undefined;
  /** Messages to and from other ranks: of sends and receives, and of all-to-alls whose parts differ. */
  readonly messages?: readonly RankMessage[] | undefined;
  /** Size as nccl-tests counts it; 0 where the recording lacks it. */
  readonly bytes: number;
  readonly type: DataTypeName | undefined;
  readonly startUs: number;
  /** Undefined where it was not recorded. */
  readonly durationUs: number | undefined;
  /** Calls of one stream run one after the other. */
  readonly stream: string;
}

/** Bytes that a rank sends to another one, or receives from it. */
export interface RankMessage {
  readonly isSend: boolean;
  /** The other rank, by its number in the job. */
  readonly peer: number;
  readonly bytes: number;
}

/** A profile of PyTorch. @param rank where the profile lacks it */
export function ofKineto(profile: KinetoTrace, file: string, rank: number): RankTrace {
  const calls = profile.calls.map((call): RankCall => {
    const { group, ranks, size, id, startUs, durationUs, stream, inputElements, outputElements } = call;
    const operation = call.messages.length > 1 ? BATCH : call.operation;
    const collective = collectiveNamed(operation);
    const type = typeNamed(call.type);
    const messages = call.messages.map(({ elements, type: own, ...message }) => ({ ...message, bytes: elements * widthOf(own) }));
    const bytes = sizeOf(collective, inputElements, outputElements, size) * widthOf(call.type);
    return {
      ...{
        ...groupKey(group, ranks),
        members: ranks,
        size,
        sequence: id,
        operation,
        collective,
        type,
        startUs,
        durationUs,
        stream,
      },
      ...(messages.length > 0 ? { messages, bytes: busiest(messages) } : { messages: partsOf(call), bytes }),
    };
  });
  const { nRanks, nccl, gpu, compute } = profile;
  return { rank: profile.rank ?? rank, file, nRanks, nccl, gpu, calls, compute, clock: 'gpu' };
}

/** The messages of an all-to-all whose parts differ; undefined of all other calls. */
function partsOf(call: KinetoCall): readonly RankMessage[] | undefined {
  const { operation, ranks, inputSplits, outputSplits, inputElements, outputElements, type } = call;
  if (ranks === undefined || collectiveNamed(operation) !== 'AllToAll') return undefined;
  const sent = (isSend: boolean, splits: readonly number[] | undefined, elements: number): RankMessage[] => {
    const rows = splits?.reduce((sum, each) => sum + each, 0) ?? 0;
    return ranks.map((peer, place) => {
      const share = splits === undefined || rows === 0 ? 1 / ranks.length : (splits[place] ?? 0) / rows;
      return { isSend, peer, bytes: Math.round(elements * share) * widthOf(type) };
    });
  };
  if (inputSplits === undefined && outputSplits === undefined) return undefined;
  return [...sent(true, inputSplits, inputElements), ...sent(false, outputSplits, outputElements)];
}

/** The larger one of the sums that a rank sends and receives. */
export function busiest(messages: readonly RankMessage[]): number {
  const sum = (sends: boolean) => messages.reduce((all, { isSend, bytes }) => all + (isSend === sends ? bytes : 0), 0);
  return Math.max(sum(true), sum(false));
}

/** A flight recording of PyTorch. Calls run on the GPU after the CPU made them, those of a group one after the other. */
export function ofFlight({ rank, calls, messages, groups }: FlightRecording, file: string): RankTrace {
  const ends = new Map<string, number>();
  const batches = new Map<number, FlightMessage[]>();
  for (const message of messages) {
    const own = batches.get(message.batch);
    if (own === undefined) batches.set(message.batch, [message]);
    else own.push(message);
  }
  const made: readonly MadeCall[] = [...calls, ...[...batches.values()].map((batch) => batchOfFlight(batch, groups))].sort(
    (a, b) => a.order - b.order,
  );
  const known = made.flatMap(({ group, sequence, operation, measured, messages: sent }): RankCall[] => {
    if (measured === undefined) return [];
    const members = groups.get(group);
    const size = members?.length ?? 0;
    const { inputElements, outputElements, createdUs, durationUs } = measured;
    const startUs = Math.max(createdUs, ends.get(group) ?? 0);
    ends.set(group, startUs + (durationUs ?? 0));
    const collective = collectiveNamed(operation);
    const bytes = sizeOf(collective, inputElements, outputElements, size) * widthOf(measured.type);
    return [
      {
        ...{ ...groupKey(group, members), members, size, operation, collective, startUs, durationUs, stream: group },
        sequence: sequence < 0 ? undefined : String(sequence),
        type: typeNamed(measured.type),
        ...(sent === undefined ? { bytes } : { messages: sent, bytes: busiest(sent) }),
      },
    ];
  });
  const nRanks = Math.max(0, ...[...groups.values()].map(({ length }) => length));
  return { rank, file, nRanks: nRanks || undefined, calls: known, compute: undefined, clock: 'cpu' };
}

type MadeCall = Pick<FlightCall, 'group' | 'sequence' | 'operation' | 'order' | 'measured'> & Pick<RankCall, 'messages'>;

/** Sends and receives that PyTorch gave NCCL together. */
function batchOfFlight(batch: readonly FlightMessage[], groups: FlightRecording['groups']): MadeCall {
  const [first] = batch;
  if (first === undefined) throw new RangeError('a batch without messages');
  const { group, direction, order, measured } = first;
  return {
    ...{ group, sequence: -1, operation: batch.length === 1 ? direction : BATCH, order },
    ...(measured === undefined ? {} : { measured }),
    messages: batch.flatMap((message): RankMessage[] => {
      const peer = groups.get(group)?.[message.peer];
      if (peer === undefined || message.measured === undefined) return [];
      const { inputElements, outputElements, type } = message.measured;
      const isSend = message.direction === 'send';
      return [{ isSend, peer, bytes: (isSend ? inputElements : outputElements) * widthOf(type) }];
    }),
  };
}

/** Records of NCCL Inspector, of any number of ranks. Ranks of a communicator below all have numbers of their own. */
export function ofInspector(timed: readonly TimedCall[], file: string): RankTrace[] {
  const byRank = new Map<number, TimedCall[]>();
  for (const call of timed) {
    const own = byRank.get(call.rank);
    if (own === undefined) byRank.set(call.rank, [call]);
    else own.push(call);
  }
  const nRanks = Math.max(0, ...timed.map((call) => call.nRanks ?? 0)) || undefined;
  return [...byRank].map(([rank, own]): RankTrace => {
    const hasClock = own.every(({ endUs }) => endUs !== undefined);
    let nowUs = 0;
    const calls = own.map((call): RankCall => {
      const { group, groupName = group, sequence, operation, durationUs, bytes = 0 } = call;
      const size = call.nRanks ?? 0;
      const startUs = hasClock ? (call.endUs ?? 0) - durationUs : nowUs;
      nowUs += durationUs;
      const collective = collectiveNamed(operation);
      const isPart = collective !== undefined && partsOfRanks.has(collective);
      return {
        ...{
          group,
          groupName,
          members: undefined,
          size,
          operation,
          collective,
          startUs,
          durationUs,
          stream: group,
          type: undefined,
        },
        // NCCL numbers the calls of each collective by themselves.
        sequence: sequence < 0 ? undefined : `${operation} ${sequence}`,
        bytes: bytes * (isPart ? Math.max(1, size) : 1),
      };
    });
    return {
      ...{ rank, file, nRanks, compute: undefined, clock: hasClock ? 'gpu' : 'none' },
      calls: hasClock ? calls.sort((a, b) => a.startUs - b.startUs) : calls,
    };
  });
}

/** Name of a communicator that the recording does not name. */
export const NO_NAME = 'unnamed';

/** Name of several sends and receives in one kernel. */
export const BATCH = 'sends and receives';

/** Groups of other ranks may have the same name. */
function groupKey(name: string, members: readonly number[] | undefined): Pick<RankCall, 'group' | 'groupName'> {
  return { group: `${name} of ${members?.join() ?? '?'}`, groupName: name === '' ? NO_NAME : name };
}

/** Collectives of which NCCL's API counts the part of one rank, nccl-tests those of all. */
export const partsOfRanks: ReadonlySet<ScheduledCollective> = new Set([
  'AllGather',
  'ReduceScatter',
  'Gather',
  'Scatter',
  'AllToAll',
]);

/** The larger buffer; of one alone, the parts of all ranks are computed, where their number is known. */
function sizeOf(collective: ScheduledCollective | undefined, input: number, output: number, size: number): number {
  const hasParts = collective !== undefined && partsOfRanks.has(collective) && collective !== 'AllToAll';
  if (!hasParts || (input > 0 && output > 0)) return Math.max(input, output);
  const isWhole = collective === 'ReduceScatter' || collective === 'Scatter' ? input > 0 : output > 0;
  return Math.max(input, output) * (isWhole ? 1 : size);
}

/** A collective by the name that PyTorch, NCCL or its kernel has for it: `_allgather_base`, `reduce_scatter_tensor_coalesced`. */
export function collectiveNamed(operation: string): ScheduledCollective | undefined {
  const plain = operation
    .toLowerCase()
    .replace(/^_/, '')
    .replace(/_(?:base|single|into_tensor|tensor|coalesced)(?=_|$)/g, '')
    .replace('all2all', 'alltoall')
    .replaceAll('_', '')
    .replace('alltoallv', 'alltoall');
  if (plain === 'barrier') return 'AllReduce';
  const found = Object.entries(collectivesOfTests).find(([name]) => name.replaceAll('_', '') === plain)?.[1];
  // A message is one half of a call of nccl-tests.
  return found === 'SendRecv' ? undefined : found;
}

/** Bytes of PyTorch's types of elements. */
const widths: Readonly<Record<string, number>> = {
  ...{ byte: 1, char: 1, bool: 1, short: 2, int: 4, long: 8, half: 2, float: 4, double: 8, bfloat16: 2 },
  ...{ float8_e4m3fn: 1, float8_e5m2: 1, complexfloat: 8, complexdouble: 16 },
};

function widthOf(type: string): number {
  return widths[type.toLowerCase()] ?? 0;
}

const types: Readonly<Record<string, DataTypeName>> = {
  ...{ byte: 'uint8', char: 'int8', bool: 'uint8', int: 'int32', long: 'int64', half: 'float16', float: 'float32' },
  ...{ double: 'float64', bfloat16: 'bfloat16', float8_e4m3fn: 'float8e4m3', float8_e5m2: 'float8e5m2' },
};

function typeNamed(name: string): DataTypeName | undefined {
  return types[name.toLowerCase()];
}
