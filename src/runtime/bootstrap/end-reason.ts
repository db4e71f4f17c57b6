import type { Bootstrap } from './bootstrap.js';
import { sleep } from '../platform/platform.js';

/** Longest wait for the reason why a rank gave up elsewhere. */
const NEWS_MS = 1000;

/** The reason why a rank ended, if it becomes known soon. */
export async function endReason(bootstrap: Bootstrap, rank: number): Promise<Error | undefined> {
  const known = new AbortController();
  try {
    return await Promise.race([bootstrap.whyGone(rank), sleep(NEWS_MS, { signal: known.signal }).then(() => undefined)]);
  } finally {
    known.abort();
  }
}
