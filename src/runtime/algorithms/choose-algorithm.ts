import { algorithms, type Algorithm, type CallKind } from './call.js';
import { carriesOut, isOverConnections, registry } from './registry.js';
import { callKinds } from '../device/kernels/kernels.js';
import { InternalError } from '../../errors.js';

/** Calls of at most `upToBytes` bytes, and more than those of the range before, use `algorithm`. */
export interface AlgorithmRange {
  readonly upToBytes: number;
  readonly algorithm: Algorithm;
}

/** Ranges of each kind of call, ascending; the last one ends at Infinity. */
export type AlgorithmTable = Readonly<Record<CallKind, readonly AlgorithmRange[]>>;

/** Inputs of the choice of an algorithm: the same on all ranks of a communicator. */
export interface ChoiceContext {
  readonly nRanks: number;
  /** True if all ranks share one segment. */
  readonly oneSegment: boolean;
  /** True if the ranks are on several hosts, some of which have several, and the ranks of each host share memory. */
  readonly isLayered?: boolean;
  /** TCCL_ALGO: used for every call that it supports. */
  readonly forced: Algorithm | undefined;
}

/**
 * Table of algorithms without a profile of this machine. If all ranks share one segment, *direct* is fastest at every size
 * that was measured (docs/notes/performance.md).
 */
export function defaultTable(situation: ChoiceContext): AlgorithmTable {
  const kinds = Object.keys(callKinds) as CallKind[];
  return Object.fromEntries(kinds.map((kind) => [kind, rangesOf(kind, situation)])) as unknown as AlgorithmTable;
}

/**
 * Calls of more bytes than these use *hierarchical* by default among hosts; measured (docs/notes/algorithms.md). Smaller ones,
 * and other kinds, use what ranks that share no memory use.
 */
const hierarchicalAbove: Readonly<Partial<Record<CallKind, number>>> = {
  allReduce: -1,
  barrier: -1,
  allGather: 16 * 1024,
  reduceScatter: 16 * 1024,
};

function rangesOf(kind: CallKind, { nRanks, oneSegment, isLayered = false, forced }: ChoiceContext): AlgorithmRange[] {
  const always = (algorithm: Algorithm): AlgorithmRange[] => [{ upToBytes: Infinity, algorithm }];
  if (nRanks === 1 || (oneSegment && (forced ?? 'direct') === 'direct')) return always('direct');
  if (forced !== undefined) {
    if (carriesOut(forced, kind, nRanks)) return always(forced);
    if (!isOverConnections(forced)) return always('direct');
  }
  const ranges = algorithms
    .filter((algorithm) => isOverConnections(algorithm) && carriesOut(algorithm, kind, nRanks))
    .map((algorithm) => ({ upToBytes: registry[algorithm].defaultUpToBytes(nRanks), algorithm }))
    .filter(({ upToBytes }) => upToBytes > 0 && (forced === undefined || upToBytes === Infinity));
  ranges.sort((a, b) => (a.upToBytes < b.upToBytes ? -1 : 1));
  const above = isLayered && forced === undefined ? hierarchicalAbove[kind] : undefined;
  if (above === undefined) return ranges;
  const below = ranges.map(({ upToBytes, algorithm }) => ({ upToBytes: Math.min(upToBytes, above), algorithm }));
  const first = below.findIndex(({ upToBytes }) => upToBytes === above);
  return above < 0 ? always('hierarchical') : [...below.slice(0, first + 1), ...always('hierarchical')];
}

/** The algorithm of a call of `bytes` bytes. */
export function algorithmFor(ranges: readonly AlgorithmRange[], bytes: number): Algorithm {
  const range = ranges.find(({ upToBytes }) => bytes <= upToBytes);
  if (range === undefined) throw new InternalError('INTERNAL', `no algorithm is given for ${bytes} bytes`);
  return range.algorithm;
}

/** All algorithms in a table. */
export function algorithmsIn(table: AlgorithmTable): Algorithm[] {
  return [...new Set(Object.values(table).flatMap((ranges) => ranges.map(({ algorithm }) => algorithm)))];
}

/** Text of ranges, such as `tree up to 262144 bytes, then ring`. */
export function rangesText(ranges: readonly AlgorithmRange[]): string {
  return ranges
    .map(({ algorithm, upToBytes }) => (upToBytes === Infinity ? algorithm : `${algorithm} up to ${upToBytes} bytes`))
    .join(', then ');
}
