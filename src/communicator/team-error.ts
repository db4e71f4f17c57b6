import type { AbortReason } from '../device/team.js';
import { RemoteError } from '../errors.js';

/** The error for a failure that a rank of this host had, or caused, as the team's abort word tells it. */
export function teamError(reason: Exclude<AbortReason, 'mismatch'>, rank: number): RemoteError {
  switch (reason) {
    case 'aborted':
      return new RemoteError('ABORTED', `rank ${rank} aborted the communicator`, { rank });
    case 'closed':
      return new RemoteError('CLOSED', `rank ${rank} has closed its communicator, but others still call it`, { rank });
    case 'timedOut':
      return new RemoteError('TIMEOUT', `rank ${rank} gave up waiting for others and ended the communicator`, { rank });
    case 'failed':
      return new RemoteError('ABORTED', `rank ${rank} failed and ended the communicator; its own error says why`, { rank });
    case 'died':
    case 'none':
      return new RemoteError('RANK_DIED', `rank ${rank} died: it ended without closing the communicator`, { rank });
  }
}
