import type { CallLimits, TimedCallOptions } from '../runtime/algorithms/arguments.js';
import { clockMs } from '../runtime/platform/platform.js';

/** Limits of an exchange that begins later than the call that was given them: with what is left of their time. */
export function limitsFrom(options: TimedCallOptions | undefined): () => CallLimits {
  const { timeoutMs, signal } = options ?? {};
  const others = signal === undefined ? {} : { signal };
  if (timeoutMs === undefined) return () => others;
  const startMs = clockMs();
  return () => ({ ...others, timeoutMs: Math.max(Math.ceil(timeoutMs - (clockMs() - startMs)), 1) });
}
