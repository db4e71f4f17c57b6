import { sleep } from '../platform/platform.js';
import { graceMs } from './grace.js';

/** The reason why a rank ended, if it becomes known soon. */
export async function endReason(network: { whyGone(rank: number): Promise<Error> }, rank: number): Promise<Error | undefined> {
  const known = new AbortController();
  try {
    return await Promise.race([network.whyGone(rank), sleep(graceMs.endReason, { signal: known.signal }).then(() => undefined)]);
  } finally {
    known.abort();
  }
}
