import { describe, expect, it } from 'vitest';
import { distributedSampler, type SamplerOptions } from '../../../src/ddp/sampler.js';
import type { Communicator } from '../../../src/runtime/communicator/communicator.js';

/** The part of a communicator that samplers use. */
const rankOf = (rank: number, nRanks: number) =>
  ({ rank, nRanks, allGatherObject: () => Promise.resolve([]) }) as unknown as Communicator;
const samplers = (nRanks: number, length: number, options?: SamplerOptions) =>
  Array.from({ length: nRanks }, (_, rank) => distributedSampler(rankOf(rank, nRanks), length, options));
const sorted = (indices: Iterable<number>) => [...indices].sort((one, other) => one - other);
/** The order of an epoch, put together from the ranks' parts. */
const orderOf = (nRanks: number, length: number, options: SamplerOptions, epoch: number) => {
  const parts = samplers(nRanks, length, options).map((sampler) => sampler.epoch(epoch));
  return Array.from(parts[0]!).flatMap((_, i) => parts.map((part) => part[i]));
};

describe('distributedSampler', () => {
  it.each([
    // As torch.utils.data.DistributedSampler(range(10), 4, rank, shuffle=False) and so on.
    [4, 10, false, ['0,4,8', '1,5,9', '2,6,0', '3,7,1']],
    [4, 10, true, ['0,4', '1,5', '2,6', '3,7']],
    [2, 4, false, ['0,2', '1,3']],
    [4, 1, false, ['0', '0', '0', '0']],
    [5, 2, false, ['0', '1', '0', '1', '0']],
  ])('gives each of %i ranks the same number of %i samples, dropLast %s', (nRanks, length, dropLast, expected) => {
    const all = samplers(nRanks, length, { shuffle: false, dropLast });
    expect(all.map((sampler) => sampler.epoch(3).join())).toEqual(expected);
    for (const sampler of all) expect(sampler.length).toBe(sampler.epoch(0).length);
  });

  it('shuffles all samples, each once, in one order for any number of ranks', () => {
    const order = orderOf(1, 1000, { seed: 5 }, 2);
    expect(sorted(order as number[])).toEqual(Array.from({ length: 1000 }, (_, i) => i));
    expect(orderOf(4, 1000, { seed: 5 }, 2)).toEqual(order);
  });

  it('pads and cuts what it shuffled', () => {
    const order = orderOf(1, 10, {}, 0);
    expect(orderOf(4, 10, {}, 0)).toEqual([...order, ...order.slice(0, 2)]);
    expect(orderOf(4, 10, { dropLast: true }, 0)).toEqual(order.slice(0, 8));
  });

  it('has another order for each seed and epoch, but the same for the same', () => {
    const pairs = [0, 1, 7, 2 ** 32, 2 ** 40].flatMap((seed) => [0, 1, 7, 2 ** 32 - 1].map((epoch) => [seed, epoch] as const));
    const orders = pairs.map(([seed, epoch]) => orderOf(1, 20, { seed }, epoch).join());
    expect(new Set(orders).size).toBe(orders.length);
    expect(pairs.map(([seed, epoch]) => orderOf(1, 20, { seed }, epoch).join())).toEqual(orders);
  });

  it('puts every sample at every place about as often', () => {
    const counts = new Map<string, number>();
    for (let epoch = 0; epoch < 6000; epoch++) {
      const order = orderOf(1, 3, {}, epoch).join();
      counts.set(order, (counts.get(order) ?? 0) + 1);
    }
    // 6 orders of 1000 each; five standard deviations are 145. The generator has no chance in it.
    expect([...counts.values()].filter((count) => Math.abs(count - 1000) < 145)).toHaveLength(6);
  });

  it('refuses what it cannot divide', () => {
    const comm = rankOf(0, 4);
    const refused = (...args: unknown[]) => {
      try {
        (distributedSampler as (...args: unknown[]) => unknown)(...args);
        return 'nothing';
      } catch (error) {
        const { code, message } = error as { code: string; message: string };
        return `${code} ${message}`;
      }
    };
    expect([
      refused(10, comm),
      refused(comm, 0),
      refused(comm, [1, 2]),
      refused(comm, 3, { dropLast: true }),
      refused(comm, 3, { seed: 0.5 }),
      refused(comm, 3, { shuffle: 1 }),
      refused(comm, 3, { droplast: true }),
    ]).toEqual([
      'ARGUMENT_TYPE distributedSampler: pass a communicator of init() first, as in distributedSampler(comm, images.length), not 10',
      'ARGUMENT_RANGE distributedSampler: the number of samples is a whole number from 1 to 4294967295, not 0',
      'ARGUMENT_RANGE distributedSampler: the number of samples is a whole number from 1 to 4294967295, not an object of class Array',
      'ARGUMENT_RANGE distributedSampler: with dropLast, 3 samples for 4 ranks leave none; pass at least 4, or no dropLast',
      'ARGUMENT_RANGE distributedSampler: seed is a whole number from 0 to 9007199254740991, not 0.5',
      'ARGUMENT_TYPE distributedSampler: shuffle is true or false, not 1',
      'UNKNOWN_NAME distributedSampler: there is no option "droplast"; did you mean dropLast?; there are shuffle, seed, dropLast',
    ]);
    expect(() => distributedSampler(comm, 10).epoch(-1)).toThrow('epoch: its number is a whole number from 0 to');
  });
});
