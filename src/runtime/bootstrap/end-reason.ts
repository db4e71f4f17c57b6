import type { Bootstrap } from './bootstrap.js';
import { sleep } from '../platform/platform.js';
import { graceMs } from '../failure/grace.js';

/** The reason why a rank ended, if it becomes known soon. */
export async function endReason(bootstrap: Bootstrap, rank: number): Promise<Error | undefined> {
  const known = new AbortController();
  try {
    return await Promise.race([
      bootstrap.whyGone(rank),
      sleep(graceMs.endReason, { signal: known.signal }).then(() => undefined),
    ]);
  } finally {
    known.abort();
  }
}
