import { clearInterval, setInterval } from '../platform/platform.js';

/**
 * Resolves as the promise does, unless the signal is aborted first. Keeps the process alive meanwhile, as sockets and
 * listeners do not.
 */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  // A rejection after the signal is of no interest.
  promise.catch(() => undefined);
  signal.throwIfAborted();
  const hold = setInterval(() => undefined, 2 ** 30);
  let abort: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason as Error);
    signal.addEventListener('abort', abort);
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    clearInterval(hold);
    signal.removeEventListener('abort', abort);
  }
}
