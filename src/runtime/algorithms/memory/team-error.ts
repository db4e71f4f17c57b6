import type { AbortReason, Team } from '../../device/team.js';
import { RemoteError, type TcclError } from '../../../errors.js';
import { closedTooEarly, died } from '../../failure/reasons.js';
import { unpackReason } from '../../failure/transfer.js';

/**
 * Error for a failure that a rank of this host had, or caused, as the team's abort word reports it.
 *
 * @param localRanks the rank of each member
 */
export function teamError(
  team: Team,
  localRanks: readonly number[],
  reason: Exclude<AbortReason, 'mismatch'>,
  localRank: number,
): TcclError {
  const rank = localRanks[localRank] ?? localRank;
  if (reason === 'closed') return closedTooEarly(rank);
  if (reason === 'died' || reason === 'none') return died(rank);
  // Written before the abort word was raised.
  const words = team.recordedFailure();
  if (words !== undefined) return unpackReason(words, rank);
  return new RemoteError('ABORTED', `rank ${rank} failed and ended the communicator; its own error says why`, { rank });
}
