/**
 * The machine that the runtime runs on. Nothing else in src/runtime may read a clock, so that another platform can decide
 * what a rank sees: lint checks it.
 */
export interface Platform {
  /** Milliseconds since this process began; never goes back. */
  readonly clockMs: () => number;
  /** Milliseconds since 1970; jumps when the clock is set. */
  readonly wallClockMs: () => number;
  /** Nanoseconds of a clock that is the same in all processes of a host. */
  readonly hostClockNs: () => bigint;
}
