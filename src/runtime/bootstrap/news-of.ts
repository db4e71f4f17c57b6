import { setTimeout } from 'node:timers/promises';
import type { Bootstrap } from './bootstrap.js';

/** How long news of a rank may take that explain why it gave up elsewhere. */
const NEWS_MS = 1000;

/** Why a rank does not go on with this network, if that is known soon. */
export async function newsOf(bootstrap: Bootstrap, rank: number): Promise<Error | undefined> {
  const known = new AbortController();
  try {
    return await Promise.race([bootstrap.whyGone(rank), setTimeout(NEWS_MS, undefined, { signal: known.signal })]);
  } finally {
    known.abort();
  }
}
