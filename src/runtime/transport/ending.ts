import { packError, unpackError } from '../bootstrap/error-transfer.js';
import type { TransferredError } from '../bootstrap/error-transfer.js';
import { unreachable } from '../bootstrap/liveness.js';
import { InvalidUsageError, RemoteError, TcclError } from '../../errors.js';

/** Longest packed reason; every transport reserves this much room. */
export const REASON_BYTES = 896;

/** Packs the reason of an abort for the other side into at most REASON_BYTES bytes; a long message is shortened. */
export function packReason(error: Error): Uint8Array {
  const foreign: TransferredError = { name: '', code: 'ABORTED', message: error.message };
  const { ranks, ...reason } = error instanceof TcclError ? packError(error) : foreign;
  const few = ranks !== undefined && ranks.length <= 16 ? { ranks } : {};
  let message = reason.message;
  while (true) {
    const bytes = new TextEncoder().encode(JSON.stringify({ ...reason, ...few, message }));
    if (bytes.length <= REASON_BYTES) return bytes;
    message = `${message.slice(0, message.length / 2)}…`;
  }
}

/** The error that rank `peer` packed. An error of another class than tccl's becomes a RemoteError `ABORTED`. */
export function unpackReason(bytes: Uint8Array, peer: number): TcclError {
  const reason = JSON.parse(Buffer.from(bytes).toString()) as TransferredError;
  if (reason.name === '') return new RemoteError('ABORTED', `rank ${peer} gave up: ${reason.message}`, { rank: peer });
  return unpackError(reason);
}

/** Error for calls on a side that has closed. */
export function closedHere(peer: number): InvalidUsageError {
  return new InvalidUsageError('CLOSED', `the connection with rank ${peer} was closed on this side`);
}

export function closedThere(peer: number): RemoteError {
  return new RemoteError(
    'CLOSED',
    `rank ${peer} closed its communicator or exited while this rank still exchanged data with it`,
    { rank: peer },
  );
}

/** @param place the rank with its host, where another host has it */
export function died(rank: number, cause?: unknown, place = `rank ${rank}`): RemoteError {
  const what = unreachable(cause) ?? 'died: it ended without closing the communicator';
  return new RemoteError('RANK_DIED', `${place} ${what}`, { rank, cause });
}
