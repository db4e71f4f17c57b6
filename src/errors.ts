/**
 * Errors of tccl. Every error of a call is a {@link TcclError} with a stable `code`, whose class is the kind of its cause; both
 * map to NCCL's `ncclResult_t`.
 *
 *     TcclError ─┬─ InvalidArgumentError   a value that no call could accept            ncclInvalidArgument 4
 *                ├─ InvalidUsageError      a value or call that does not fit the others ncclInvalidUsage    5
 *                ├─ InputError             a file or text that cannot be used           ncclInvalidUsage    5
 *                ├─ SystemError            the operating system refused                 ncclSystemError     2
 *                ├─ RemoteError            another rank failed, died or aborted         ncclRemoteError     6
 *                ├─ TimeoutError           others did not come in time                  ncclTimeout         8
 *                └─ InternalError          a defect of tccl                             ncclInternalError   3
 */

import { printable } from './printable.js';

/** NCCL's result numbers (`nccl.h`), by tccl's error class. */
export const ncclResults = {
  SystemError: 2,
  InternalError: 3,
  InvalidArgumentError: 4,
  InvalidUsageError: 5,
  InputError: 5,
  RemoteError: 6,
  TimeoutError: 8,
} as const;

/** Stable names of causes. A code never changes its meaning; messages may. */
export type ErrorCode =
  // arguments of a call
  | 'ARGUMENT_TYPE' // a value of the wrong kind (not a typed array, not a function …)
  | 'ARGUMENT_RANGE' // a number outside what is allowed
  | 'UNKNOWN_NAME' // an operator, algorithm, type … that does not exist
  | 'BUFFER_SIZE' // a buffer too small, or of another length than its partner
  | 'BUFFER_DETACHED' // its memory was transferred or resized away
  | 'BUFFER_OVERLAP' // input and output overlap without being the same
  | 'ROOT_RANGE' // no such rank
  // use
  | 'CLOSED' // the communicator was closed
  | 'UNSUPPORTED' // cannot be done here (says why)
  | 'RANK_UNKNOWN' // no launcher set the rank of this process
  | 'ENVIRONMENT' // a variable of the environment is wrong
  | 'UNIQUE_ID' // not a unique id
  | 'DEVICE_LOST' // a GPU was lost, or its copies fail
  | 'MULTICAST' // a step in the life of a multicast object that is out of order
  // ranks that do not fit together
  | 'RANK_COUNT_MISMATCH'
  | 'RANK_DUPLICATE'
  | 'DEVICE_DUPLICATE'
  | 'VERSION_MISMATCH'
  | 'DEVICE_MISMATCH' // hosts have different numbers of network devices
  | 'CALL_MISMATCH' // ranks called different operations, counts or types
  | 'OPERATOR_FAILED' // a reduction operator of the program's own threw or gave no number
  // others
  | 'RANK_MISSING' // did not come in time
  | 'RANK_DIED'
  | 'NO_QUORUM' // too few ranks remain
  | 'JOB_FAILED' // a function that a pool ran threw on a rank
  | 'ABORTED'
  | 'REVOKED' // a rank ended the communicator so that all recover
  | 'TIMEOUT'
  // system
  | 'OUT_OF_MEMORY'
  | 'SHARED_MEMORY'
  | 'NETWORK'
  | 'LAUNCH'
  | 'FILE'
  // files and text
  | 'SYNTAX' // not well-formed
  | 'CONTENT' // well-formed, but says something impossible
  | 'TOO_LARGE'
  // topology and graph
  | 'NO_PATH'
  | 'NO_CHANNEL'
  | 'INTERNAL';

/** Rank, host, file and place that an error is about. */
export interface ErrorDetails {
  /** The rank that the error is about (the dead rank, the rank with the other count). */
  readonly rank?: number;
  /** Several such ranks. */
  readonly ranks?: readonly number[];
  /** The file, or what stands for it, that an input came from. */
  readonly file?: string;
  /** 1-based. */
  readonly line?: number;
  /** 1-based. */
  readonly column?: number;
  /** NCCL's result for this cause, if it differs from that of the class. */
  readonly ncclResult?: number;
  /** The error behind this one. */
  readonly cause?: unknown;
}

/** Base of all errors that tccl throws on purpose. */
export abstract class TcclError extends Error {
  /** The stable code of the cause. */
  readonly code: ErrorCode;
  /** The `ncclResult_t` that NCCL would return for a cause of this kind. */
  abstract readonly ncclResult: number;
  // Declared only: unknown details are not properties, so that a printed error shows only known ones.
  /** The rank that it is about, such as the one that died. */
  declare readonly rank: number | undefined;
  /** Several such ranks, such as those that did not come. */
  declare readonly ranks: readonly number[] | undefined;
  /** The file, or what stands for it, that an input came from. */
  declare readonly file: string | undefined;
  /** 1-based. */
  declare readonly line: number | undefined;
  /** 1-based. */
  declare readonly column: number | undefined;

  /** @param message one line; control characters, which names in it may contain, are shown as escapes */
  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(printable(withoutIds(message)), details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    if (details.rank !== undefined) this.rank = details.rank;
    if (details.ranks !== undefined) this.ranks = details.ranks;
    if (details.file !== undefined) this.file = details.file;
    if (details.line !== undefined) this.line = details.line;
    if (details.column !== undefined) this.column = details.column;
  }

  /** The class's name, also on the prototype, so that minified builds keep it. */
  abstract override readonly name: string;
}

/** Hides unique ids, which contain a secret: a message may quote one from the user's input. */
function withoutIds(message: string): string {
  return message.replace(/tccl1:[\w-]{8,}…?/g, 'tccl1:…');
}

/** A value that no call could accept. */
export class InvalidArgumentError extends TcclError {
  override readonly name = 'InvalidArgumentError';
  readonly ncclResult = ncclResults.InvalidArgumentError;
}

/** A call or value that does not fit the state or the other ranks. */
export class InvalidUsageError extends TcclError {
  override readonly name = 'InvalidUsageError';
  readonly ncclResult = ncclResults.InvalidUsageError;
}

/** A file or text that cannot be used; `file`, `line` and `column` give the place. */
export class InputError extends TcclError {
  override readonly name = 'InputError';
  readonly ncclResult: number;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(code, message, details);
    this.ncclResult = details.ncclResult ?? ncclResults.InputError;
  }
}

/** The operating system refused. */
export class SystemError extends TcclError {
  override readonly name = 'SystemError';
  readonly ncclResult = ncclResults.SystemError;
}

/** Another rank, `rank`, failed, died or aborted. */
export class RemoteError extends TcclError {
  override readonly name = 'RemoteError';
  readonly ncclResult = ncclResults.RemoteError;
}

/** Other ranks, `ranks`, did not come in time. */
export class TimeoutError extends TcclError {
  override readonly name = 'TimeoutError';
  readonly ncclResult = ncclResults.TimeoutError;
}

/** A defect of tccl itself. */
export class InternalError extends TcclError {
  override readonly name = 'InternalError';
  readonly ncclResult = ncclResults.InternalError;
}

/**
 * Sets `error.rank` to the rank whose call failed, unless the error already names ranks. A time-out is about the ranks that
 * did not come, so it is left alone.
 */
export function withRank<E>(error: E, rank: number): E {
  if (error instanceof TcclError && !(error instanceof TimeoutError) && error.rank === undefined && error.ranks === undefined)
    Object.assign(error, { rank });
  return error;
}

/**
 * Puts the call that an error ended in front of its message, where the message is about what ranks did or about memory: it does
 * not say which of this rank's calls it ended.
 */
export function ofCall<E extends TcclError>(error: E, call: string): E {
  if (!namesNoCall.has(error.code) || isNamingCall(error)) return error;
  error.message = `${call}: ${error.message}`;
  return namingCall(error);
}

const namingCalls = new WeakSet<Error>();

/** Marks an error whose message names the call that it ended. */
export function namingCall<E extends Error>(error: E): E {
  namingCalls.add(error);
  return error;
}

export function isNamingCall(error: Error): boolean {
  return namingCalls.has(error);
}

/** Codes of errors that may come from deep below a call. */
const namesNoCall: ReadonlySet<ErrorCode> = new Set([
  'CALL_MISMATCH',
  'TIMEOUT',
  'NETWORK',
  'UNSUPPORTED',
  'BUFFER_DETACHED',
  'OUT_OF_MEMORY',
  'SHARED_MEMORY',
]);

/** One line for the user: `rank 3: …` or `file:line:column: …` before the message. */
export function describeError(error: unknown): string {
  if (!(error instanceof TcclError)) return error instanceof Error ? ofSystem(error) : String(error);
  if (error.file === undefined) return error.message;
  const place = [error.file, error.line, error.column].filter((part) => part !== undefined).join(':');
  return `${place}: ${error.message}`;
}

/** Node's message of a folder given as a file names two system calls, but no remedy. */
function ofSystem(error: Error): string {
  return 'code' in error && error.code === 'EISDIR' ? 'it is a folder; name a file in it' : error.message;
}

/** The first line of an error's message: the further ones of a library's are details for its developers. */
export function firstLineOf(error: unknown): string {
  const [line = ''] = (error as Error).message.split('\n', 1);
  return line;
}

/** Does `action`; an {@link InputError} from it that names no file gets this one. */
export function inFile<Result>(file: string | undefined, action: () => Result): Result {
  try {
    return action();
  } catch (error) {
    if (!(error instanceof InputError) || file === undefined || error.file !== undefined) throw error;
    throw new InputError(error.code, error.message, { ...detailsOf(error), file });
  }
}

/** The details of an error besides its message, for an error that extends it. */
export function detailsOf({ rank, ranks, file, line, column, ncclResult, cause }: InputError): ErrorDetails {
  const known = Object.entries({ rank, ranks, file, line, column, ncclResult, cause }).filter(([, value]) => value !== undefined);
  return Object.fromEntries(known);
}
