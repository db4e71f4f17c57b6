import { InternalError, InvalidUsageError, RemoteError, SystemError, TcclError, TimeoutError } from '../../errors.js';
import { isNamingCall, namingCall, type ErrorCode, type ErrorDetails } from '../../errors.js';
import { ofSilence, silenceOf, type Silence } from './silence.js';

/** An error in the form in which ranks send it to each other. */
export interface TransferredError {
  readonly name: string;
  readonly code: ErrorCode;
  readonly message: string;
  readonly rank?: number;
  readonly ranks?: readonly number[];
  /** The silent host that it is about. */
  readonly silence?: Silence;
  /** True if the message names the call that the error ended. */
  readonly namesCall?: true;
}

const classes: Readonly<Record<string, new (code: ErrorCode, message: string, details: ErrorDetails) => TcclError>> = {
  InternalError,
  InvalidUsageError,
  RemoteError,
  SystemError,
  TimeoutError,
};

/** Errors with rank numbers of the network in which they occurred; all other errors of this room have those of the mesh. */
const ofNetworks = new WeakSet<Error>();

export function inRanksOfNetwork<E extends Error>(error: E): E {
  ofNetworks.add(error);
  return error;
}

export function isInRanksOfNetwork(error: Error): boolean {
  return ofNetworks.has(error);
}

/** Errors that every rank throws by itself, so no rank has to get them from another. */
const ofEveryRank = new WeakSet<Error>();

/** Marks an error that all ranks have agreed on: a rank that ends with it leaves; an abort could overtake the agreement. */
export function thrownByEveryRank<E extends Error>(error: E): E {
  ofEveryRank.add(error);
  return error;
}

export function isThrownByEveryRank(error: unknown): boolean {
  return error instanceof Error && ofEveryRank.has(error);
}

export function packError(error: TcclError): TransferredError {
  const { name, code, message, rank, ranks } = error;
  const silence = silenceOf(error);
  return {
    name,
    code,
    message,
    ...(rank !== undefined && { rank }),
    ...(ranks !== undefined && { ranks }),
    ...(silence !== undefined && { silence }),
    ...(isNamingCall(error) && { namesCall: true }),
  };
}

/**
 * Makes the same error on another rank: class, code, message and ranks. An error of a rank's own arguments becomes, for other
 * ranks, that rank's failure.
 */
export function unpackError({ name, code, message, rank, ranks, silence, namesCall }: TransferredError): TcclError {
  const details = { ...(rank !== undefined && { rank }), ...(ranks !== undefined && { ranks }) };
  const known = classes[name];
  const error =
    known === undefined
      ? new RemoteError(code, rank === undefined ? message : `rank ${rank}: ${message}`, details)
      : new known(code, message, details);
  return ofSilence(namesCall === true ? namingCall(error) : error, silence);
}

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
  const reason = parse(bytes);
  if (reason.name === '') return new RemoteError('ABORTED', `rank ${peer} gave up: ${reason.message}`, { rank: peer });
  return unpackError(reason);
}

/** The error of tccl's own that a rank packed. */
export function unpackPacked(bytes: Uint8Array): TcclError {
  return unpackError(parse(bytes));
}

function parse(bytes: Uint8Array): TransferredError {
  return JSON.parse(new TextDecoder().decode(bytes.slice())) as TransferredError;
}
