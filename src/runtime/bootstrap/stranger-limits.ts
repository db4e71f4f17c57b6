/** What those may take who have not proved that they know the secret. Each may hold at most 64 KiB of memory. */
export interface StrangerLimits {
  /** Connections at a time. One more, and the oldest is closed: a rank that this hits comes again. */
  readonly connections: number;
  /** How long one may take for its proof. */
  readonly timeMs: number;
}

export const defaultStrangerLimits: StrangerLimits = { connections: 512, timeMs: 5000 };
