import { InvalidUsageError, RemoteError } from '../../errors.js';
import { ofSilence, silenceOf } from './silence.js';

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

/** Error for a rank that others still wait for. */
export function closedTooEarly(rank: number): RemoteError {
  return new RemoteError('CLOSED', `rank ${rank} closed its communicator or exited, but others still call it`, { rank });
}

/**
 * Error for a rank that ended without a goodbye.
 * @param cause end of its connection; if the other host was silent, the rank may live
 * @param place the rank with its host, where another host has it
 */
export function died(rank: number, cause?: unknown, place = `rank ${rank}`): RemoteError {
  const silence = silenceOf(cause);
  const what = silence === undefined ? 'died: it ended without closing the communicator' : cannotBeReached(cause as Error);
  return ofSilence(new RemoteError('RANK_DIED', `${place} ${what}`, { rank, cause }), silence);
}

/** Text about a rank on a silent host. It names both ends, because the rank in question may get this text too. */
export function cannotBeReached({ message }: Error): string {
  return `cannot be reached ${message}`;
}
