/** A value that {@link ObjectCalls.recvAnyObject} received. */
export interface AnyObject<T> {
  /** The value, as the sender's program gave it. */
  readonly value: T;
  /** Rank that sent it. */
  readonly source: number;
  /** Tag that the sender gave it; 0 without one. */
  readonly tag: number;
}

/** Combines the values of lower ranks with that of a higher one. */
export type CombineValues = (lower: unknown, higher: unknown) => unknown;
