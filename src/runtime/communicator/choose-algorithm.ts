import type { Algorithm, CallKind } from '../collectives/call.js';
import { PAT_MOST_RANKS } from '../collectives/pat.js';
import { callKinds } from '../device/kernels/kernels.js';
import { InternalError } from '../../errors.js';

/** Calls about at most `upToBytes` bytes, and more than those of the range before, take `algorithm`. */
export interface AlgorithmRange {
  readonly upToBytes: number;
  readonly algorithm: Algorithm;
}

/** For each kind of call its ranges, ascending; the last one goes to Infinity. */
export type AlgorithmTable = Readonly<Record<CallKind, readonly AlgorithmRange[]>>;

/** What the choice of an algorithm follows from: the same on all ranks of a communicator. */
export interface Situation {
  readonly nRanks: number;
  /** Whether all ranks share one segment. */
  readonly oneSegment: boolean;
  /** TCCL_ALGO: taken for every call that it can carry out. */
  readonly forced: Algorithm | undefined;
}

/** The kinds of call that an algorithm has; `direct` has all. */
const kindsOf: Readonly<Record<Exclude<Algorithm, 'direct'>, readonly CallKind[]>> = {
  ring: ['allReduce', 'broadcast', 'barrier', 'reduce', 'allGather', 'reduceScatter', 'allGatherV', 'reduceScatterV'],
  tree: ['allReduce', 'broadcast', 'barrier', 'reduce'],
  pat: ['allGather', 'reduceScatter'],
  nvls: ['allReduce', 'allGather', 'reduceScatter'],
  pairs: ['allToAll', 'gather', 'scatter', 'allToAllV'],
};

/** Up to this size, one slice of a tree, a tree's few messages win over a ring's many; measured (docs/notes/algorithms.md). */
const TREE_BYTES = 8 * 1024;
/** The same of PAT, for the block of a rank. */
const PAT_BYTES = 16 * 1024;

/**
 * Which algorithm carries out which call where no profile of this machine says so. Where all ranks share one segment,
 * *direct* wins at every size that was measured (docs/notes/performance.md).
 */
export function defaultTable(situation: Situation): AlgorithmTable {
  const kinds = Object.keys(callKinds) as CallKind[];
  return Object.fromEntries(kinds.map((kind) => [kind, rangesOf(kind, situation)])) as unknown as AlgorithmTable;
}

function rangesOf(kind: CallKind, { nRanks, oneSegment, forced }: Situation): AlgorithmRange[] {
  const always = (algorithm: Algorithm): AlgorithmRange[] => [{ upToBytes: Infinity, algorithm }];
  if (nRanks === 1 || (oneSegment && (forced ?? 'direct') === 'direct')) return always('direct');
  const has = (algorithm: Exclude<Algorithm, 'direct'>): boolean => kindsOf[algorithm].includes(kind);
  if (forced !== undefined && forced !== 'direct' && has(forced)) return always(forced);
  if (forced === 'nvls') return always('direct');
  if (!has('ring')) return always('pairs');
  // Two ranks are a tree, a ring and a pair at once.
  if (forced !== undefined || nRanks === 2) return always('ring');
  if (has('pat') && nRanks > 3 && nRanks <= PAT_MOST_RANKS) return [{ upToBytes: PAT_BYTES, algorithm: 'pat' }, ...always('ring')];
  if (has('tree')) return [{ upToBytes: TREE_BYTES, algorithm: 'tree' }, ...always('ring')];
  return always('ring');
}

/** Whether an algorithm has a kind of call, among so many ranks. */
export function carriesOut(algorithm: Algorithm, kind: CallKind, nRanks: number): boolean {
  if (algorithm === 'direct') return true;
  return kindsOf[algorithm].includes(kind) && (algorithm !== 'pat' || nRanks <= PAT_MOST_RANKS);
}

/** What a call about `bytes` bytes takes. */
export function algorithmFor(ranges: readonly AlgorithmRange[], bytes: number): Algorithm {
  const range = ranges.find(({ upToBytes }) => bytes <= upToBytes);
  if (range === undefined) throw new InternalError('INTERNAL', `no algorithm is given for ${bytes} bytes`);
  return range.algorithm;
}

/** What calls may take. */
export function algorithmsIn(table: AlgorithmTable): Algorithm[] {
  return [...new Set(Object.values(table).flatMap((ranges) => ranges.map(({ algorithm }) => algorithm)))];
}

/** `tree up to 262144 bytes, then ring`. */
export function rangesText(ranges: readonly AlgorithmRange[]): string {
  return ranges.map(({ algorithm, upToBytes }) => (upToBytes === Infinity ? algorithm : `${algorithm} up to ${upToBytes} bytes`)).join(', then ');
}
