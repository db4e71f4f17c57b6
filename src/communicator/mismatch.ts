import { decodeCall, describeCall, type Call } from '../collectives/call.js';
import type { Team } from '../device/team.js';
import { InvalidUsageError } from '../errors.js';

/** What a rank of this host posted as the operation that is under way here, or undefined if it has not yet. */
export function callOfPost(team: Team, localRank: number): Call | undefined {
  const view = new DataView(team.segment.buffer);
  const { kernels } = team;
  if (kernels.operationNumber() === 0) return undefined;
  if (view.getUint32((kernels.postAddress(localRank) >>> 0) + 4, true) !== kernels.operationNumber() >>> 0) return undefined;
  const called = kernels.calledAddress(localRank) >>> 0;
  return decodeCall(view.getUint32(called, true), view.getUint32(called + 4, true), view.getFloat64(called + 8, true));
}

/** The error for ranks that called different things, from their posts: the same on every rank. */
export function describeMismatch(team: Team, localRanks: readonly number[]): InvalidUsageError {
  return mismatchAmong(localRanks, (local) => callOfPost(team, local));
}

/** The same where something else tells what a rank called, if it has. */
export function mismatchAmong(localRanks: readonly number[], callOf: (localRank: number) => Call | undefined): InvalidUsageError {
  const callers = new Map<string, number[]>();
  localRanks.forEach((rank, local) => {
    const call = callOf(local);
    if (call === undefined) return;
    const text = describeCall(call);
    const ranks = callers.get(text);
    if (ranks === undefined) callers.set(text, [rank]);
    else ranks.push(rank);
  });
  const parts = [...callers].map(([text, ranks]) => `rank${ranks.length === 1 ? '' : 's'} ${ranks.join(', ')} called ${text}`);
  return new InvalidUsageError(
    'CALL_MISMATCH',
    `ranks do not call the same operation: ${parts.join('; ')}. All ranks of a communicator make the same calls in the same order`,
    { ranks: [...callers.values()].flat() },
  );
}
