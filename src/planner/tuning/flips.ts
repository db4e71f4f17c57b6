import { InvalidArgumentError } from '../../errors.js';
import { rulesOf } from '../versions/rules.js';
import { tuningModelOf } from './models.js';
import type { NcclAlgorithm, Collective, Protocol } from './names.js';
import { type PredictOptions, CallCosts } from './predict.js';
import type { Tuning } from './tune.js';

/** Algorithm and protocol of a call; null without a candidate. */
export interface Way {
  readonly algorithm: NcclAlgorithm;
  readonly protocol: Protocol;
}

/** A size at which NCCL changes to another algorithm or protocol. */
export interface Flip {
  /** The smallest size with the new choice. */
  readonly bytes: number;
  readonly from: Way | null;
  readonly to: Way | null;
}

/**
 * All sizes between two at which the choice changes, to the byte.
 *
 * Between two powers of two, times are linear in size (the corrections of trees change there, and the plateau of rings begins
 * once), and the minimum of linear functions is concave: if both ends of a range have the same choice, all of it has.
 *
 * @throws InvalidArgumentError for sizes that are not whole numbers above 0, the second not below the first
 */
export function flips(
  tuning: Tuning,
  collective: Collective,
  fromBytes: number,
  toBytes: number,
  options: PredictOptions = {},
): Flip[] {
  if (!(toBytes >= fromBytes))
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `sizes from ${fromBytes} to ${toBytes}: the second has to be at least the first`,
    );
  const costs = new CallCosts(tuning, collective, options);
  const wayAt = (bytes: number): Way | null => {
    const best = costs.best(bytes);
    return best === undefined ? null : { algorithm: best.algorithm, protocol: best.protocol };
  };

  const found: Flip[] = [];
  const search = (low: number, lowWay: Way | null, high: number, highWay: Way | null) => {
    if (isSame(lowWay, highWay)) return;
    if (high - low === 1) {
      found.push({ bytes: high, from: lowWay, to: highWay });
      return;
    }
    const middle = low + Math.floor((high - low) / 2);
    const middleWay = wayAt(middle);
    search(low, lowWay, middle, middleWay);
    search(middle, middleWay, high, highWay);
  };

  const ends = stretches(tuning, fromBytes, toBytes);
  let low = fromBytes;
  let way = wayAt(low);
  for (const start of ends) {
    // The last size of a range, then the first of the next.
    for (const high of [start - 1, start]) {
      if (high <= low) continue;
      const highWay = wayAt(high);
      search(low, way, high, highWay);
      low = high;
      way = highWay;
    }
  }
  return found;
}

/** Sizes at which a new linear piece begins, ascending, and the last size to search. */
function stretches({ input }: Tuning, fromBytes: number, toBytes: number): number[] {
  const starts = tuningModelOf(rulesOf(input)).bends(input);
  for (let bytes = 64; bytes <= toBytes && bytes <= 64 * 2 ** 24; bytes *= 2) starts.push(bytes);
  return [...starts.filter((bytes) => bytes > fromBytes && bytes < toBytes).sort((a, b) => a - b), toBytes];
}

function isSame(a: Way | null, b: Way | null): boolean {
  return a?.algorithm === b?.algorithm && a?.protocol === b?.protocol;
}
