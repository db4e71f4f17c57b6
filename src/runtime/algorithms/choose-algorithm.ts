import { algorithms, type Algorithm, type CallKind } from './call.js';
import { carriesOut, isOverConnections, traits } from './traits.js';
import { callKinds } from '../device/kernels/kernels.js';
import { InternalError } from '../../errors.js';
import { BUFFER_SLICE_BYTES } from './slices.js';

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
  /** Set if the ranks are on several hosts, each with one rank, or some with several that share memory. */
  readonly hosts?: 'of one rank' | 'of several ranks' | undefined;
  /** True if there are aggregators: all-reduces of several hosts then use *collnet*. */
  readonly aggregated?: boolean;
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

/** Calls of more bytes than `above`, up to `upTo`. */
interface Bounds {
  readonly above: number;
  readonly upTo: number;
}

const always: Bounds = { above: -1, upTo: Infinity };
/**
 * Calls that use *hierarchical* by default; measured (docs/notes/algorithms.md). Others use what ranks that share no memory
 * use. Between hosts of one rank, it is faster where it does not divide a call.
 */
const hierarchicalByDefault: Readonly<Record<NonNullable<ChoiceContext['hosts']>, Readonly<Partial<Record<CallKind, Bounds>>>>> =
  {
    'of one rank': { allReduce: { above: -1, upTo: BUFFER_SLICE_BYTES }, barrier: always },
    'of several ranks': {
      allReduce: always,
      barrier: always,
      allGather: { above: 16 * 1024, upTo: Infinity },
      reduceScatter: { above: 16 * 1024, upTo: Infinity },
      broadcast: { above: 8 * 1024, upTo: Infinity },
      reduce: { above: 8 * 1024, upTo: Infinity },
    },
  };

function rangesOf(kind: CallKind, { nRanks, oneSegment, hosts, aggregated = false, ...rest }: ChoiceContext): AlgorithmRange[] {
  const only = (algorithm: Algorithm): AlgorithmRange[] => [{ upToBytes: Infinity, algorithm }];
  // Within one host, aggregators have nothing to add.
  const forced = hosts === undefined && isOfAggregators(rest.forced) ? undefined : rest.forced;
  if (nRanks === 1 || (oneSegment && (forced ?? 'direct') === 'direct')) return only('direct');
  if (forced !== undefined) {
    if (carriesOut(forced, kind, nRanks)) return only(forced);
    if (!isOverConnections(forced)) return only('direct');
  }
  if (aggregated && hosts !== undefined && forced === undefined && kind === 'allReduce') return only('collnet');
  const ranges = algorithms
    .filter((algorithm) => isOverConnections(algorithm) && carriesOut(algorithm, kind, nRanks))
    .map((algorithm) => ({ upToBytes: traits[algorithm].defaultUpToBytes(nRanks), algorithm }))
    .filter(({ upToBytes }) => upToBytes > 0 && (forced === undefined || upToBytes === Infinity));
  ranges.sort((a, b) => (a.upToBytes < b.upToBytes ? -1 : 1));
  const bounds = hosts !== undefined && forced === undefined ? hierarchicalByDefault[hosts][kind] : undefined;
  if (bounds === undefined) return ranges;
  const { above, upTo } = bounds;
  const below = ranges.map(({ upToBytes, algorithm }) => ({ upToBytes: Math.min(upToBytes, above), algorithm }));
  const nBelow = above < 0 ? 0 : below.findIndex(({ upToBytes }) => upToBytes === above) + 1;
  const beyond = ranges.filter(({ upToBytes }) => upToBytes > upTo);
  return [...below.slice(0, nBelow), { upToBytes: upTo, algorithm: 'hierarchical' }, ...beyond];
}

/** True for the algorithms that need aggregators. */
export function isOfAggregators(algorithm: Algorithm | undefined): boolean {
  return algorithm === 'collnet' || algorithm === 'collnetchain';
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
