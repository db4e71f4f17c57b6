import { onAbort } from '../abort-signals.js';
import { sleep } from '../platform/platform.js';

/** The reason why a rank ended, if it becomes known within a time and before `signal` aborts. */
export async function endReason(whyGone: Promise<Error>, withinMs: number, signal?: AbortSignal): Promise<Error | undefined> {
  const over = new AbortController();
  const stop = onAbort(signal, () => over.abort());
  try {
    return await Promise.race([whyGone, sleep(withinMs, { signal: over.signal }).then(() => undefined)]);
  } catch {
    return undefined;
  } finally {
    stop();
    over.abort();
  }
}
