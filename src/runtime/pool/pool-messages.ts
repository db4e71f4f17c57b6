import type { MessagePort } from '#platform/threads';
import { TcclError } from '../../errors.js';
import { packError, unpackError, type TransferredError } from '../failure/transfer.js';

/** Data with which a rank of a pool starts. */
export interface PoolRankData {
  readonly port: MessagePort;
  /** URL of the module whose exports the pool runs. */
  readonly module: string;
  /** Time after which a rank ends on request in spite of timers and listeners of the module. */
  readonly graceMs: number;
}

/** Messages from the pool to a rank. */
export type ToPoolRank =
  | {
      readonly kind: 'run';
      /** Number of the job, from 1. */
      readonly number: number;
      readonly name: string;
      readonly args: readonly unknown[];
      readonly afterFailure: boolean;
    }
  | Tasks
  | { readonly kind: 'close' };

/** A part of the items of `pool.map`, for one rank. */
export interface Tasks {
  readonly kind: 'tasks';
  readonly name: string;
  /** Place of the first of these items among all. */
  readonly first: number;
  readonly items: readonly unknown[];
  /** A word that is 1 when no further task shall begin. */
  readonly stop: Int32Array;
  /** A word with the place of the item that the rank is at; -1 between items. */
  readonly at: Int32Array;
}

/** Results of the tasks of a message that were run. */
export interface TaskResults {
  readonly kind: 'results';
  readonly first: number;
  readonly values: readonly unknown[];
  /** The error of the task after the values. */
  readonly failed: SentError | undefined;
  /** True if the task called a method of a communicator on its item: it was written for `pool.run`. */
  readonly wantsCommunicator: boolean;
  /** Time that they took, milliseconds. */
  readonly ms: number;
}

/** Messages from a rank to its pool. */
export type FromPoolRank =
  | TaskResults
  | { readonly kind: 'ready'; readonly names: readonly string[] }
  | {
      readonly kind: 'done';
      readonly value: unknown;
      /** True if the communicator has failed or was closed meanwhile. */
      readonly isOver: boolean;
    }
  | {
      readonly kind: 'failed';
      readonly error: SentError;
      /** True if the job failed because another rank's part did. */
      readonly isConsequence: boolean;
    };

/**
 * An error in the form in which threads send it: messages between threads keep its text and stack but lose classes and fields.
 */
type SentError =
  | { readonly ours: TransferredError; readonly stack: string | undefined }
  | { readonly thrown: unknown; readonly fields: Readonly<Record<string, unknown>> };

export function packThrown(error: unknown): SentError {
  if (error instanceof TcclError) return { ours: packError(error), stack: error.stack };
  const fields = error instanceof Error ? Object.fromEntries(Object.entries(error).filter(([, value]) => canBeSent(value))) : {};
  return { thrown: canBeSent(error) ? error : String(error), fields };
}

export function unpackThrown(sent: SentError): unknown {
  if ('ours' in sent) return Object.assign(unpackError(sent.ours), { stack: sent.stack });
  return sent.thrown instanceof Error ? Object.assign(sent.thrown, sent.fields) : sent.thrown;
}

export function canBeSent(value: unknown): boolean {
  try {
    structuredClone(value);
    return true;
  } catch {
    return false;
  }
}
