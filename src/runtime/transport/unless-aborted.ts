/** The promise, unless the signal comes first. Keeps the process alive meanwhile: sockets and listeners do not. */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  // What becomes of it after the signal nobody wants to know.
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
