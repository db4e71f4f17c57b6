import { InvalidUsageError } from '../../errors.js';
import type { Bootstrap } from './bootstrap.js';
import { decodeJson, encodeJson } from './json.js';
import { oddRanksOf } from './rank-list.js';
import { defined } from '../../defined.js';

/**
 * Exchanges the ranks' data at the beginning of an out-of-band call.
 * @throws InvalidUsageError `CALL_MISMATCH` if another rank makes another call
 */
export async function gatherJson<T extends object>(bootstrap: Bootstrap, call: string, words: T): Promise<T[]> {
  const all = (await bootstrap.allGather(encodeJson({ call, words }))).map(
    (bytes) => decodeJson(bytes) as { call: string; words: T },
  );
  const other = all.findIndex((one) => one.call !== call);
  if (other < 0) return all.map((one) => one.words);
  const { rank } = bootstrap;
  throw new InvalidUsageError(
    'CALL_MISMATCH',
    `rank ${rank} called ${call} where rank ${other} called ${defined(all[other]).call}; all ranks of a communicator must make the same calls in the same order`,
    { ranks: oddRanksOf(all.map((one) => one.call)) },
  );
}
