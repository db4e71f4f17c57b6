import type { Silence } from '../failure/silence.js';
import type { TransferredError } from '../failure/transfer.js';

/** Notices about ranks. Those for all ranks travel along the ring; each event is reported once, however many ranks saw it. */
export type Notice =
  /** The rank's connections broke without a goodbye; `why` if that is not its death, because its host is silent. */
  | { readonly kind: 'died'; readonly rank: number; readonly why?: string | undefined; readonly silence?: Silence | undefined }
  /** The rank gave up, for the given reason; `death` if that is the loss of another rank. */
  | { readonly kind: 'aborted'; readonly rank: number; readonly reason: string; readonly death?: TransferredError | undefined }
  /** The rank sent a goodbye. */
  | { readonly kind: 'left'; readonly rank: number }
  /** The rank has closed one network, and takes part in no operation of the group from this number on. Sent to members only. */
  | { readonly kind: 'closed'; readonly rank: number; readonly group: string; readonly sequence: number }
  /** The rank asks the receiver whether it waits in an out-of-band call on the network of a space. */
  | { readonly kind: 'asks'; readonly rank: number; readonly space: number }
  /** The rank waits, with its report (see WaitQueries). */
  | { readonly kind: 'answers'; readonly rank: number; readonly space: number; readonly words: readonly number[] }
  /** The rank asks the receiver whether it still uses a space, because it waits for messages in it. */
  | { readonly kind: 'waits'; readonly rank: number; readonly space: number }
  /**
   * The rank has closed the network of the space, with or without a failure: no more messages come from it there. Sent to
   * ranks that are connected with it, and to those that ask.
   */
  | { readonly kind: 'silent'; readonly rank: number; readonly space: number; readonly error?: TransferredError }
  /**
   * A collective operation, and all later ones of its group, cannot be completed.
   * @param own true if the error has rank numbers of the group's network, not of the mesh
   */
  | {
      readonly kind: 'failed';
      readonly group: string;
      readonly sequence: number;
      readonly error: TransferredError;
      readonly own?: boolean;
    };

/** Notices for all ranks, as opposed to those from one rank to another. */
export type SpreadNotice = Extract<Notice, { readonly kind: 'died' | 'aborted' | 'left' | 'failed' }>;

export function isSpread(notice: Notice): notice is SpreadNotice {
  return notice.kind === 'died' || notice.kind === 'aborted' || notice.kind === 'left' || notice.kind === 'failed';
}

/** Key of the event; equal for two notices exactly if they report the same event. */
export function eventOf(notice: SpreadNotice): string {
  switch (notice.kind) {
    case 'died':
    case 'aborted':
      return `lost ${notice.rank}`;
    case 'left':
      return `left ${notice.rank}`;
    case 'failed':
      return `failed ${notice.group} ${notice.sequence}`;
  }
}
