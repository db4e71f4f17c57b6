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
  | { readonly kind: 'close' };

/** Messages from a rank to its pool. */
export type FromPoolRank =
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

function canBeSent(value: unknown): boolean {
  try {
    structuredClone(value);
    return true;
  } catch {
    return false;
  }
}
