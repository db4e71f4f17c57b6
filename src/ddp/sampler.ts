import { counted } from '../counted.js';
import { describeValue } from '../describe-value.js';
import { InvalidArgumentError } from '../errors.js';
import { checkOptionNames } from '../option-names.js';
import { checkComm } from '../check-comm.js';
import type { Communicator } from '../runtime/communicator/communicator.js';
import { checkFlag } from './arguments.js';

/** Options of distributedSampler(), the same on all ranks. */
export interface SamplerOptions {
  /** Mixes the samples anew in each epoch. Default true. */
  readonly shuffle?: boolean | undefined;
  /** A whole number from 0: the order of an epoch follows from it and the epoch's number. Default 0. */
  readonly seed?: number | undefined;
  /**
   * Leaves out samples at an epoch's end until the rest divides by the number of ranks. Otherwise its first samples come again
   * at its end. Default false.
   */
  readonly dropLast?: boolean | undefined;
}

/** Samples of this rank. Made by {@link distributedSampler}. */
export interface DistributedSampler {
  /** Number of samples of each rank in an epoch. */
  readonly length: number;
  /**
   * Indices of this rank's samples in epoch `epoch`, a whole number from 0 below 2³²: every n-th of the epoch's
   * order.
   *
   * @throws InvalidArgumentError `ARGUMENT_RANGE`
   */
  epoch(epoch: number): Uint32Array;
}

const optionNames = Object.keys({ shuffle: true, seed: true, dropLast: true } satisfies Record<keyof SamplerOptions, true>);

/**
 * Divides `length` samples among the ranks, as PyTorch's DistributedSampler does: the same number on each, all in another
 * order in each epoch. Ranks do not exchange anything, so all pass the same length and options.
 *
 * @param length number of samples of all ranks, from 1; with `dropLast` from the number of ranks
 * @throws InvalidArgumentError `ARGUMENT_TYPE`, `ARGUMENT_RANGE`, `UNKNOWN_NAME`
 *
 * @example
 * const sampler = distributedSampler(comm, images.length, { seed: 7 });
 * for (const index of sampler.epoch(0)) train(images[index]);
 */
export function distributedSampler(comm: Communicator, length: number, options: SamplerOptions = {}): DistributedSampler {
  const call = 'distributedSampler';
  checkComm(call, comm, 'distributedSampler(comm, images.length)');
  checkOptionNames(call, options, optionNames, '{ seed: 7 }');
  const { shuffle = true, seed = 0, dropLast = false } = options;
  checkFlag(call, { shuffle, dropLast });
  checkWhole(`${call}: seed`, seed, 0, Number.MAX_SAFE_INTEGER);
  checkWhole(`${call}: the number of samples`, length, 1, MAX_SAMPLES);
  const { rank, nRanks } = comm;
  const share = dropLast ? Math.floor(length / nRanks) : Math.ceil(length / nRanks);
  if (share === 0) {
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `${call}: with dropLast, ${counted(length, 'sample')} for ${nRanks} ranks leave none; pass at least ${nRanks}, or no dropLast`,
    );
  }
  return {
    length: share,
    epoch(epoch) {
      checkWhole('epoch: its number', epoch, 0, 2 ** 32 - 1);
      const order = shuffle ? permutation(length, seed, epoch) : undefined;
      return Uint32Array.from({ length: share }, (_, i) => {
        const at = (i * nRanks + rank) % length;
        return order?.[at] ?? at;
      });
    },
  };
}

/** Indices are elements of a Uint32Array. */
const MAX_SAMPLES = 2 ** 32 - 1;

function checkWhole(what: string, value: number, least: number, most: number): void {
  if (Number.isInteger(value) && value >= least && value <= most) return;
  throw new InvalidArgumentError(
    'ARGUMENT_RANGE',
    `${what} is a whole number from ${least} to ${most}, not ${describeValue(value)}`,
  );
}

/** The numbers below `length` in an order that follows from `seed` and `epoch` (Fisher and Yates). */
function permutation(length: number, seed: number, epoch: number): Uint32Array {
  const random = randomBits(seed, epoch);
  const order = Uint32Array.from({ length }, (_, i) => i);
  for (let left = length; left > 1; left--) {
    const chosen = Math.floor((random() / 2 ** 32) * left);
    const last = order[left - 1] ?? 0;
    order[left - 1] = order[chosen] ?? 0;
    order[chosen] = last;
  }
  return order;
}

/** Random 32-bit numbers: the generator sfc32 of PractRand, which is the same on every machine. */
function randomBits(seed: number, epoch: number): () => number {
  let [a, b, c, counter] = [seed >>> 0, Math.floor(seed / 2 ** 32), epoch, 1];
  const next = (): number => {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  // As PractRand does: until every bit of the state depends on the seed.
  for (let i = 0; i < 15; i++) next();
  return next;
}
