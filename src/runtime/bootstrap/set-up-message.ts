import { SystemError } from '../../errors.js';
import type { MessageHeader } from './connection.js';
import type { TransferredError } from './error-transfer.js';
import { decodeJson } from './json.js';
import type { CheckIn } from './roll.js';

/** The root's answer to a rank: where the next rank of the ring listens, or why there is no communicator. */
export type Answer = { readonly next: string; readonly sessionNonce: string } | { readonly error: TransferredError };

/** The root's confirmation of a check-in. */
export interface Confirmation {
  /** Whether the connection stays open until the answer, so that its end tells of the root's. */
  readonly stays: boolean;
}

/** Check-ins and answers have a connection of their own each. */
export const setUpHeader: MessageHeader = { space: 0, operation: 0, number: 0 };

/**
 * A rank's check-in. It comes from somebody who knows the secret, but maybe from another version of tccl.
 * @throws SystemError `NETWORK` when what the root relies on is not there.
 */
export function decodeCheckIn(data: Uint8Array): CheckIn {
  const checkIn = decodeJson(data) as CheckIn;
  const { rank, nRanks, remainingMs } = checkIn;
  if (!(Number.isInteger(rank) && rank >= 0 && rank < nRanks && Number.isFinite(remainingMs))) {
    throw new SystemError('NETWORK', 'a check-in has no valid rank: do all ranks run the same version of tccl?');
  }
  return checkIn;
}
