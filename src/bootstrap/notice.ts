import type { TransferredError } from './error-transfer.js';

/** News that travel along the ring to all ranks. Each is told once, however many ranks have seen it happen. */
export type Notice =
  /** The rank's connections broke without a goodbye. */
  | { readonly kind: 'died'; readonly rank: number }
  /** The rank gave up, for a reason that it tells. */
  | { readonly kind: 'aborted'; readonly rank: number; readonly reason: string }
  /** The rank said goodbye. */
  | { readonly kind: 'left'; readonly rank: number }
  /** The rank has closed one network, and takes no part in the group's operations from this number on. Only members are told. */
  | { readonly kind: 'closed'; readonly rank: number; readonly group: string; readonly sequence: number }
  /** A collective operation, and all later ones of its group, cannot be completed. */
  | { readonly kind: 'failed'; readonly group: string; readonly sequence: number; readonly error: TransferredError };

/** The same for two notices exactly when they tell of the same event. */
export function eventOf(notice: Notice): string {
  switch (notice.kind) {
    case 'died':
    case 'aborted':
      return `lost ${notice.rank}`;
    case 'left':
      return `left ${notice.rank}`;
    case 'closed':
      return `closed ${notice.group} ${notice.rank}`;
    case 'failed':
      return `failed ${notice.group} ${notice.sequence}`;
  }
}
