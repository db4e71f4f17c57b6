/** Limits for connections that have not proved that they know the secret. Each may hold at most 64 KiB of memory. */
export interface HandshakeLimits {
  /** Number of connections at a time. One more closes the oldest: a rank that is hit by this retries. */
  readonly connections: number;
  /** Time that a connection may take for its proof. */
  readonly timeMs: number;
}

export const defaultHandshakeLimits: HandshakeLimits = { connections: 512, timeMs: 5000 };
