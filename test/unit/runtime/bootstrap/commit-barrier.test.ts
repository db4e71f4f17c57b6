import { describe, expect, test } from 'vitest';
import type { Bootstrap } from '../../../../src/runtime/bootstrap/index.js';
import type { CommitBarrier } from '../../../../src/runtime/bootstrap/commit-barrier.js';
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

const stepsOf = (ranks: readonly Bootstrap[]): CommitBarrier[] => networksOf(ranks).map((network) => network.commitBarrier());

describe('a commit barrier in which a rank was lost', () => {
  test('commits if one rank completed it, after any answers of the others', () =>
    withRanks(4, async (ranks) => {
      const [first, second] = stepsOf(ranks);
      first!.reached();
      second!.reached();
      second!.done();
      expect(await first!.commits(signal())).toBe(true);
    }));

  test('does not commit if a rank gave up before', () =>
    withRanks(4, async (ranks) => {
      const [first, second, third, fourth] = stepsOf(ranks);
      for (const step of [first, second, third]) step!.reached();
      fourth!.giveUp();
      expect(await Promise.all([first, second, third].map((step) => step!.commits(signal())))).toEqual([false, false, false]);
    }));

  test('commits if all live ranks reached it, even if none completed it', async () => {
    const ranks = await connectRanks(4);
    const networks = networksOf(ranks);
    const [first, second, third] = networks.map((network) => network.commitBarrier());
    for (const network of [networks[3]!, ranks[3]!]) network.abort(new Error('lost'));
    for (const step of [first, second, third]) step!.reached();
    expect(await Promise.all([first, second, third].map((step) => step!.commits(signal())))).toEqual([true, true, true]);
    await Promise.all(ranks.map((rank) => rank.close()));
  });

  test('waits while a live rank has not reached it, until the signal', () =>
    withRanks(3, async (ranks) => {
      const [first, second, third] = stepsOf(ranks);
      first!.reached();
      second!.reached();
      const late = new AbortController();
      const inVain = rejection(first!.commits(late.signal));
      late.abort(new Error('too late'));
      expect(await inVain).toMatchObject({ message: 'too late' });
      const outcomes = [first, second].map((step) => step!.commits(signal()));
      third!.giveUp();
      expect(await Promise.all(outcomes)).toEqual([false, false]);
    }));
});

test('a rank that asks for survivors again, after a later loss, agrees with ranks that ask for the first time', () =>
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
