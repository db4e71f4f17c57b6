import type { Algorithm, CallKind } from '../collectives/call.js';
import { callKinds } from '../device/kernels/kernels.js';

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

/**
 * Which algorithm carries out which call where no profile of this machine says so. Where all ranks share one segment,
 * *direct* wins at every size that was measured (docs/performance.md).
 */
export function defaultTable({ oneSegment, forced }: Situation): AlgorithmTable {
  const algorithm = forced ?? (oneSegment ? 'direct' : 'ring');
  const always = [{ upToBytes: Infinity, algorithm }];
  const kinds = Object.keys(callKinds) as CallKind[];
  return Object.fromEntries(kinds.map((kind) => [kind, always])) as unknown as AlgorithmTable;
}
