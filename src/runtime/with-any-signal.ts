/**
 * Runs `work` with a signal that aborts with the first of `signals`, and for its reason. Removes its listeners at the end, so
 * that a signal which outlives many calls does not collect them. (`AbortSignal.any` is missing in Node 20.0 to 20.2.)
 */
export async function withAnySignal<T>(
  signals: readonly (AbortSignal | undefined)[],
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const any = new AbortController();
  const stops = signals.map((signal) => {
    const abort = (): void => any.abort(signal?.reason);
    if (signal?.aborted === true) abort();
    signal?.addEventListener('abort', abort);
    return () => signal?.removeEventListener('abort', abort);
  });
  try {
    return await work(any.signal);
  } finally {
    for (const stop of stops) stop();
  }
}
