import { nameRanks, oddRanks } from '../bootstrap/rank-list.js';
import { hasCommonCounts } from './call-traits.js';
import { decodeCall, describeArguments, describeCall, describeDifference, encodeCall, type Call } from './call.js';
import type { Team } from '../device/team.js';
import { InvalidUsageError } from '../../errors.js';
import { defined } from '../../defined.js';

/** The call that a rank of this host posted for the running operation; undefined before it has. */
export function callOfPost(team: Team, localRank: number): Call | undefined {
  const view = new DataView(team.segment.buffer);
  const { kernels } = team;
  if (kernels.operationNumber() === 0) return undefined;
  if (view.getUint32((kernels.postAddress(localRank) >>> 0) + 4, true) !== kernels.operationNumber() >>> 0) return undefined;
  const called = kernels.calledAddress(localRank) >>> 0;
  return decodeCall(view.getUint32(called, true), view.getUint32(called + 4, true), view.getFloat64(called + 8, true));
}

/** The last call of a rank of this host, which may be one call behind or ahead; undefined before its first call. */
export function lastCallOf({ segment, kernels }: Team, localRank: number): Call | undefined {
  const view = new DataView(segment.buffer);
  const [own, other] = [
    { post: kernels.postAddress(localRank) >>> 0, called: kernels.calledAddress(localRank) >>> 0 },
    { post: kernels.otherPostAddress(localRank) >>> 0, called: kernels.otherCalledAddress(localRank) >>> 0 },
  ].map(({ post, called }) => ({ sequence: view.getUint32(post + 4, true), called }));
  if (own === undefined || other === undefined) return undefined;
  const { sequence, called } = ((other.sequence - own.sequence) | 0) > 0 ? other : own;
  if (sequence === 0) return undefined;
  return decodeCall(view.getUint32(called, true), view.getUint32(called + 4, true), view.getFloat64(called + 8, true));
}

/**
 * Error for ranks with different calls: the same on every rank.
 *
 * @param callOf returns a rank's call, if known
 * @param partsOf returns the lengths in bytes of the parts that a rank gave, for calls in which all must be equal
 */
export function mismatchAmong(
  localRanks: readonly number[],
  callOf: (localRank: number) => Call | undefined,
  partsOf?: (localRank: number) => readonly number[],
): InvalidUsageError {
  const callers = new Map<string, Caller>();
  localRanks.forEach((rank, local) => {
    const call = callOf(local);
    if (call === undefined) return;
    const counts = hasCommonCounts(encodeCall(call)) ? partsOf?.(local).map((bytes) => bytes / call.type.bytes) : undefined;
    const text = describeCall(call);
    const caller = callers.get(text);
    if (caller === undefined) callers.set(text, { call, text: describeCall(call, counts), counts, ranks: [rank] });
    else caller.ranks.push(rank);
  });
  const differing = describeArguments([...callers.values()].map(({ call }) => call));
  const parts = [...callers.values()].map(({ text, ranks }) => `${nameRanks(ranks)} called ${text}`);
  return new InvalidUsageError(
    'CALL_MISMATCH',
    `ranks do not call the same operation: ${parts.join('; ')}${differing}${differenceOf([...callers.values()])}. All ranks of a communicator must make the same calls in the same order`,
    { ranks: oddRanks([...callers.values()].map(({ ranks }) => ranks)) },
  );
}

/** Ranks with the same call. */
interface Caller {
  readonly call: Call;
  readonly text: string;
  readonly counts: readonly number[] | undefined;
  readonly ranks: number[];
}

function differenceOf([first, second]: readonly Caller[]): string {
  if (first?.counts === undefined || second?.counts === undefined) return '';
  const difference = describeDifference(defined(first.ranks[0]), first.counts, defined(second.ranks[0]), second.counts);
  return difference === undefined ? '' : `: ${difference}`;
}

/** A rank's call, with the counts of a V form if known. */
interface Called {
  readonly rank: number;
  readonly call: Call;
  readonly counts?: readonly number[] | undefined;
  /** Number of the call among the rank's calls on the communicator, from 0. */
  readonly number?: number | undefined;
}

/** Error for two ranks whose calls met but differ. */
export function callMismatch(mine: Called, theirs: Called): InvalidUsageError {
  const { rank, call, counts } = mine;
  const [mineText, theirText] = [describeCall(call, counts), describeCall(theirs.call, theirs.counts)];
  if (mineText === theirText) {
    const why =
      mine.number === theirs.number
        ? 'the description of the call in its message was damaged on the way'
        : `its message says that this is its call number ${String(theirs.number)}, and rank ${rank} is at number ${String(mine.number)}: it left out or added calls, or the message was damaged on the way`;
    return new InvalidUsageError('CALL_MISMATCH', `rank ${theirs.rank} called ${theirText}, as rank ${rank} did, but ${why}`, {
      ranks: oddRanks([[rank], [theirs.rank]]),
    });
  }
  const difference =
    counts === undefined || theirs.counts === undefined
      ? undefined
      : describeDifference(rank, counts, theirs.rank, theirs.counts);
  const isElsewhere = mine.number !== undefined && theirs.number !== undefined && mine.number !== theirs.number;
  const place = isElsewhere ? `, its call number ${theirs.number}, while rank ${rank} is at number ${mine.number}` : '';
  return new InvalidUsageError(
    'CALL_MISMATCH',
    `rank ${rank} called ${mineText} where rank ${theirs.rank} called ${theirText}${place}${describeArguments([call, theirs.call])}; ` +
      `${difference === undefined ? '' : `${difference}; `}all ranks of a communicator must make the same calls in the same order`,
    { ranks: oddRanks([[rank], [theirs.rank]]) },
  );
}
