import type { CallLimits, TimedCallOptions } from '../runtime/algorithms/arguments.js';

/** Limits of an exchange that begins later than the call that was given them: with what is left of their time. */
export function limitsFrom(options: TimedCallOptions | undefined): () => CallLimits {
  const { timeoutMs, signal } = options ?? {};
  const others = signal === undefined ? {} : { signal };
  if (timeoutMs === undefined) return () => others;
  const startMs = Date.now();
  return () => ({ ...others, timeoutMs: Math.max(timeoutMs - (Date.now() - startMs), 1) });
}
