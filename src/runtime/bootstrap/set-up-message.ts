import { SystemError } from '../../errors.js';
import type { MessageHeader } from './rank-connection.js';
import type { TransferredError } from '../failure/transfer.js';
import { decodeJson } from './json.js';
import type { CheckIn } from './roll-call.js';

/** The root's answer to a rank: address of the next rank of the ring, or why there is no communicator. */
export type Answer =
  | {
      readonly next: string;
      readonly sessionNonce: string;
      /** Remaining time of the rank whose limit ends first. */
      readonly leftMs: number;
      /** Possible reason if the next rank cannot be reached: its check-in came from another address. */
      readonly hint?: string;
    }
  | { readonly error: TransferredError };

/** The root's confirmation of a check-in. */
export interface Confirmation {
  /** True if the connection stays open until the answer, so that its end shows the end of the root. */
  readonly stays: boolean;
}

/** Check-ins and answers each have a connection of their own. */
export const setUpHeader: MessageHeader = { space: 0, operation: 0, number: 0 };

/**
 * Decodes a rank's check-in. The sender knows the secret, but may have another version of tccl.
 * @throws SystemError `NETWORK` when a field that the root needs is missing.
 */
export function decodeCheckIn(data: Uint8Array): CheckIn {
  const checkIn = decodeJson(data) as CheckIn;
  const { rank, nRanks, remainingMs } = checkIn;
  if (!(Number.isInteger(rank) && rank >= 0 && rank < nRanks && Number.isFinite(remainingMs))) {
    throw new SystemError('NETWORK', 'a check-in has no valid rank: do all ranks run the same version of tccl?');
  }
  return checkIn;
}
