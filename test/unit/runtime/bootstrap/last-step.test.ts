import { describe, expect, test } from 'vitest';
import type { Bootstrap } from '../../../../src/runtime/bootstrap/index.js';
import type { LastStep } from '../../../../src/runtime/bootstrap/last-step.js';
import { connectRanks, rejection, timeoutMs, withRanks } from './ranks.js';

const signal = (): AbortSignal => AbortSignal.timeout(timeoutMs);

/** A network of all ranks, for something that they make together. */
function networksOf(ranks: readonly Bootstrap[]): Bootstrap[] {
  const number = ranks[0]!.nextNumber();
  return ranks.map((rank) =>
    rank.derive(
      number,
      ranks.map((_, other) => other),
    ),
  );
}

const stepsOf = (ranks: readonly Bootstrap[]): LastStep[] => networksOf(ranks).map((network) => network.lastStep());

describe('a last step in which a rank was lost', () => {
  test('counts where one came through it, whatever the others have said so far', () =>
    withRanks(4, async (ranks) => {
      const [first, second] = stepsOf(ranks);
      first!.reached();
      second!.reached();
      second!.done();
      expect(await first!.counts(signal())).toBe(true);
    }));

  test('does not count where one gave up before', () =>
    withRanks(4, async (ranks) => {
      const [first, second, third, fourth] = stepsOf(ranks);
      for (const step of [first, second, third]) step!.reached();
      fourth!.giveUp();
      expect(await Promise.all([first, second, third].map((step) => step!.counts(signal())))).toEqual([false, false, false]);
    }));

  test('counts where all that are left came to it, though none came through', async () => {
    const ranks = await connectRanks(4);
    const networks = networksOf(ranks);
    const [first, second, third] = networks.map((network) => network.lastStep());
    for (const network of [networks[3]!, ranks[3]!]) network.abort(new Error('lost'));
    for (const step of [first, second, third]) step!.reached();
    expect(await Promise.all([first, second, third].map((step) => step!.counts(signal())))).toEqual([true, true, true]);
    await Promise.all(ranks.map((rank) => rank.close()));
  });

  test('is waited for as long as a rank is on its way, and no longer than the signal lets', () =>
    withRanks(3, async (ranks) => {
      const [first, second, third] = stepsOf(ranks);
      first!.reached();
      second!.reached();
      const late = new AbortController();
      const inVain = rejection(first!.counts(late.signal));
      late.abort(new Error('too late'));
      expect(await inVain).toMatchObject({ message: 'too late' });
      const outcomes = [first, second].map((step) => step!.counts(signal()));
      third!.giveUp();
      expect(await Promise.all(outcomes)).toEqual([false, false]);
    }));
});

test('who asks again who survives, because it knew of a loss later, meets those that ask for the first time', () =>
  withRanks(3, async (ranks) => {
    const again = signal();
    const once = await Promise.all([ranks[0]!.survivors([2], signal()), ranks[1]!.survivors([2], again)]);
    expect(once.map(({ ranks: left }) => left)).toEqual([
      [0, 1],
      [0, 1],
    ]);
    const found = await Promise.all([ranks[1]!.survivors([0], again), ranks[2]!.survivors([0], signal())]);
    expect(found.map(({ ranks: left }) => left)).toEqual([
      [1, 2],
      [1, 2],
    ]);
  }));
