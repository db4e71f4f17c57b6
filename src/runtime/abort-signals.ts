import { clearInterval, setInterval } from './platform/platform.js';

/** Calls `action` when the signal is aborted, which may be now. The returned function ends that. */
export function onAbort(signal: AbortSignal | undefined, action: () => void): () => void {
  if (signal?.aborted === true) action();
  else signal?.addEventListener('abort', action, { once: true });
  return () => signal?.removeEventListener('abort', action);
}

/**
 * Resolves as the promise does, unless the signal is aborted first. Keeps the process alive meanwhile, as sockets and
 * listeners do not.
 */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  // A rejection after the signal is of no interest.
  promise.catch(() => undefined);
  const hold = setInterval(() => undefined, 2 ** 30);
  let stop = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    stop = onAbort(signal, () => reject(signal.reason as Error));
  });
  try {
    return await Promise.race([aborted, promise]);
  } finally {
    clearInterval(hold);
    stop();
  }
}

/**
 * Runs `work` with a signal that aborts with the first of `signals`, and for its reason. Removes its listeners at the end, so
 * that a signal which outlives many calls does not collect them. (`AbortSignal.any` is missing in Node 20.0 to 20.2.)
 */
export async function withAnySignal<T>(
  signals: readonly (AbortSignal | undefined)[],
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const any = new AbortController();
  const stops = signals.map((signal) => onAbort(signal, () => any.abort(signal?.reason)));
  try {
    return await work(any.signal);
  } finally {
    for (const stop of stops) stop();
  }
}
