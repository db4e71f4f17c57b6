import { expect, test, vi } from 'vitest';
import { withRanks, bytes, rejection, timeoutMs } from './ranks.js';

test('ranks that wait on a network answer queries, and others do not', () =>
  withRanks(4, async (ranks) => {
    const number = ranks[0]!.nextNumber();
    const networks = ranks.map((rank) => rank.derive(number, [3, 2, 1, 0]));
    // By rank of the derived network.
    const [first, second] = [networks[3]!.openWaitQueries(), networks[2]!.openWaitQueries()];
    const elsewhere = ranks[1]!.openWaitQueries();
    second.setAnswer([1, -2]);
    await vi.waitFor(() => {
      first.ask([1, 2, 3]);
      expect(first.answer(1)?.words).toEqual([1, -2]);
    }, timeoutMs);
    const { count } = first.answer(1)!;
    second.setAnswer([]);
    await vi.waitFor(() => {
      first.ask([1]);
      expect(first.answer(1)?.words).toEqual([]);
    }, timeoutMs);
    expect(first.answer(1)!.count).toBeGreaterThan(count);
    expect([first.answer(2), first.answer(3)]).toEqual([undefined, undefined]);
    for (const queries of [first, second, elsewhere]) queries.close();
  }));

test('a rank reports the ranks whose messages it awaits since its call began, on all networks', () =>
  withRanks(3, async (ranks) => {
    const before = rejection(ranks[0]!.recv(2, 1));
    await new Promise((resolve) => setTimeout(resolve, 2)); // so that the clock has moved
    const queries = ranks[0]!.openWaitQueries();
    expect(queries.awaited()).toEqual([]);
    const network = ranks[0]!.derive(ranks[0]!.nextNumber(), [1, 0]);
    const inChild = rejection(network.recv(0, 1));
    const inParent = ranks[0]!.recv(1, 7);
    expect(queries.awaited()).toEqual([1]);
    await network.close();
    await inChild;
    await ranks[1]!.send(0, 7, bytes('x'));
    await inParent;
    expect(queries.awaited()).toEqual([]);
    queries.close();
    await ranks[0]!.close();
    await before;
  }));
