import { setTimeout } from 'node:timers/promises';
import type { Bootstrap } from './bootstrap.js';

/** Longest wait for the reason why a rank gave up elsewhere. */
const NEWS_MS = 1000;

/** The reason why a rank ended, if it becomes known soon. */
export async function endReason(bootstrap: Bootstrap, rank: number): Promise<Error | undefined> {
  const known = new AbortController();
  try {
    return await Promise.race([bootstrap.whyGone(rank), setTimeout(NEWS_MS, undefined, { signal: known.signal })]);
  } finally {
    known.abort();
  }
}
