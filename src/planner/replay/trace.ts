import type { FlightRecording } from '../readers/flight.js';
import type { KinetoTrace } from '../readers/kineto.js';
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
   * without a gap.
   */
  readonly clock: 'gpu' | 'cpu' | 'none';
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
  /** Size as nccl-tests counts it; 0 where the recording lacks it. */
  readonly bytes: number;
  readonly type: DataTypeName | undefined;
  readonly startUs: number;
  /** Undefined where it was not recorded. */
  readonly durationUs: number | undefined;
  /** Calls of one stream run one after the other. */
  readonly stream: string;
}

/** A profile of PyTorch. @param rank where the profile lacks it */
export function ofKineto(profile: KinetoTrace, file: string, rank: number): RankTrace {
  const calls = profile.calls.map((call): RankCall => {
    const { group, ranks, size, operation, id, startUs, durationUs, stream, inputElements, outputElements } = call;
    const collective = collectiveNamed(operation);
    const type = typeNamed(call.type);
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
      bytes: sizeOf(collective, inputElements, outputElements, size) * (widths[call.type.toLowerCase()] ?? 0),
    };
  });
  const { nRanks, nccl, gpu, compute } = profile;
  return { rank: profile.rank ?? rank, file, nRanks, nccl, gpu, calls, compute, clock: 'gpu' };
}

/** A flight recording of PyTorch. Calls run on the GPU after the CPU made them, those of a group one after the other. */
export function ofFlight({ rank, calls, groups }: FlightRecording, file: string): RankTrace {
  const ends = new Map<string, number>();
  const known = calls.flatMap(({ group, sequence, operation, measured }): RankCall[] => {
    if (measured === undefined) return [];
    const members = groups.get(group);
    const size = members?.length ?? 0;
    const { inputElements, outputElements, createdUs, durationUs } = measured;
    const startUs = Math.max(createdUs, ends.get(group) ?? 0);
    ends.set(group, startUs + (durationUs ?? 0));
    const collective = collectiveNamed(operation);
    return [
      {
        ...{ ...groupKey(group, members), members, size, operation, collective, startUs, durationUs, stream: group },
        sequence: sequence < 0 ? undefined : String(sequence),
        bytes: sizeOf(collective, inputElements, outputElements, size) * (widths[measured.type.toLowerCase()] ?? 0),
        type: typeNamed(measured.type),
      },
    ];
  });
  const nRanks = Math.max(0, ...[...groups.values()].map(({ length }) => length));
  return { rank, file, nRanks: nRanks || undefined, calls: known, compute: undefined, clock: 'cpu' };
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

/** Groups of other ranks may have the same name. */
function groupKey(name: string, members: readonly number[] | undefined): Pick<RankCall, 'group' | 'groupName'> {
  return { group: `${name} of ${members?.join() ?? '?'}`, groupName: name === '' ? NO_NAME : name };
}

/** Collectives of which NCCL's API counts the part of one rank, nccl-tests those of all. */
const partsOfRanks: ReadonlySet<ScheduledCollective> = new Set(['AllGather', 'ReduceScatter', 'Gather', 'Scatter', 'AllToAll']);

/** The larger buffer; of one alone, the parts of all ranks are computed, where their number is known. */
function sizeOf(collective: ScheduledCollective | undefined, input: number, output: number, size: number): number {
  const hasParts = collective !== undefined && partsOfRanks.has(collective) && collective !== 'AllToAll';
  if (!hasParts || (input > 0 && output > 0)) return Math.max(input, output);
  const isWhole = collective === 'ReduceScatter' || collective === 'Scatter' ? input > 0 : output > 0;
  return Math.max(input, output) * (isWhole ? 1 : size);
}

/** A collective by the name that PyTorch, NCCL or its kernel has for it: `_allgather_base`, `reduce_scatter_tensor_coalesced`. */
function collectiveNamed(operation: string): ScheduledCollective | undefined {
  const plain = operation
    .toLowerCase()
    .replace(/^_/, '')
    .replace(/_(?:base|single|into_tensor|tensor|coalesced)(?=_|$)/g, '')
    .replace('all2all', 'alltoall')
    .replaceAll('_', '');
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

const types: Readonly<Record<string, DataTypeName>> = {
  ...{ byte: 'uint8', char: 'int8', bool: 'uint8', int: 'int32', long: 'int64', half: 'float16', float: 'float32' },
  ...{ double: 'float64', bfloat16: 'bfloat16', float8_e4m3fn: 'float8e4m3', float8_e5m2: 'float8e5m2' },
};

function typeNamed(name: string): DataTypeName | undefined {
  return types[name.toLowerCase()];
}
