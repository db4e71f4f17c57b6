import { InternalError, InvalidUsageError, RemoteError, SystemError, TcclError, TimeoutError } from '../../errors.js';
import type { ErrorCode, ErrorDetails } from '../../errors.js';

/** An error in the form in which ranks send it to each other. */
export interface TransferredError {
  readonly name: string;
  readonly code: ErrorCode;
  readonly message: string;
  readonly rank?: number;
  readonly ranks?: readonly number[];
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

/** Errors that every rank throws by itself, so no rank has to hear of them. */
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
  return { name, code, message, ...(rank !== undefined && { rank }), ...(ranks !== undefined && { ranks }) };
}

/**
 * Makes the same error on another rank: class, code, message and ranks. An error of a rank's own arguments becomes, for other
 * ranks, that rank's failure.
 */
export function unpackError({ name, code, message, rank, ranks }: TransferredError): TcclError {
  const details = { ...(rank !== undefined && { rank }), ...(ranks !== undefined && { ranks }) };
  const known = classes[name];
  return known === undefined
    ? new RemoteError(code, rank === undefined ? message : `rank ${rank}: ${message}`, details)
    : new known(code, message, details);
}
