import type { TransferredError } from './error-transfer.js';

/** News of ranks. Those for all travel along the ring; each is told once, however many ranks have seen it happen. */
export type Notice =
  /** The rank's connections broke without a goodbye; `why` where that is not its death. */
  | { readonly kind: 'died'; readonly rank: number; readonly why?: string | undefined }
  /** The rank gave up, for a reason that it tells. */
  | { readonly kind: 'aborted'; readonly rank: number; readonly reason: string }
  /** The rank said goodbye. */
  | { readonly kind: 'left'; readonly rank: number }
  /** The rank has closed one network, and takes no part in the group's operations from this number on. Only members are told. */
  | { readonly kind: 'closed'; readonly rank: number; readonly group: string; readonly sequence: number }
  /** The rank asks the one that it tells this whether that waits in a call out of band on the network of a space. */
  | { readonly kind: 'asks'; readonly rank: number; readonly space: number }
  /** It does, and what it knows of why (see WaitLine). */
  | { readonly kind: 'answers'; readonly rank: number; readonly space: number; readonly words: readonly number[] }
  /** The rank asks the one that it tells this whether that still uses a space, from which it waits for messages. */
  | { readonly kind: 'waits'; readonly rank: number; readonly space: number }
  /**
   * The rank has closed the network of the space, after a failure or without: nothing more comes there from it. Told to
   * those connected with it, and who asks.
   */
  | { readonly kind: 'silent'; readonly rank: number; readonly space: number; readonly error?: TransferredError }
  /**
   * A collective operation, and all later ones of its group, cannot be completed.
   * @param own the error speaks of the ranks of the group's network, not of the mesh's
   */
  | {
      readonly kind: 'failed';
      readonly group: string;
      readonly sequence: number;
      readonly error: TransferredError;
      readonly own?: boolean;
    };

/** News for all, in contrast to what one rank tells another. */
export type SpreadNotice = Extract<Notice, { readonly kind: 'died' | 'aborted' | 'left' | 'failed' }>;

export function isSpread(notice: Notice): notice is SpreadNotice {
  return notice.kind === 'died' || notice.kind === 'aborted' || notice.kind === 'left' || notice.kind === 'failed';
}

/** The same for two notices exactly when they tell of the same event. */
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
